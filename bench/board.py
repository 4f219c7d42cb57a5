"""Rows about the board of ten, a thousand and a hundred thousand tasks: over HTTP, and by `mycelium board`.

One hub has all three as rooms, brought as bundles. As many rows need a person in each, and as many are claimed: what is
measured is what all the others cost who are not shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator

from bench import servers
from bench.harness import Contender, Row, now_ms
from bench.wire import Wire
from mycelium.memory.v1 import events_pb2, transfer_pb2
from mycelium.rooms.v1 import transfer_pb2 as rooms_transfer_pb2
from mycelium.rooms.v1 import views_pb2
from mycelium_gateway import bundle
from mycelium_kernel import clock, events

SIZES = (10, 1_000, 100_000)
NEEDED, HELD = 5, 2  # rows of each board that need a person; that are claimed
PAGE = 50
HANDLE = {"mycelium-handle": "bench"}
YEAR_MS = 365 * 24 * 3600 * 1000
IMPORT_S = 1_800.0
GOAL = "ratio under 1.5"
STATUSES = ("blocked", "in_review")


def _document(number: int, now: int) -> events_pb2.DocumentWritten:
    """A task: the first few need somebody, of the others every second one was closed a year ago."""
    status = STATUSES[number % 2] if number < NEEDED else "resolved" if number % 2 else "open"
    at = clock.from_millis(now - YEAR_MS + number)
    fields = {"title": f"Task {number}", "status": status, "priority": ("high", "low")[number % 2]}
    event = events_pb2.DocumentWritten(
        key=f"work/task-{number}",
        version=1,
        created_by="bench",
        updated_by="bench",
        created_at=at,
        updated_at=at,
        thread=str(uuid.UUID(int=(now << 80) | (7 << 76) | (2 << 62) | number)),
    )
    event.content.body = f"What is to be done in task {number}, in a line or two."
    event.content.fields_json = json.dumps(fields)
    event.content.fields_yaml = "".join(f"{name}: {value}\n" for name, value in fields.items())
    event.content.unsearched = True
    return event


def _bundle(name: str, size: int) -> Iterator[bytes]:
    """The room as a file."""
    writer, now = bundle.Writer(), clock.millis(clock.system_clock())
    room = views_pb2.Room(name=name, created_by="bench", created_at=clock.from_millis(now))
    head = rooms_transfer_pb2.ExportRoomResponse(room=room, members=["bench"], until=size)
    yield writer.begin(head, "bench", clock.rfc3339(now))
    kind = events.type_name(events_pb2.DocumentWritten)
    for number in range(size):
        event = _document(number, now)
        fact = transfer_pb2.DocumentFact(sequence=number + 1, type=kind, entity=event.key, at=event.updated_at)
        fact.data = event.SerializeToString()
        yield writer.facts([fact])
    yield writer.end()


class Board:
    """One of the boards of a hub."""

    def __init__(self, hub: servers.RunningHub, size: int) -> None:
        self.size, self.name, self._hub = size, f"board-{size}", hub
        self.title = f"a board of {size:,} tasks"
        self._wire = Wire(hub.port)

    async def fill(self) -> None:
        """Bring its room, and claim a few of its tasks."""
        path = self._hub.home.parent / f"{self.name}.jsonl"
        with path.open("wb") as file:
            file.writelines(_bundle(self.name, self.size))
        async with asyncio.timeout(IMPORT_S):
            await asyncio.to_thread(self._run, "room", "import", str(path))
        path.unlink()
        await self._wire.request(
            "POST", f"/api/rooms/{self.name}/members", json.dumps({"handle": "bench", "kind": "agent"}).encode(), HANDLE
        )
        for number in range(HELD):
            task = f"/api/rooms/{self.name}/tasks/work%2Ftask-{NEEDED + 1 + 2 * number}/claim"
            await self._wire.request("POST", task, json.dumps({"ttl_s": 86400}).encode(), HANDLE)

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
        samples = []
        for _ in range(count):
            began = now_ms()
            await asyncio.to_thread(self._run, "board", "--room", self.name)
            samples.append(now_ms() - began)
        return samples

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

    def _run(self, *words: str) -> None:
        program = str(servers.BIN / "mycelium")
        environment = {**self._hub.environment, "MYCELIUM_AGENT_HANDLE": "bench"}
        subprocess.run([program, *words], env=environment, check=True, stdout=subprocess.DEVNULL)


@contextlib.asynccontextmanager
async def boards() -> AsyncIterator[list[Row]]:
    """Three boards of one hub."""
    async with servers.hub() as hub:
        made = [Board(hub, size) for size in SIZES]
        for one in made:
            await one.fill()
        large = made[1:]  # a page of the smallest would be shorter
        yield [
            Row(
                f"The board over HTTP: {NEEDED} rows that need a person, and the numbers",
                GOAL,
                [Contender(one.title, "read", one.measure_needed) for one in made],
            ),
            Row("What is in flight", GOAL, [Contender(one.title, "read", one.measure_held) for one in made]),
            Row(
                f"A page of {PAGE} of everything",
                GOAL,
                [Contender(one.title, "read", one.measure_page) for one in large],
            ),
            Row(
                f"A page of {PAGE} of what is ready",
                GOAL,
                [Contender(one.title, "read", one.measure_ready) for one in large],
            ),
            Row(
                "`mycelium board`, a process from start to end",
                GOAL,
                [Contender(one.title, "read", one.measure_command) for one in made],
            ),
        ]
