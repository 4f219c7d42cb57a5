"""Erases what was said in a deleted room from the log's disk, so that nobody finds it there.

Purging subjects leaves their text on disk, so each fact is deleted by itself and overwritten (about 5 ms each). Done
again after half a minute, for facts that were on their way when the room was deleted. After a kill the rest is found
again. One thing can't be mended from here: JetStream notes a deletion before it overwrites the fact, so a nats-server
that is killed between the two leaves that one fact in its file, unreadable for everybody, until the file is compacted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import nats.js.errors
from nats.js.api import RawStreamMsg

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import clock, events, headers, subjects
from mycelium_kernel.connections import reaching
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

AGAIN = "erase"
AGAIN_S = 30.0  # longer than a command may take: nobody appends to the room any more
REMEMBERED_S = 3600.0  # for how long a lost timer is armed again
YOUNG = "SELECT room_id, deleted_at FROM grave WHERE deleted_at > ?"
CREATED = events.type_name(events_pb2.RoomCreated)


async def erase(runtime: Runtime, event: events_pb2.RoomDeleted, stored: Stored) -> None:
    """The room's facts, and the one that gave it its name. The tables are swept by each process for itself."""
    await _delete(runtime, subjects.of_room(event.room_id))
    await _delete(runtime, stored.subject, stored.sequence, lambda fact: _is_creation(fact, event.room_id))
    await _arm(runtime, event.room_id, clock.to_millis(event.deleted_at))


ERASER = Reaction("eraser", (events_pb2.RoomDeleted,), (subjects.of_room(subjects.NAMES),), erase)


async def erase_again(runtime: Runtime, room_id: str, _data: bytes) -> None:
    """A timer is due: the room's late facts."""
    await _delete(runtime, subjects.of_room(room_id))


async def arm(runtime: Runtime) -> None:
    """Arm the timers of rooms that were deleted a short while ago."""
    since = clock.millis(runtime.clock()) - round(REMEMBERED_S * 1000)
    assert runtime.tables is not None
    for room_id, deleted_at in runtime.tables.all(YOUNG, since):
        await _arm(runtime, room_id, deleted_at)


async def _arm(runtime: Runtime, room_id: str, deleted_at: int) -> None:
    due = clock.from_timestamp(clock.from_millis(deleted_at)) + timedelta(seconds=AGAIN_S)
    await runtime.timers.arm(room_id, AGAIN, due, AGAIN.encode())


def _is_creation(fact: RawStreamMsg, room_id: str) -> bool:
    """Whether a fact of a name gave it to this room; a name has had other rooms, and tombstones stay."""
    if (fact.headers or {}).get(headers.TYPE) != CREATED:
        return False
    return events_pb2.RoomCreated.FromString(fact.data or b"").room_id == room_id


async def _delete(
    runtime: Runtime, subject: str, before: int = 0, is_wanted: Callable[[RawStreamMsg], bool] = lambda _fact: True
) -> None:
    """Delete the facts under `subject`, those before a place only if one is given. Raises `Unavailable`."""
    fact = await _next(runtime, subject, 1)
    while fact is not None and fact.seq is not None and (not before or fact.seq < before):
        following = _next(runtime, subject, fact.seq + 1)
        if is_wanted(fact):
            fact, _done = await asyncio.gather(following, _overwrite(runtime, fact.seq))
        else:
            fact = await following


async def _next(runtime: Runtime, subject: str, sequence: int) -> RawStreamMsg | None:
    """The first fact under `subject` from a place on."""
    with reaching("the log"):
        try:
            return await runtime.connection.jetstream.get_msg(subjects.STREAM, sequence, subject, next=True)
        except nats.js.errors.NotFoundError:
            return None


async def _overwrite(runtime: Runtime, sequence: int) -> None:
    with reaching("the log"):
        await runtime.connection.jetstream.delete_msg(subjects.STREAM, sequence)
