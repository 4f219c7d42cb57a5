"""What a service knows of rooms that does not own them: their names, who may see them, who is registered.

A service that answers for rooms takes `SCHEMA`, `FILTERS`, `APPLY` and `ROOM_TABLES` into its projection, and finds
every room by `find_room`. The rules are those of the rooms service, word for word, and what both say of a room that is
not there is said here: a stranger must not tell from an answer here what an answer there does not tell.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.callers import RoomRow, handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Stored
from mycelium_kernel.tables import Tables

SCHEMA = Path(__file__).with_name("rooms_seen.sql")
ROOM_TABLES = ("room", "member")
ROOMS = "rooms"
FILTERS = (
    subjects.of_entities(ROOMS, subjects.NAMES, "name"),
    subjects.of_entities(ROOMS, subjects.HUB, "user"),
    *(subjects.of_kind(ROOMS, entity) for entity in ("room", "member", "import")),
)
# For ?1, the handle that asks.
VISIBLE = """(NOT room.importing AND (NOT room.private OR (?1 != '' AND (room.created_by = ?1 OR
  EXISTS (SELECT 1 FROM member WHERE member.room_id = room.room_id AND member.handle = ?1)))))"""


def _room_created(tables: Tables, event: events_pb2.RoomCreated, _stored: Stored) -> None:
    tables.execute(
        "INSERT INTO room VALUES (?, ?, ?, ?, ?, ?)",
        event.room_id, event.name, names.fold_room_name(event.name), event.private, event.created_by, event.importing,
    )  # fmt: skip


def _room_changed(tables: Tables, event: events_pb2.RoomChanged, _stored: Stored) -> None:
    tables.execute("UPDATE room SET private = ? WHERE room_id = ?", event.private, event.room_id)


def _room_imported(tables: Tables, event: events_pb2.RoomImported, _stored: Stored) -> None:
    tables.execute("UPDATE room SET importing = 0 WHERE room_id = ?", event.room_id)


def _member_saved(tables: Tables, event: events_pb2.MemberSaved, _stored: Stored) -> None:
    tables.execute("INSERT OR IGNORE INTO member VALUES (?, ?)", event.room_id, event.member.handle)


def _member_removed(tables: Tables, event: events_pb2.MemberRemoved, _stored: Stored) -> None:
    tables.execute("DELETE FROM member WHERE room_id = ? AND handle = ?", event.room_id, event.handle)


def _user_saved(tables: Tables, event: events_pb2.UserSaved, _stored: Stored) -> None:
    tables.execute("INSERT OR IGNORE INTO person VALUES (?)", event.handle)


APPLY: Mapping[type[Message], Callable[[Tables, Any, Stored], None]] = {
    events_pb2.UserSaved: _user_saved,
    events_pb2.RoomCreated: _room_created,
    events_pb2.RoomChanged: _room_changed,
    events_pb2.RoomImported: _room_imported,
    events_pb2.MemberSaved: _member_saved,
    events_pb2.MemberRemoved: _member_removed,
}


def is_registered(tables: Tables, room: RoomRow, handle: str) -> bool:
    """Whether a handle is a member of the room, or a user of the hub where that is as good."""
    row = tables.one(
        """SELECT 1 FROM room WHERE room_id = ?1 AND (
             EXISTS (SELECT 1 FROM member WHERE member.room_id = ?1 AND handle = ?2)
             OR CASE private WHEN 1 THEN created_by = ?2 ELSE EXISTS (SELECT 1 FROM person WHERE handle = ?2) END)""",
        room.id, handle,
    )  # fmt: skip
    return row is not None


def find_room(tables: Tables, text: str, context: Context) -> RoomRow:
    """The room of that id or name. Refused when there is none: create it, or look at the list.

    Every command and query finds its room here, so a room that the caller may not see is one that there is not.
    """
    text = text.strip()
    by = "room_id" if names.is_id(text.lower()) else "folded"
    value = text.lower() if by == "room_id" else names.fold_room_name(text)
    sql = f"SELECT room_id, name FROM room WHERE {by} = ?2 AND {VISIBLE}"  # noqa: S608 - fixed text
    row = tables.one(sql, handle_of(context), value)
    if row is None:
        raise no_room(tables, text, context, VISIBLE)
    return RoomRow(*row)


def by_id(tables: Tables, room_id: str) -> RoomRow | None:
    """A room by its id alone, whoever may see it: for what a service asks of itself, or another of it."""
    row = tables.one("SELECT room_id, name FROM room WHERE room_id = ? AND importing = 0", room_id)
    return RoomRow(*row) if row else None


def need(tables: Tables, room_id: str) -> RoomRow:
    """The same. Refused when there is none."""
    room = by_id(tables, room_id)
    if room is None:
        raise Refusal("room.not_found", f"there is no room {room_id[:36]!r}")
    return room


def no_room(tables: Tables, text: str, context: Context, visible: str) -> Refusal:
    """With the names most like it, of rooms that the caller may see, so that it tells nobody of any other.

    `visible` is what SQL says of a row of `room` that ?1, the handle that asks, may see.
    """
    shown = text if len(text) <= names.ROOM_NAME_CHARACTERS else text[:40] + "…"
    detail, next_command = f"Room not found: {shown!r}", "mycelium room ls"
    try:
        name = names.room_name(text)
    except Refusal:  # no room can have that name
        return Refusal("room.not_found", detail, next=next_command)
    similar = _near_rooms(tables, name, context, visible)
    if similar:
        detail += names.did_you_mean(map(repr, similar))
        return Refusal("room.not_found", detail, next=next_command, near=similar)
    return Refusal("room.not_found", detail, next=f"mycelium room create {shlex.quote(name)}")


def _near_rooms(tables: Tables, name: str, context: Context, visible: str) -> list[str]:
    folded = names.fold_room_name(name)
    sql = f"""SELECT folded, name FROM room WHERE length(folded) BETWEEN ?2 AND ?3 AND {visible}
              ORDER BY folded LIMIT ?4"""  # noqa: S608 - fixed text
    lengths = len(folded) - names.NEAR, len(folded) + names.NEAR
    known = dict(tables.all(sql, handle_of(context), *lengths, names.NEAR_CANDIDATES))
    return [known[similar] for similar in names.near(folded, known)]
