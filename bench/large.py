"""Rows about size: what history, search, disk and a wake cost in a small room and in a large one, asked over the bus.

The rooms are filled by appending facts in batches, as an import would; what is measured is the rooms service alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

from google.protobuf.message import Message

import mycelium_rooms.service
from bench.harness import Contender, Row, now_ms
from mycelium.rooms.v1 import events_pb2, people_pb2, service_pb2, views_pb2
from mycelium_kernel import clock, events, headers, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor

MESSAGES = {"small": 1_000, "large": 1_000_000}
UNREAD = {"small": 0, "large": 100_000}
CHUNK = 4_000
FOLDERS = {"log": "nats", "tables": "rooms.sqlite*"}
WORD = "usual"  # is in every message
AVERY, SCOUT = Actor("avery", "bench"), Actor("scout", "bench")


async def _fill(runtime: Runtime, room_id: str, count: int, deliver_to: str) -> None:
    """Append messages to a room, and wait until the tables have them."""
    for first in range(0, count, CHUNK):
        facts = [_posted(room_id, number, deliver_to) for number in range(first, min(first + CHUNK, count))]
        deadline = clock.system_clock() + timedelta(seconds=60)
        stored = {headers.TYPE: events.type_name(events_pb2.MessagePosted)}
        appends = [
            runtime.log.append(
                subjects.posts(room_id), fact.SerializeToString(), stored, expect=None, deadline=deadline
            )
            for fact in facts
        ]
        await asyncio.gather(*appends)
    assert runtime.projector
    await runtime.projector.catch_up()


def _posted(room_id: str, number: int, deliver_to: str) -> Message:
    return events_pb2.MessagePosted(
        room_id=room_id,
        message_id=clock.new_id(),
        sender_handle="avery",
        content=f"message {number} about the usual things of a working day",
        message_type="message",
        deliver_to=[deliver_to] if deliver_to else [],
        created_at=clock.to_timestamp(clock.system_clock()),
    )


@contextlib.asynccontextmanager
async def _rooms() -> AsyncIterator[tuple[Runtime, Bus, Path]]:
    with tempfile.TemporaryDirectory(prefix="mycelium-large-") as folder:
        async with testing.nats_server(Path(folder) / "nats") as server:
            runtime = await run.start(mycelium_rooms.service.service(), server.settings("rooms"), Path(folder))
            connection = await Connection.open(server.settings("test"))
            try:
                yield runtime, Bus(connection, "test"), Path(folder)
            finally:
                await connection.close()
                await runtime.stop()


async def _make(bus: Bus, name: str) -> str:
    made = await bus.ask(service_pb2.CreateRoomRequest(name=name), service_pb2.CreateRoomResponse, actor=AVERY)
    member = people_pb2.SaveMemberRequest(room=name, handle="scout")
    await bus.ask(member, people_pb2.SaveMemberResponse, actor=AVERY)
    return made.message.room.id


def _disk(runtime: Runtime, folder: Path) -> dict[str, int]:
    """Bytes on disk of the log and of the tables."""
    assert runtime.tables
    runtime.tables.shrink()
    found = {}
    for name, pattern in FOLDERS.items():
        paths = [path for top in folder.glob(pattern) for path in (top, *top.rglob("*")) if path.is_file()]
        found[name] = sum(path.stat().st_blocks * 512 for path in paths)
    return found


@contextlib.asynccontextmanager
async def messages() -> AsyncIterator[list[Row]]:
    """A page of fifty messages from the end of a room, and one of those with a common word."""
    async with _rooms() as (runtime, bus, folder):
        notes: dict[str, str] = {}
        for name, count in MESSAGES.items():
            room_id, before = await _make(bus, name), _disk(runtime, folder)
            await _fill(runtime, room_id, count, "")
            after = _disk(runtime, folder)
            each = [f"{(after[part] - before[part]) / count:,.0f} bytes a message in the {part}" for part in FOLDERS]
            notes[name] = ", ".join(each)

        def contender(name: str, word: str) -> Contender:
            async def measure(rounds: int) -> list[float]:
                return [await _page(bus, name, word) for _ in range(rounds)]

            told = [] if word else [lambda: notes[name]]
            return Contender(f"a room of {MESSAGES[name]:,} messages", "read", measure, told)

        yield [
            Row(
                "A page of history (50 messages), over the bus", "ratio under 1.2", [contender(n, "") for n in MESSAGES]
            ),
            Row(
                "A search for a common word (50 messages), over the bus",
                "ratio under 1.2; under 20 ms in the large room",
                [contender(name, WORD) for name in MESSAGES],
            ),
        ]


async def _page(bus: Bus, room: str, word: str) -> float:
    began = now_ms()
    request = service_pb2.ListMessagesRequest(room=room, limit=50, query=word)
    page = await bus.ask(request, service_pb2.ListMessagesResponse, actor=AVERY)
    took = now_ms() - began
    assert len(page.message.messages) == 50
    return took


@contextlib.asynccontextmanager
async def unread() -> AsyncIterator[Row]:
    """Taking the next delivery of a queue that has few or many unread."""
    async with _rooms() as (runtime, bus, _folder):
        for name, count in UNREAD.items():
            await _fill(runtime, await _make(bus, name), count, "scout")

        def contender(name: str, count: int) -> Contender:
            async def measure(rounds: int) -> list[float]:
                return [await _take(bus, name) for _ in range(rounds)]

            return Contender(f"{count:,} unread before", "on disk (sync always)", measure)

        rows = [contender(name, count) for name, count in UNREAD.items()]
        yield Row("A mention is posted and taken, over the bus", "ratio under 1.2", rows)


async def _take(bus: Bus, room: str) -> float:
    began = now_ms()
    post = service_pb2.PostMessageRequest(room=room, content="@scout next")
    await bus.ask(post, service_pb2.PostMessageResponse, actor=AVERY)
    request = service_pb2.TakeDeliveryRequest(room=room, new_call=True)
    taken = await bus.ask(request, service_pb2.TakeDeliveryResponse, actor=SCOUT)
    assert taken.message.message_id
    mark = service_pb2.MarkDeliveryRequest(
        room=room, message=taken.message.message_id, state=views_pb2.DELIVERY_STATE_DELIVERED
    )
    await bus.ask(mark, service_pb2.MarkDeliveryResponse, actor=SCOUT)
    return now_ms() - began
