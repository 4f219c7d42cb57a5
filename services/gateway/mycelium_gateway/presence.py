"""Tells the other services which waits are open here, so that a post's answer can say who was woken.

One key a wait in an in-memory bucket, and one for this gateway that dies three seconds after it: keys of a gateway
that is gone count for nothing. Hints only: a lost key makes `woken` into `queued`, never the other way round.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

import nats.errors
import nats.js.errors
from nats.js.api import KeyValueConfig, StorageType
from nats.js.kv import KeyValue

from mycelium_kernel import subjects
from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
BUCKET = "gateway_waits"
BEAT_S = 1.0
INSTANCE_TTL_S = 3.0
SPARE_S = 60.0  # a wait's key outlives its time by this, for a gateway that could not remove it
MARKER_S = 5.0  # how long a watcher that was away can still learn that a key has expired
TROUBLE = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError)


@dataclass(frozen=True)
class OpenWait:
    """What a key says: in which room and for which queue a wait is open, and for how long at most."""

    room_id: str
    queue: str
    wait_id: str
    timeout_s: float

    @property
    def key(self) -> str:
        """The key: room, queue, wait."""
        return f"{self.room_id}.{subjects.token(self.queue)}.{self.wait_id}"


class Presence:
    """The keys of one gateway."""

    def __init__(self, connection: Connection, instance: str) -> None:
        self._connection = connection
        self._instance = instance
        self._open: dict[str, OpenWait] = {}
        self._bucket: KeyValue | None = None
        self._sequence = 0
        self._again = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Make the bucket and begin to say that this gateway lives."""
        await self._renew()
        self._connection.on_reconnect(self._again.set)
        self._beating = asyncio.create_task(self._beat(), name="presence")

    async def stop(self) -> None:
        """Say that this gateway is gone."""
        self._connection.off_reconnect(self._again.set)
        if self._beating:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
        if self._bucket and self._connection.client.is_connected:
            with contextlib.suppress(*TROUBLE):
                await self._bucket.delete(f"instance.{self._instance}")

    async def opened(self, wait: OpenWait) -> None:
        """A wait is open from now on."""
        self._open[wait.key] = wait
        with contextlib.suppress(*TROUBLE):
            await self._put(wait.key, wait.timeout_s + SPARE_S)

    async def closed(self, wait: OpenWait) -> None:
        """A wait has ended."""
        if self._open.pop(wait.key, None) and self._bucket and self._connection.client.is_connected:
            with contextlib.suppress(*TROUBLE):
                await self._bucket.delete(wait.key)

    async def _beat(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), BEAT_S)
            lost, self._sequence = self._sequence, 0
            try:
                if self._again.is_set() or await self._put(f"instance.{self._instance}", INSTANCE_TTL_S) <= lost:
                    self._again.clear()
                    await self._renew()
            except TROUBLE as error:
                LOGGER.debug("open waits can't be told: %s", error)
                self._again.set()
                await asyncio.sleep(0.2)

    async def _renew(self) -> None:
        """Make the bucket, which a restart of NATS empties, and put every key into it."""
        config = KeyValueConfig(
            bucket=BUCKET,
            storage=StorageType.MEMORY,
            history=1,
            limit_marker_ttl=MARKER_S,
            replicas=self._connection.settings.replicas,
        )
        try:
            self._bucket = await self._connection.jetstream.create_key_value(config)
        except nats.js.errors.BadRequestError:  # another service has made it, with a mind of its own
            self._bucket = await self._connection.jetstream.key_value(BUCKET)
        await self._put(f"instance.{self._instance}", INSTANCE_TTL_S)
        for wait in list(self._open.values()):
            await self._put(wait.key, wait.timeout_s + SPARE_S)

    async def _put(self, key: str, ttl_s: float) -> int:
        # The client's `put` takes no time to live, so the key's own subject is written to.
        subject = f"$KV.{BUCKET}.{key}"
        ack = await self._connection.jetstream.publish(
            subject, self._instance.encode(), timeout=2.0, msg_ttl=float(int(ttl_s))
        )
        self._sequence = max(self._sequence, ack.seq)
        return ack.seq
