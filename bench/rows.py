"""The rows of `make bench`: each sets its servers up, and gives a `Row` whose contenders measure themselves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from bench import board, claims, engines, findable, growth, large, many, posts, search, servers, signed_in, vectors
from bench.harness import Contender, Row, now_ms
from bench.peers.rows import ROWS as PEERS
from bench.wire import Wire

PAUSE_S = 0.01
ALWAYS = "on disk (sync always)"


async def _room(port: int, name: str) -> None:
    wire = Wire(port)
    await wire.request("POST", "/api/rooms", json.dumps({"name": name}).encode())
    wire.close()


async def _post_to_watcher(
    post: Callable[[Wire, bytes], AbstractAsyncContextManager[None]], port: int, stream: str, count: int
) -> list[float]:
    """Milliseconds from the first byte of a post until one watcher has read its event."""
    poster, watcher = Wire(port), Wire(port)
    await watcher.open_stream(stream)
    samples = []
    for _ in range(count):
        mark = uuid.uuid4().hex.encode()
        began = now_ms()
        async with post(poster, mark):
            await watcher.event(mark)
            samples.append(now_ms() - began)
        await asyncio.sleep(PAUSE_S)
    poster.close()
    watcher.close()
    return samples


@contextlib.asynccontextmanager
async def post_to_watcher() -> AsyncIterator[Row]:
    """Post over HTTP until one SSE watcher has it."""
    async with servers.hub() as hub, servers.floor() as floor:
        await _room(hub.port, "bench")

        @contextlib.asynccontextmanager
        async def post_hub(wire: Wire, mark: bytes) -> AsyncIterator[None]:
            body = json.dumps({"content": mark.decode() + " " + "x" * 200}).encode()
            answer = asyncio.create_task(
                wire.request("POST", "/api/rooms/bench/messages", body, {"mycelium-handle": "bench"})
            )
            yield
            await answer

        @contextlib.asynccontextmanager
        async def post_floor(wire: Wire, mark: bytes) -> AsyncIterator[None]:
            answer = asyncio.create_task(wire.request("POST", "/post", mark + b" " + b"x" * 200))
            yield
            await answer

        async def measure_floor(count: int) -> list[float]:
            return await _post_to_watcher(post_floor, floor.port, "/stream/", count)

        async def measure_hub(count: int) -> list[float]:
            return await _post_to_watcher(post_hub, hub.port, "/api/rooms/bench/stream", count)

        yield Row(
            "Post → one SSE watcher has it (paced 10 ms)",
            "at most 2 × the barest FastAPI + NATS code",
            [
                Contender("FastAPI + JetStream, barest", ALWAYS, measure_floor),
                Contender("Mycelium", ALWAYS, measure_hub),
            ],
        )


@contextlib.asynccontextmanager
async def mention_to_process() -> AsyncIterator[Row]:
    """A mention until a waiting `mycelium await --loop` process has printed it."""
    async with servers.hub() as hub:
        await _room(hub.port, "bench")
        wire = Wire(hub.port)
        member = json.dumps({"handle": "scout", "kind": "agent"}).encode()
        await wire.request("POST", "/api/rooms/bench/members", member)

        async def measure(count: int) -> list[float]:
            command = [
                str(servers.BIN / "mycelium"),
                "await",
                "--room",
                "bench",
                "--handle",
                "scout",
                "--loop",
                "--json",
            ]
            process = await asyncio.create_subprocess_exec(
                *command, env={**hub.environment, "MYCELIUM_SESSION": "bench"}, stdout=asyncio.subprocess.PIPE
            )
            assert process.stdout is not None
            samples = []
            for _ in range(count + 1):
                await _until_waiting(wire)
                mark = uuid.uuid4().hex
                body = json.dumps({"content": f"@scout {mark}"}).encode()
                began = now_ms()
                await wire.request("POST", "/api/rooms/bench/messages", body, {"mycelium-handle": "bench"})
                # What the process before had not acknowledged comes first, again.
                while mark not in (await process.stdout.readline()).decode():
                    pass
                samples.append(now_ms() - began)
            process.terminate()
            await process.wait()
            return samples[1:]

        yield Row(
            "Mention → a waiting process has printed it",
            "p50 20 ms",
            [Contender("Mycelium, `mycelium await --loop`", ALWAYS, measure)],
        )


async def _until_waiting(wire: Wire) -> None:
    async with asyncio.timeout(servers.BOUND_S):
        while not (await wire.request("GET", "/api/rooms/bench/members/scout"))["waiting"]:
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def cold_start() -> AsyncIterator[Row]:
    """Whole processes: a bare interpreter, `mycelium --help`, and `mycelium room send` with its request."""
    async with servers.hub() as hub:
        await _room(hub.port, "bench")
        environment = {**hub.environment, "MYCELIUM_AGENT_HANDLE": "bench", "MYCELIUM_ACTIVE_ROOM": "bench"}
        mycelium = str(servers.BIN / "mycelium")

        def contender(name: str, *command: str) -> Contender:
            async def measure(count: int) -> list[float]:
                return [await asyncio.to_thread(_process, list(command), environment) for _ in range(count)]

            return Contender(name, "", measure)

        yield Row(
            "A cold process, start to end",
            "`--help` at most + 80 ms, `room send` at most + 120 ms over the bare interpreter",
            [
                contender("python -c pass", sys.executable, "-c", "pass"),
                contender("mycelium --help", mycelium, "--help"),
                contender("mycelium room send", mycelium, "room", "send", "hello"),
            ],
        )


def _process(command: list[str], environment: dict[str, str]) -> float:
    began = now_ms()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return now_ms() - began


@contextlib.asynccontextmanager
async def ready() -> AsyncIterator[Row]:
    """`mycelium up --detach` on an empty home, until it has printed its address."""

    async def measure(count: int) -> list[float]:
        return [await asyncio.to_thread(_up_and_down) for _ in range(count)]

    yield Row(
        "The hub is ready on an empty home",
        "under 3,000 ms",
        [Contender("mycelium up --detach", "", measure)],
    )


def _up_and_down() -> float:
    with tempfile.TemporaryDirectory(prefix="mycelium-ready-") as folder:
        environment = {"PATH": f"{servers.BIN}:{os.environ['PATH']}", "HOME": folder, "MYCELIUM_HOME": f"{folder}/home"}
        took = _process([str(servers.BIN / "mycelium"), "up", "--detach", "--port", "0"], environment)
        _process([str(servers.BIN / "mycelium"), "down"], environment)
        return took


Make = Callable[[], AbstractAsyncContextManager[Row | list[Row]]]
# What makes a row, the rounds that count, and how often each contender does it in a round.
ROWS: dict[str, tuple[Make, int, int]] = {
    "watcher": (post_to_watcher, 5, 100),
    "mention": (mention_to_process, 3, 40),
    "start": (cold_start, 5, 8),
    "ready": (ready, 2, 3),
    "kernel": (posts.kernel, 5, 30),
    "http": (posts.http, 5, 30),
    "watchers": (many.watchers, 5, 10),
    "dropped": (many.dropped, 3, 1),
    "rooms": (growth.rooms, 5, 100),
    "messages": (large.messages, 5, 60),
    "unread": (large.unread, 5, 50),
    "hello": (engines.mention_answered, 5, 20),
    "findable": (findable.written, 3, 30),
    "by-hand": (findable.by_hand, 2, 1),
    "board": (board.boards, 5, 20),
    "claims": (claims.claims, 5, 30),
    "leases": (claims.leases, 1, 10_000),
    "vectors": (vectors.rooms, 3, 200),
    "embedding": (vectors.embedding, 3, 40),
    "signed-in": (signed_in.reads, 5, 300),
    "search": (search.tenth, 3, 100),
    "search-whole": (search.whole, 3, 100),
    **PEERS,
    "peer-vectors": (vectors.peers, 3, 200),
}
