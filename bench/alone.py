"""A board as a process of its own, on a NATS server of its own, and a room full of tasks in its log."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

from google.protobuf.message import Message
from nats.js.api import StreamConfig

from mycelium.board.v1 import service_pb2
from mycelium.memory.v1 import events_pb2 as memory_events_pb2
from mycelium.memory.v1.views_pb2 import ORIGIN_IMPORT
from mycelium.rooms.v1 import events_pb2 as rooms_events_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_service_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_kernel import clock, events, headers, names, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.log import Log
from mycelium_kernel.service import Actor

DATA = b"x" * 240
ROOM_ID = str(uuid.UUID(int=1))
BENCH = Actor("bench", "bench")
EXPECT_NOTHING = {"Nats-Expected-Last-Subject-Sequence": "0"}


class Board:
    """A board as a process of its own, and a room full of tasks in its log."""

    def __init__(self, connection: Connection, log: Log, pid: int, url: str) -> None:
        self.connection, self.log, self.pid, self.url = connection, log, pid, url
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

    async def set(self) -> None:
        """The least that a service of the kernel can do to compare and set."""
        request = rooms_service_pb2.SaveUserRequest(handle=str(next(self._made)), name="bench")
        await self.bus.ask(request, rooms_service_pb2.SaveUserResponse, actor=BENCH, timeout_s=30)

    async def raw(self) -> None:
        """Compare and set, without anything else."""
        subject = f"raw.{next(self._made)}"
        await self.connection.jetstream.publish(subject, DATA, headers=EXPECT_NOTHING)


@contextlib.asynccontextmanager
async def least(board: Board, folder: Path) -> AsyncIterator[None]:
    """The barest service beside the board, which reads none of its facts."""
    folder.mkdir()
    program = (sys.executable, "-m", "bench.program", "set", board.url, str(folder))
    process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    assert (await process.stdout.readline()).strip() == b"ready"
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def board() -> AsyncIterator[Board]:
    """It answers, and its room is open."""
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
                alone = Board(connection, log, process.pid, server.url)
                await alone.open_room()
                await alone.list()
                yield alone
            finally:
                process.terminate()
                await process.wait()
