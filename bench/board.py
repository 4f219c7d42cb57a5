"""Rows about the board of ten, a thousand and a hundred thousand tasks: over HTTP, and by `mycelium board`.

One hub has all three as rooms, filled by storing facts as an import would. As many rows need a person in each, and as
many are claimed: what is measured is what all the others cost that are not shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import mycelium_board.service
import mycelium_gateway.service
import mycelium_rooms.service
from bench import servers
from bench.harness import Contender, Row, now_ms
from bench.wire import Wire
from mycelium.board.v1 import service_pb2 as board_pb2
from mycelium.memory.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import people_pb2, service_pb2
from mycelium_gateway.server import bind
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import clock, events, headers, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor

SIZES = (10, 1_000, 100_000)
NEEDED, HELD = 5, 2  # rows of each board that need a person; that are claimed
PAGE = 50
CHUNK = 4_000
AVERY = Actor("avery", "bench")
HANDLE = {"mycelium-handle": "avery"}
YEAR_MS = 365 * 24 * 3600 * 1000
GOAL = "ratio under 1.5"
STATUSES = ("blocked", "in_review")


def _written(room_id: str, room: str, number: int, now: int) -> events_pb2.DocumentWritten:
    """A task: the first few need somebody, of the others every second one was closed a year ago."""
    status = STATUSES[number % 2] if number < NEEDED else "resolved" if number % 2 else "open"
    at = clock.from_millis(now - YEAR_MS + number)
    fields = {"title": f"Task {number}", "status": status, "priority": ("high", "low")[number % 2]}
    event = events_pb2.DocumentWritten(
        room_id=room_id,
        room=room,
        key=f"work/task-{number}",
        version=1,
        created_by="avery",
        updated_by="avery",
        created_at=at,
        updated_at=at,
        thread=clock.new_id(),
        origin=views_pb2.ORIGIN_IMPORT,
    )
    event.content.body = f"What is to be done in task {number}, in a line or two."
    event.content.fields_json = json.dumps(fields)
    return event


@dataclass(frozen=True)
class Services:
    """What runs: the board's tables and log, the bus, and the port of the gateway."""

    board: Runtime
    bus: Bus
    port: int
    home: Path


class Board:
    """One of the boards of a hub."""

    def __init__(self, hub: Services, size: int) -> None:
        self.size, self.name, self._hub = size, f"board-{size}", hub
        self.title = f"a board of {size:,} tasks"
        self._wire = Wire(hub.port)

    async def fill(self) -> None:
        """Make its room, store the facts of its documents, and claim a few of them."""
        made = await self._hub.bus.ask(
            service_pb2.CreateRoomRequest(name=self.name), service_pb2.CreateRoomResponse, actor=AVERY
        )
        member = people_pb2.SaveMemberRequest(room=self.name, handle="avery")
        await self._hub.bus.ask(member, people_pb2.SaveMemberResponse, actor=AVERY)
        room_id, now = made.message.room.id, clock.millis(clock.system_clock())
        stored = {headers.TYPE: events.type_name(events_pb2.DocumentWritten)}
        for first in range(0, self.size, CHUNK):
            deadline = clock.system_clock() + timedelta(seconds=60)
            appends = []
            for number in range(first, min(first + CHUNK, self.size)):
                event = _written(room_id, self.name, number, now)
                subject = subjects.fact("memory", room_id, "document", subjects.digest(event.key))
                data = event.SerializeToString()
                appends.append(self._hub.board.log.append(subject, data, stored, expect=None, deadline=deadline))
            await asyncio.gather(*appends)
        assert self._hub.board.projector
        await self._hub.board.projector.catch_up()
        for number in range(HELD):
            claim = board_pb2.ClaimTaskRequest(room=self.name, task=f"task-{NEEDED + 1 + 2 * number}", ttl_s=86_400)
            await self._hub.bus.ask(claim, board_pb2.ClaimTaskResponse, actor=AVERY)

    async def measure_needed(self, count: int) -> list[float]:
        """The board as it is shown when nothing is said."""
        return await self._measure(count, "filter=needs-you", NEEDED)

    async def measure_held(self, count: int) -> list[float]:
        """What is claimed."""
        return await self._measure(count, "filter=in-flight", HELD)

    async def measure_page(self, count: int) -> list[float]:
        """A page of everything."""
        return await self._measure(count, f"filter=all&limit={PAGE}", min(PAGE, self.size))

    async def measure_ready(self, count: int) -> list[float]:
        """A page of what can be begun."""
        return await self._measure(count, f"filter=ready&limit={PAGE}", min(PAGE, (self.size - NEEDED) // 2 - HELD))

    async def measure_command(self, count: int) -> list[float]:
        """`mycelium board`, a process each."""
        return [await self._timed_command() for _ in range(count // 4)]

    async def _measure(self, count: int, query: str, rows: int) -> list[float]:
        self._wire.close()  # the hub ends lines on which nothing comes, while the others are measured
        self._wire = Wire(self._hub.port)
        samples = []
        for number in range(count + 1):
            began = now_ms()
            page = await self._wire.request("GET", f"/api/rooms/{self.name}/board?{query}", headers=HANDLE)
            if number:  # the first one opens the line
                samples.append(now_ms() - began)
            assert len(page["items"]) == rows, (query, len(page["items"]))
            assert (page["needs_you"], page["in_flight"]) == (NEEDED, HELD), page
        return samples

    async def _timed_command(self) -> float:
        began = now_ms()
        process = await asyncio.create_subprocess_exec(
            str(servers.BIN / "mycelium"),
            "board",
            "--room",
            self.name,
            env={
                "PATH": os.environ["PATH"],
                "MYCELIUM_HOME": str(self._hub.home),
                "MYCELIUM_API_URL": f"http://127.0.0.1:{self._hub.port}",
                "MYCELIUM_AGENT_HANDLE": "avery",
            },
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0
        return now_ms() - began


@contextlib.asynccontextmanager
async def _services() -> AsyncIterator[Services]:
    """Rooms, the board and a gateway on a server of their own, which is all that a board is read through."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mycelium-board-")))
        server = await stack.enter_async_context(testing.nats_server(folder / "nats"))
        rooms = await run.start(mycelium_rooms.service.service(), server.settings("rooms"), folder / "rooms")
        stack.push_async_callback(rooms.stop)
        board = await run.start(mycelium_board.service.service(), server.settings("board"), folder / "board")
        stack.push_async_callback(board.stop)
        listener = stack.enter_context(bind(GatewaySettings(port=0)))
        listener.listen()
        gateway = mycelium_gateway.service.service(GatewaySettings(listener=listener))
        door = await run.start(gateway, server.settings("gateway"), None)
        stack.push_async_callback(door.stop)
        connection = await Connection.open(server.settings("test"))
        stack.push_async_callback(connection.close)
        yield Services(board, Bus(connection, "test"), listener.getsockname()[1], folder / "home")


@contextlib.asynccontextmanager
async def boards() -> AsyncIterator[list[Row]]:
    """Three boards of one hub."""
    async with _services() as hub:
        made = [Board(hub, size) for size in SIZES]
        for one in made:
            await one.fill()
        large = made[1:]  # a page of the smallest would be shorter
        yield [
            _row(f"The board over HTTP: {NEEDED} rows that need a person, and the numbers", made, Board.measure_needed),
            _row("What is in flight", made, Board.measure_held),
            _row(f"A page of {PAGE} of everything", large, Board.measure_page),
            _row(f"A page of {PAGE} of what is ready", large, Board.measure_ready),
            _row("`mycelium board`, a process from start to end", made, Board.measure_command),
        ]


def _row(title: str, made: list[Board], measure: Callable[[Board, int], Awaitable[list[float]]]) -> Row:
    return Row(title, GOAL, [Contender(one.title, "read", partial(measure, one)) for one in made])
