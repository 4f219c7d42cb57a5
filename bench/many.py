"""Rows about a thousand watchers: when the last one has a post, and what happens when all are cut off at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator

from bench import servers
from bench.crowd import Crowd
from bench.harness import Contender, Row, now_ms, quantile
from bench.wire import Wire

WATCHERS = 1_000
MISSED = 20
CALM_S = 2.0
PAUSE_S = 0.1
HANDLE = {"mycelium-handle": "bench"}
MESSAGES, STREAM = "/api/rooms/bench/messages", "/api/rooms/bench/stream"


async def make_room(port: int, name: str) -> None:
    """A room by that name."""
    wire = Wire(port)
    await wire.request("POST", "/api/rooms", json.dumps({"name": name}).encode())
    wire.close()


def _watched(name: str, durability: str, port: int, pid: int, paths: tuple[str, str]) -> Contender:
    """Posts to a thousand watchers; the streams are opened with the first round and stay open."""
    stream, messages = paths
    crowd = Crowd(port, stream, WATCHERS)
    held_kb: list[float] = []

    async def measure(count: int) -> list[float]:
        if not held_kb:
            before = servers.resident_kb(pid)
            await crowd.open()
            await asyncio.sleep(PAUSE_S)
            held_kb.append((servers.resident_kb(pid) - before) / WATCHERS)
        samples, poster = [], Wire(port)  # a new connection: an idle one is closed after a while
        for _ in range(count):
            mark = uuid.uuid4().hex
            # As long as the other's events are: what is compared is the way of a frame, not its size.
            body = json.dumps({"content": mark + " " + "x" * (200 if messages == MESSAGES else 800)}).encode()
            crowd.expect(mark.encode())
            began = now_ms()
            answer = asyncio.create_task(poster.request("POST", messages, body, HANDLE))
            await crowd.all_have_seen()
            samples.append(now_ms() - began)
            await answer
            await asyncio.sleep(PAUSE_S)
        poster.close()
        return samples

    return Contender(name, durability, measure, [lambda: f"{held_kb[0]:.0f} KiB of memory a watcher"])


@contextlib.asynccontextmanager
async def watchers() -> AsyncIterator[Row]:
    """One post until the last of a thousand watchers has it."""
    async with servers.hub() as hub, servers.floor() as floor, servers.floor("bench.fan") as fan:
        await make_room(hub.port, "bench")
        always = "on disk (sync always)"
        yield Row(
            "A post → the last of 1,000 watchers has it",
            "at most 2 × raw sockets",
            [
                _watched("raw sockets + JetStream", always, fan.port, fan.pid, ("/stream", "/post")),
                _watched("FastAPI + JetStream, raw ASGI", always, floor.port, floor.pid, ("/stream/", "/post")),
                _watched("Mycelium", always, hub.port, hub.pid, (STREAM, MESSAGES)),
            ],
        )


class Other:
    """Somebody else at the same hub, whose posts are timed in a process of its own."""

    def __init__(self, port: int) -> None:
        self._program = [sys.executable, "-m", "bench.other", str(port), "other"]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Let it begin."""
        pipe = subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*self._program, stdin=pipe, stdout=pipe, limit=2**24)
        assert self._process.stdout
        await self._process.stdout.readline()

    async def stop(self) -> list[tuple[float, float]]:
        """Let it end; when each of its posts began, and how long it took."""
        assert self._process
        said, _ = await self._process.communicate(b"")  # which also ends its input
        return [(moment, took) for moment, took in json.loads(said)]


async def _last_id(port: int, poster: Wire) -> str:
    """The id of a post that everybody has."""
    watcher, mark = Wire(port), uuid.uuid4().hex
    await watcher.open_stream(STREAM)
    answer = asyncio.create_task(poster.request("POST", MESSAGES, json.dumps({"content": mark}).encode(), HANDLE))
    event = await watcher.event(mark.encode())
    await answer
    watcher.close()
    return event.split(b"id: ", 1)[1].split(b"\n", 1)[0].decode()


@contextlib.asynccontextmanager
async def dropped() -> AsyncIterator[Row]:
    """A thousand watchers are cut off; posts go on; all come back by their last id at once."""
    async with servers.hub() as hub:
        for name in ("bench", "other"):
            await make_room(hub.port, name)
        poster, calm, storm = Wire(hub.port), list[float](), list[float]()

        async def once() -> float:
            crowd, other = Crowd(hub.port, STREAM, WATCHERS), Other(hub.port)
            await crowd.open()
            last_id = await _last_id(hub.port, poster)
            await other.start()
            await asyncio.sleep(CALM_S)
            began = time.monotonic()
            crowd.drop()
            mark = uuid.uuid4().hex
            crowd.expect(mark.encode())
            for number in range(MISSED):
                text = f"missed {number}" if number < MISSED - 1 else mark
                await poster.request("POST", MESSAGES, json.dumps({"content": text}).encode(), HANDLE)
            await crowd.open(last_id, at_once=WATCHERS)
            await crowd.all_have_seen()
            ended = time.monotonic()
            for moment, took in await other.stop():
                (storm if moment + took / 1000 > began and moment < ended else calm).append(took)
            crowd.drop()
            await asyncio.sleep(1)
            return (ended - began) * 1000

        async def measure(count: int) -> list[float]:
            return [await once() for _ in range(count)]

        def others() -> str:
            p50s, p99s = ([quantile(some, share) for some in (calm, storm)] for share in (0.5, 0.99))
            return (
                f"somebody else's posts, each until its own watcher had it: p50 {p50s[0]:.1f} ms before and "
                f"{p50s[1]:.1f} ms meanwhile; p99 {p99s[0]:.1f} and {p99s[1]:.1f} ms ({p99s[1] / p99s[0]:.1f} ×), "
                f"n {len(calm):,} and {len(storm):,}"
            )

        yield Row(
            f"{WATCHERS:,} watchers are cut off and come back; the last one has the {MISSED} posts it missed",
            "5,000 ms; others' p99 at most doubled",
            [Contender("Mycelium", "", measure, [others])],
        )
