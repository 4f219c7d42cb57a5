"""Rows about claims: how many a second against raw compare-and-set, how long one takes, how late their ends are told.

The board is a process of its own on a NATS server; raw compare-and-set is a publish that expects its subject to be
empty, to the same server in the same run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from google.protobuf.message import Message

from bench import alone, servers
from bench.alone import BENCH, ROOM_ID, Board
from bench.harness import Contender, Row, now_ms, quantile
from bench.wire import Wire
from mycelium.board.v1 import events_pb2 as board_events_pb2
from mycelium.board.v1 import views_pb2
from mycelium_kernel import clock, subjects
from mycelium_kernel.tail import RawFact, Tail

CLIENTS = 64
ALWAYS = "on disk (sync always)"
LEASES_BEGIN_S = 20.0  # how long before their end ten thousand claims are stored: they have to be in the tables by then
EXPIRE_S = 120.0
Take = Callable[[], Awaitable[object]]


def _together(name: str, board: Board, prepare: Callable[[int], Awaitable[list[Take]]]) -> Contender:
    """A contender of many clients, each of which does its share one after the other."""
    took: list[float] = []
    busy: list[float] = []  # of the board, a claim

    async def client(takes: Sequence[Take]) -> None:
        for take in takes:
            began = now_ms()
            await take()
            took.append(now_ms() - began)

    async def measure(count: int) -> list[float]:
        takes = await prepare(CLIENTS * count)
        took.clear()
        began, before = now_ms(), board.busy_ms()
        await asyncio.gather(*(client(takes[number::CLIENTS]) for number in range(CLIENTS)))
        rate = len(takes) / (now_ms() - began) * 1000
        busy.append((board.busy_ms() - before) / len(takes))
        return [rate]

    def note() -> str:
        said = f"one took p50 {statistics.median(took):.1f} ms, p99 {quantile(took, 0.99):.1f} ms, n {len(took):,}"
        return f"{said}; {statistics.median(busy):.2f} ms of the board's processor time each"

    return Contender(name, ALWAYS, measure, [note])


def _rate(board: Board) -> Row:
    async def raw(count: int) -> list[Take]:
        return [board.raw] * count

    async def least(count: int) -> list[Take]:
        return [board.set] * count

    async def claims(count: int) -> list[Take]:
        def claiming(key: str) -> Take:
            return lambda: board.claim(key)

        return [claiming(key) for key in await board.tasks(count)]

    return Row(
        "Claims of different tasks, of 64 clients",
        "at least 0.8 × raw compare-and-set",
        [
            _together("JetStream, compare-and-set", board, raw),
            _together("the barest service, over the bus", board, least),
            _together("the board, over the bus", board, claims),
        ],
        unit="claims a second",
    )


def _latency(board: Board, hub: servers.RunningHub) -> Row:
    async def raw(count: int) -> list[float]:
        return [await _timed(board.raw()) for _ in range(count)]

    async def by_bus(count: int) -> list[float]:
        (key,) = await board.tasks(1)
        samples = []
        for _ in range(count):
            began = now_ms()
            token = await board.claim(key)
            samples.append(now_ms() - began)
            await board.release(key, token)
        return samples

    async def over_http(count: int) -> list[float]:
        wire, samples = Wire(hub.port), []
        task = "/api/rooms/bench/tasks/work%2Fclaim"
        await wire.request("GET", "/health")
        for _ in range(count):
            began = now_ms()
            claim = await wire.request("POST", f"{task}/claim", b"{}", {"mycelium-handle": "bench"})
            samples.append(now_ms() - began)
            proof = json.dumps({"token": claim["token"]}).encode()
            await wire.request("POST", f"{task}/release", proof, {"mycelium-handle": "bench"})
        wire.close()
        return samples

    return Row(
        "One claim at a time",
        "none but to know it",
        [
            Contender("JetStream, compare-and-set", ALWAYS, raw),
            Contender("the board, over the bus", ALWAYS, by_bus),
            Contender("the hub, over HTTP", ALWAYS, over_http),
        ],
    )


async def _timed(work: Awaitable[object]) -> float:
    began = now_ms()
    await work
    return now_ms() - began


async def _expire(board: Board, count: int) -> tuple[list[float], float]:
    """How many milliseconds after their common end each of so many claims is told to be over, and what that took."""
    keys = await board.tasks(count)
    end_s = time.time() + LEASES_BEGIN_S
    ends = clock.from_millis(round(end_s * 1000))
    lease = views_pb2.Lease(holder=BENCH.handle, ttl_s=1800, expires_at=ends)
    claims: list[tuple[str, Message]] = []
    for key in keys:
        event = board_events_pb2.TaskMoved(room_id=ROOM_ID, room="bench", key=key, by=BENCH.handle, lease=lease)
        event.move = views_pb2.MOVE_CLAIMED
        claims.append((subjects.fact("board", ROOM_ID, "task", subjects.digest(key)), event))
    await board.append(claims)
    await board.list()
    assert time.time() < end_s, "they could not be stored before their end"
    samples: list[float] = []
    over = asyncio.Event()

    def on_facts(facts: list[RawFact]) -> None:
        moved = [board_events_pb2.TaskMoved.FromString(fact.data) for fact in facts if fact.type.endswith("TaskMoved")]
        late_ms = (time.time() - end_s) * 1000
        samples.extend(late_ms for event in moved if event.move == views_pb2.MOVE_EXPIRED)
        if len(samples) >= count:
            over.set()

    tail, before = Tail(board.connection, (subjects.of_service("board"),), on_facts), board.busy_ms()
    await tail.start(None)
    async with asyncio.timeout(LEASES_BEGIN_S + EXPIRE_S):
        await over.wait()
    await tail.stop()
    return samples, board.busy_ms() - before


@contextlib.asynccontextmanager
async def claims() -> AsyncIterator[list[Row]]:
    """A board on a NATS server of its own, and a hub."""
    async with contextlib.AsyncExitStack() as stack:
        board = await stack.enter_async_context(alone.board())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mycelium-least-"))
        await stack.enter_async_context(alone.least(board, Path(folder) / "tables"))
        hub = await stack.enter_async_context(servers.hub())
        wire = Wire(hub.port)
        handle = {"mycelium-handle": "bench"}
        await wire.request("POST", "/api/rooms", json.dumps({"name": "bench"}).encode(), handle)
        member = json.dumps({"handle": "bench", "kind": "agent"}).encode()
        await wire.request("POST", "/api/rooms/bench/members", member, handle)
        await wire.request("POST", "/api/rooms/bench/tasks", json.dumps({"title": "claim"}).encode(), handle)
        wire.close()
        yield [_rate(board), _latency(board, hub)]


@contextlib.asynccontextmanager
async def leases() -> AsyncIterator[Row]:
    """Ten thousand claims that end at the same moment."""
    async with alone.board() as board:
        busy: list[float] = []

        async def measure(count: int) -> list[float]:
            samples, ms = await _expire(board, count)
            busy.append(ms / count)
            return samples

        def note() -> str:
            return f"{busy[-1]:.2f} ms of the board's processor time each, until the last"

        yield Row(
            "Claims that end at once: the fact that says so, after their time",
            "none but to know it",
            [Contender("the board", ALWAYS, measure, [note])],
        )
