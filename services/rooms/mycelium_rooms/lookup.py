"""Finds what requests name: rooms by id or name, messages and threads by full or short id. For loads and queries."""

from __future__ import annotations

import shlex

from mycelium_kernel import names, rooms_seen
from mycelium_kernel.callers import handle_of, unregistered
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import views
from mycelium_rooms.model import RoomRow


def find_room(tables: Tables, text: str, context: Context) -> RoomRow:
    """The room of that id or name. Refused when there is none: create it, or look at the list.

    Every command and query finds its room here, so a room that the caller may not see is one that there is not.
    """
    text = text.strip()
    by = "room_id" if names.is_id(text.lower()) else "folded"
    value = text.lower() if by == "room_id" else names.fold_room_name(text)
    sql = f"SELECT room_id, name, private, created_by FROM room WHERE {by} = ?2 AND {views.VISIBLE}"  # noqa: S608 - fixed
    row = tables.one(sql, handle_of(context), value)
    if row is None:
        raise rooms_seen.no_room(tables, text, context, views.VISIBLE)
    return RoomRow(row[0], row[1], bool(row[2]), row[3])


def find_message(tables: Tables, room: RoomRow, text: str) -> str:
    """The full id of a message of the room. Refused when there is none, or when a short id fits several."""
    identifier = text.strip().lower()
    found: list[str] = []
    if names.is_id(identifier):
        sql = "SELECT message_id FROM message WHERE room_id = ? AND message_id = ?"
        found = [row[0] for row in tables.all(sql, room.id, identifier)]
    elif names.is_short_id(identifier):
        sql = """SELECT message_id FROM message INDEXED BY message_short
                 WHERE room_id = ? AND substr(message_id, -8) = ? ORDER BY 1 LIMIT 10"""
        found = [row[0] for row in tables.all(sql, room.id, identifier)]
    if not found:
        next_command = f"mycelium room messages {shlex.quote(room.name)}"
        raise Refusal("message.not_found", f"there is no message {_shown(text)} in {room.name!r}", next=next_command)
    return _only(found, text, "messages", room)


def find_thread(tables: Tables, room: RoomRow, text: str) -> str:
    """The full id of a thread; empty stays empty. A full id is legal at once, a short one must be of a known message.

    A thread is known when it has a message; a message may become the root of a thread.
    """
    identifier = text.strip().lower()
    if not identifier or names.is_id(identifier):
        return identifier
    found: list[str] = []
    if names.is_short_id(identifier):
        sql = """SELECT thread FROM thread WHERE room_id = ?1 AND substr(thread, -8) = ?2
                 UNION SELECT message_id FROM message INDEXED BY message_short
                 WHERE room_id = ?1 AND substr(message_id, -8) = ?2 LIMIT 10"""
        found = [row[0] for row in tables.all(sql, room.id, identifier)]
    if not found:
        raise Refusal("thread.not_found", f"there is no thread {_shown(text)} in {room.name!r}")
    return _only(found, text, "threads", room)


def _only(found: list[str], text: str, what: str, room: RoomRow) -> str:
    if len(found) > 1:
        detail = f"{_shown(text)} fits several {what} in {room.name!r}: use the full id"
        raise Refusal("id.ambiguous", detail, candidates=found)
    return found[0]


def _shown(text: str) -> str:
    return repr(text if len(text) <= len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") else text[:36] + "…")


def is_user(tables: Tables, handle: str) -> bool:
    """Whether a person of the hub has the handle."""
    return tables.one("SELECT 1 FROM user WHERE handle = ?", handle) is not None


def is_registered(tables: Tables, room: RoomRow, handle: str) -> bool:
    """Whether a handle is a member of the room; every user of the hub is one of a room that is not private."""
    return is_member(tables, room, handle) or (not room.private and is_user(tables, handle))


def is_member(tables: Tables, room: RoomRow, handle: str) -> bool:
    """Whether a handle is a member by its own record; who made a private room is one until it is removed."""
    row = tables.one("SELECT has_left FROM member WHERE room_id = ? AND handle = ?", room.id, handle)
    return not row[0] if row else room.private and handle == room.created_by


def require_registered(tables: Tables, room: RoomRow, handle: str) -> None:
    """Refuse a handle that is nobody here: register it."""
    if not is_registered(tables, room, handle):
        raise unregistered(room.name, handle)


def has_spoken(tables: Tables, room: RoomRow, handle: str) -> bool:
    """Whether somebody has written in the room under a handle."""
    found = tables.one("SELECT 1 FROM message WHERE room_id = ? AND sender_handle = ? LIMIT 1", room.id, handle)
    return found is not None


def user_name(tables: Tables, handle: str) -> str:
    """The name to show for a handle; empty when none is known."""
    row = tables.one("SELECT name FROM user WHERE handle = ?", handle)
    return str(row[0]) if row else ""


def near_members(tables: Tables, room: RoomRow, wanted: str) -> list[str]:
    """The members of the room whose handles are most like `wanted`."""
    rows = tables.all("SELECT handle FROM member WHERE room_id = ? AND has_left = 0 ORDER BY handle", room.id)
    return names.near(wanted, (row[0] for row in rows))
