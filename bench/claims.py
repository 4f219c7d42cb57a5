"""Rows about claims: how many a second against raw compare-and-set, how long one takes, how late their ends are told.

The board is a process of its own on a NATS server; raw compare-and-set is a publish that expects its subject to be
empty, to the same server in the same run.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

from google.protobuf.message import Message
from nats.js.api import StreamConfig

from bench import servers
from bench.harness import Contender, Row, now_ms, quantile
from bench.wire import Wire
from mycelium.board.v1 import events_pb2 as board_events_pb2
from mycelium.board.v1 import service_pb2, views_pb2
from mycelium.memory.v1 import events_pb2 as memory_events_pb2
from mycelium.memory.v1.views_pb2 import ORIGIN_IMPORT
from mycelium.rooms.v1 import events_pb2 as rooms_events_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_kernel import clock, events, headers, names, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.log import Log
from mycelium_kernel.service import Actor
from mycelium_kernel.tail import RawFact, Tail

CLIENTS = 64
ALWAYS = "on disk (sync always)"
DATA = b"x" * 240
ROOM_ID = str(uuid.UUID(int=1))
BENCH = Actor("bench", "bench")
LEASES_BEGIN_S = 20.0  # how long before their end ten thousand claims are stored: they have to be in the tables by then
EXPIRE_S = 120.0
EXPECT_NOTHING = {"Nats-Expected-Last-Subject-Sequence": "0"}
Take = Callable[[], Awaitable[object]]


class Board:
    """A board as a process of its own, and a room full of tasks in its log."""

    def __init__(self, connection: Connection, log: Log, pid: int) -> None:
        self.connection, self.log, self.pid = connection, log, pid
        self.bus = Bus(connection, "test")
        self._made = itertools.count(1)

    async def append(self, stored: Sequence[tuple[str, Message]]) -> None:
        """Facts of any service, as many in a batch as fit."""
        deadline = clock.system_clock() + timedelta(seconds=60)
        for begin in range(0, len(stored), 1000):
            asked = [
                self.log.append(
                    subject,
                    event.SerializeToString(),
                    {headers.TYPE: events.type_name(event)},
                    expect=None,
                    deadline=deadline,
                )
                for subject, event in stored[begin : begin + 1000]
            ]
            await asyncio.gather(*asked)

    async def open_room(self) -> None:
        """A room with one member."""
        member = rooms_views_pb2.Member(handle=BENCH.handle)
        made = rooms_events_pb2.RoomCreated(room_id=ROOM_ID, name="bench", created_by=BENCH.handle)
        joined = rooms_events_pb2.MemberSaved(room_id=ROOM_ID, member=member)
        await self.append(
            [
                (subjects.room_name(names.fold_room_name("bench")), made),
                (subjects.fact("rooms", ROOM_ID, "member", BENCH.handle), joined),
            ]
        )

    async def tasks(self, count: int) -> list[str]:
        """So many new tasks, which the board has seen. They were brought from elsewhere, so that nothing follows."""
        keys = [f"work/task-{next(self._made)}" for _ in range(count)]
        now = clock.to_timestamp(clock.system_clock())
        made: list[tuple[str, Message]] = []
        for key in keys:
            event = memory_events_pb2.DocumentWritten(
                room_id=ROOM_ID, room="bench", key=key, version=1, thread=clock.new_id(), created_by=BENCH.handle,
                updated_by=BENCH.handle, created_at=now, updated_at=now, origin=ORIGIN_IMPORT,
            )  # fmt: skip
            event.content.fields_json = json.dumps({"title": key, "status": "open"})
            made.append((subjects.fact("memory", ROOM_ID, "document", subjects.digest(key)), event))
        await self.append(made)
        await self.list()
        return keys

    async def list(self) -> None:
        """A read, which waits for all that was stored."""
        request = service_pb2.ListTasksRequest(room="bench", limit=1)
        await self.bus.ask(request, service_pb2.ListTasksResponse, actor=BENCH, timeout_s=60)

    async def claim(self, key: str) -> int:
        """The token."""
        request = service_pb2.ClaimTaskRequest(room="bench", task=key)
        reply = await self.bus.ask(request, service_pb2.ClaimTaskResponse, actor=BENCH, timeout_s=30)
        return int(reply.message.claim.token)

    async def release(self, key: str, token: int) -> None:
        """Give it back."""
        request = service_pb2.ReleaseTaskRequest(room="bench", task=key, token=token)
        await self.bus.ask(request, service_pb2.ReleaseTaskResponse, actor=BENCH, timeout_s=30)

    def busy_ms(self) -> float:
        """The processor time that the board has taken: at a busy machine this says more than the time of day."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    async def raw(self) -> None:
        """Compare and set, without anything else."""
        subject = f"raw.{next(self._made)}"
        await self.connection.jetstream.publish(subject, DATA, headers=EXPECT_NOTHING)


@contextlib.asynccontextmanager
async def _board() -> AsyncIterator[Board]:
    with tempfile.TemporaryDirectory(prefix="mycelium-claims-") as name:
        folder = Path(name)
        async with testing.nats_server(folder / "nats") as server, contextlib.AsyncExitStack() as stack:
            connection = await Connection.open(server.settings("test"))
            stack.push_async_callback(connection.close)
            await connection.prepare()
            await connection.jetstream.add_stream(StreamConfig(name="RAW", subjects=["raw.*"]))
            log = Log(connection, clock.system_clock)
            log.start()
            stack.push_async_callback(log.stop)
            environment = {
                "MYCELIUM_NATS_SERVERS": server.url,
                "MYCELIUM_NATS_PASSWORD": testing.PASSWORD,
                "MYCELIUM_NATS_MONITOR_PASSWORD": testing.PASSWORD,
                "MYCELIUM_SERVICE_TABLES": str(folder / "board"),
                "MYCELIUM_SERVICE_PROBE_PORT": str(testing.free_port()),
                "MYCELIUM_LOG_LEVEL": "error",
            }
            program = (sys.executable, "-m", "mycelium_board")
            process = await asyncio.create_subprocess_exec(*program, env={**os.environ, **environment})
            try:
                board = Board(connection, log, process.pid)
                await board.open_room()
                await board.list()
                yield board
            finally:
                process.terminate()
                await process.wait()


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

    async def claims(count: int) -> list[Take]:
        def claiming(key: str) -> Take:
            return lambda: board.claim(key)

        return [claiming(key) for key in await board.tasks(count)]

    return Row(
        "Claims of different tasks, of 64 clients",
        "at least 0.8 × raw compare-and-set",
        [_together("JetStream, compare-and-set", board, raw), _together("the board, over the bus", board, claims)],
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
    async with _board() as board, servers.hub() as hub:
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
    async with _board() as board:
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
