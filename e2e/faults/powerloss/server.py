"""A bare NATS server whose store is on such a disk, and one stream on it, as the hub has one."""

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig
from nats.js.errors import APIError, NotFoundError

from e2e.faults.powerloss.layer import Layer
from e2e.harness import BIN, free_port
from e2e.processes import Background
from e2e.waiting import until

NATS_ERRORS = (nats.errors.Error, APIError, TimeoutError, OSError)
STREAM = StreamConfig(name="LOG", subjects=["log.>"], duplicate_window=600.0, allow_atomic=True)
READY_S = 20.0
LARGE = 900_000  # bytes: ten of these fill a file of the store, so that cuts meet the change from one to the next


async def ignore(_error: Exception) -> None:
    """Its absence is what is tested."""


class Server:
    """The server, who publishes to it, and what it has acknowledged: the number of a message, and its sequence."""

    def __init__(self, folder: Path, disk: Layer, sync: str) -> None:
        self.disk = disk
        self.port = free_port()
        self.config = folder / "nats.conf"
        store = {"store_dir": str(disk.folder), "sync_interval": sync, "max_file_store": 1 << 40}
        listen = {"listen": f"127.0.0.1:{self.port}", "max_payload": 8 << 20}
        self.config.write_text(json.dumps({**listen, "jetstream": store}))
        self.acknowledged: dict[int, int] = {}
        self.process = self._start()

    def _start(self) -> Background:
        return Background([BIN / "nats-server", "-c", self.config], {"PATH": os.environ["PATH"]})

    @asynccontextmanager
    async def client(self) -> AsyncIterator[JetStreamContext]:
        """A client, once JetStream answers."""
        client = Client()
        async with asyncio.timeout(READY_S):
            while True:
                with contextlib.suppress(*NATS_ERRORS):
                    await client.connect(
                        f"nats://127.0.0.1:{self.port}", allow_reconnect=False, error_cb=ignore, connect_timeout=1
                    )
                    await client.jetstream(timeout=1).account_info()
                    break
                assert self.process.alive, self.process.ended()
                await asyncio.sleep(0.02)
        try:
            yield client.jetstream(timeout=5)
        finally:
            with contextlib.suppress(*NATS_ERRORS):
                await client.close()

    async def publish(self, jetstream: JetStreamContext, chance: random.Random) -> None:
        """One message after the other until the server is gone."""
        with contextlib.suppress(*NATS_ERRORS):
            while True:
                number = chance.getrandbits(60)
                size = LARGE if chance.random() < 0.1 else chance.randint(0, 2000)
                answer = await jetstream.publish(f"log.{number % 7}", str(number).encode().ljust(size))
                self.acknowledged[number] = answer.seq

    async def under_load(self, chance: random.Random, more: int) -> None:
        """So many acknowledged messages of five who publish; then the power goes, after a few more requests."""
        async with self.client() as jetstream:
            with contextlib.suppress(APIError):
                await jetstream.add_stream(STREAM)
            wanted = len(self.acknowledged) + more
            publishing = [asyncio.create_task(self.publish(jetstream, chance)) for _ in range(5)]
            await asyncio.to_thread(until, lambda: len(self.acknowledged) >= wanted, f"{more} acknowledged messages")
            await asyncio.to_thread(self.disk.freeze, chance.randint(0, 30))
            self.process.signal(signal.SIGKILL)
            for task in publishing:
                task.cancel()
            await asyncio.gather(*publishing, return_exceptions=True)

    async def lose_power(self, chance: random.Random, *, torn: bool) -> dict[str, int]:
        """What the frozen disk has not synced is lost, and the server started on the rest."""
        lost = await asyncio.to_thread(self.disk.cut, chance.getrandbits(30) if torn else None)
        await asyncio.to_thread(self.process.ended)
        self.process = self._start()
        return lost

    async def missing(self) -> dict[int, int]:
        """What was acknowledged and is not there, at its place."""
        async with self.client() as jetstream:
            there: dict[int, int] = {}
            try:
                last = (await jetstream.stream_info("LOG")).state.last_seq
            except NotFoundError:
                return self.acknowledged
            for sequence in range(1, last + 1):
                with contextlib.suppress(NotFoundError):
                    there[sequence] = int((await jetstream.get_msg("LOG", sequence)).data or 0)
        return {number: place for number, place in self.acknowledged.items() if there.get(place) != number}
