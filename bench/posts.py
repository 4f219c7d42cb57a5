"""Rows about many clients at once: durable posts of 64, at the kernel against raw JetStream, and over HTTP.

A round gives one sample, posts a second; the time that each post took is told beside the table.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from nats.js.api import StreamConfig

from bench import servers
from bench.harness import Contender, Row, now_ms, quantile
from bench.wire import Wire
from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import clock, events, headers, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.log import Log
from mycelium_kernel.service import Actor

CLIENTS = 64
TEXT = "x" * 240
MESSAGES = "/api/rooms/bench/messages"
ALWAYS = "on disk (sync always)"
PER_SECOND = "posts a second, of 64 clients that each wait for their answer"
Post = Callable[[int], Awaitable[object]]


def together(name: str, post: Post, clients: int = CLIENTS) -> Contender:
    """A contender whose clients post one after the other, all at the same time."""
    took: list[float] = []

    async def client(number: int, count: int) -> None:
        for _ in range(count):
            began = now_ms()
            await post(number)
            took.append(now_ms() - began)

    async def measure(count: int) -> list[float]:
        if len(took) == clients * count:  # those of the round that is thrown away
            took.clear()
        began = now_ms()
        await asyncio.gather(*(client(number, count) for number in range(clients)))
        return [clients * count / (now_ms() - began) * 1000]

    def note() -> str:
        return f"a post took p50 {statistics.median(took):.1f} ms, p99 {quantile(took, 0.99):.1f} ms, n {len(took):,}"

    return Contender(name, ALWAYS, measure, [note])


@contextlib.asynccontextmanager
async def _service(name: str, folder: Path) -> AsyncIterator[tuple[testing.NatsServer, Bus, Connection]]:
    """A service in its own process, on a NATS server of its own, and a bus to ask it."""
    async with testing.nats_server(folder / "nats") as server:
        program = [sys.executable, "-m", "bench.program", name, server.url, str(folder)]
        process = await asyncio.create_subprocess_exec(*program, stdout=subprocess.PIPE)
        assert process.stdout
        assert (await process.stdout.readline()).strip() == b"ready"
        connection = await Connection.open(server.settings("test"))
        try:
            yield server, Bus(connection, "test"), connection
        finally:
            await connection.close()
            process.terminate()
            await process.wait()


def _ask(bus: Bus, room: str) -> Post:
    async def post(number: int) -> None:
        request = service_pb2.PostMessageRequest(room=room, content=TEXT)
        reply = await bus.ask(request, service_pb2.PostMessageResponse, actor=Actor(f"client{number}", "bench"))
        assert reply.sequence

    return post


def _append(log: Log) -> Post:
    """What the kernel's writer does, without anybody being asked over the bus, and without tables."""
    stored = {headers.TYPE: events.type_name(events_pb2.MessagePosted)}

    async def post(_number: int) -> None:
        deadline = clock.system_clock() + timedelta(seconds=30)
        await log.append(
            subjects.fact("bench", "log", "entry", "1"), TEXT.encode(), stored, expect=None, deadline=deadline
        )

    return post


@contextlib.asynccontextmanager
async def kernel() -> AsyncIterator[Row]:
    """Raw one-by-one publishes, the kernel's writer, the barest service over the bus, and the rooms service."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mycelium-posts-")))
        _, bare, connection = await stack.enter_async_context(_service("bare", folder / "bare"))
        _, rooms, _ = await stack.enter_async_context(_service("rooms", folder / "rooms"))
        await connection.jetstream.add_stream(StreamConfig(name="RAW", subjects=["raw"]))
        made = service_pb2.CreateRoomRequest(name="bench")
        await rooms.ask(made, service_pb2.CreateRoomResponse, actor=Actor("bench", "bench"))
        log = Log(connection, clock.system_clock)
        log.start()
        stack.push_async_callback(log.stop)

        async def raw(_number: int) -> None:
            await connection.jetstream.publish("raw", TEXT.encode())

        yield Row(
            "Durable posts of 64 clients, at the kernel",
            "at least 3 × raw JetStream",
            [
                together("JetStream publish, one by one", raw),
                together("the kernel's writer (group append)", _append(log)),
                together("the barest service, over the bus", _ask(bare, "bare")),
                together("the rooms service, over the bus", _ask(rooms, "bench")),
            ],
            unit=PER_SECOND,
        )


def over_http(name: str, port: int, path: str, body: bytes) -> Contender:
    """A contender whose clients keep one connection each."""
    wires: dict[int, Wire] = {}

    async def post(number: int) -> None:
        wire = wires.setdefault(number, Wire(port))
        await wire.request("POST", path, body, {"mycelium-handle": f"client{number}"})

    contender = together(name, post)
    measure = contender.measure

    async def measure_anew(count: int) -> list[float]:
        wires.clear()  # an idle connection is closed after a while
        return await measure(count)

    contender.measure = measure_anew
    return contender


@contextlib.asynccontextmanager
async def http() -> AsyncIterator[Row]:
    """A bare FastAPI handler that publishes, and the hub, in one process and in several."""
    split = servers.hub(MYCELIUM_RUNTIME_SPLIT="true", MYCELIUM_RUNTIME_REPLICAS="2")
    async with servers.hub() as hub, split as several, servers.floor() as floor:
        for one in (hub, several):
            wire = Wire(one.port)
            await wire.request("POST", "/api/rooms", json.dumps({"name": "bench"}).encode())
            wire.close()
        body = json.dumps({"content": TEXT}).encode()
        yield Row(
            "Durable posts of 64 clients, over HTTP",
            "at least 1 × the bare handler",
            [
                over_http("FastAPI + JetStream, barest", floor.port, "/post", body),
                over_http("Mycelium", hub.port, MESSAGES, body),
                over_http("Mycelium, two gateways and two rooms services", several.port, MESSAGES, body),
            ],
            unit=PER_SECOND,
        )
