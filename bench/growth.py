"""Rows about the number of rooms: a post, a start and idle memory of a hub with ten and of one with ten thousand."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import statistics
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from bench import servers
from bench.harness import Contender, Row, now_ms
from bench.wire import Wire

ROOMS = (10, 10_000)
CLIENTS = 32
HANDLE = {"mycelium-handle": "bench"}
SETTLE_S = 1.0


class Grown:
    """A hub with so many rooms, that can be started again."""

    def __init__(self, home: Path, rooms: int) -> None:
        self.name = f"{rooms:,} rooms"
        self._home = home
        self._rooms = rooms
        self._stack = contextlib.AsyncExitStack()
        self._hub: servers.RunningHub | None = None
        self.idle_mb: list[float] = []

    async def start(self) -> float:
        """Start it; how long that took."""
        began = now_ms()
        self._hub = await self._stack.enter_async_context(servers.hub_at(self._home))
        return now_ms() - began

    async def stop(self) -> None:
        """Stop it, if it runs."""
        await self._stack.aclose()
        self._hub = None

    @property
    def hub(self) -> servers.RunningHub:
        """The running hub."""
        assert self._hub
        return self._hub

    async def fill(self) -> None:
        """Make its rooms."""
        numbers = itertools.count()

        async def client() -> None:
            wire = Wire(self.hub.port)
            while (number := next(numbers)) < self._rooms:
                body = json.dumps({"name": f"room {number}"}).encode()
                await wire.request("POST", "/api/rooms", body, HANDLE)
            wire.close()

        await asyncio.gather(*(client() for _ in range(CLIENTS)))

    async def posts(self, count: int) -> list[float]:
        """Posts one after the other, each to some room."""
        wire, samples, chosen = Wire(self.hub.port), [], random.Random(count)
        for _ in range(count):
            path = f"/api/rooms/room%20{chosen.randrange(self._rooms)}/messages"
            began = now_ms()
            await wire.request("POST", path, b'{"content": "hello"}', HANDLE)
            samples.append(now_ms() - began)
        wire.close()
        return samples

    async def starts(self, _count: int) -> list[float]:
        """One start from its home; then what it holds while nobody asks anything."""
        await self.stop()
        took = await self.start()
        await asyncio.sleep(SETTLE_S)
        self.idle_mb.append(servers.resident_kb(self.hub.pid) / 1024)
        return [took]

    def idle(self) -> str:
        """Memory of the services' process, without NATS."""
        return f"{statistics.median(self.idle_mb):.0f} MiB idle"


@contextlib.asynccontextmanager
async def rooms() -> AsyncIterator[list[Row]]:
    """Both hubs run side by side; then each is started again and again."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mycelium-rooms-")))
        grown = [Grown(folder / str(count) / "home", count) for count in ROOMS]
        for one in grown:
            stack.push_async_callback(one.stop)
            await one.start()
            await one.fill()
        posting = [Contender(one.name, "on disk (sync always)", one.posts) for one in grown]
        starting = [Contender(one.name, "", one.starts, [one.idle]) for one in grown]
        yield [
            Row("A post, by the number of rooms", "ratio under 1.2", posting),
            Row("A hub starts, by the number of rooms, until it answers", "ratio under 1.2", starting),
        ]
