"""Finds what callers name: tasks by key, with or without its prefix, by thread or by short id."""

from __future__ import annotations

import shlex

from mycelium_board.model import PREFIXES, Task
from mycelium_kernel import names
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables

COLUMNS = "document_id, key, thread, title, iif(moved_status != '', moved_status, status)"


def find_task(tables: Tables, room: RoomRow, text: str) -> Task:
    """The task that `text` names. Refused when there is none, or when a short id is of several."""
    named = text.strip()
    rows = _by_id(tables, room, named.lower()) or _by_key(tables, room, named.lower())
    if not rows:
        raise _missing(tables, room, named)
    if len(rows) > 1:
        keys = [row[1] for row in rows]
        raise Refusal("id.ambiguous", f"{named!r} is {' and '.join(keys)}; name one of them", near=keys)
    return Task(*rows[0])


def _by_id(tables: Tables, room: RoomRow, named: str) -> list[tuple[str, ...]]:
    if names.is_id(named):
        return tables.all(f"SELECT {COLUMNS} FROM task WHERE room_id = ? AND thread = ?", room.id, named)  # noqa: S608
    if names.is_short_id(named):
        return tables.all(f"SELECT {COLUMNS} FROM task WHERE room_id = ? AND short = ?", room.id, named)  # noqa: S608
    return []


def _by_key(tables: Tables, room: RoomRow, named: str) -> list[tuple[str, ...]]:
    """The whole key before any that lacks its prefix."""
    sql = f"SELECT {COLUMNS} FROM task WHERE room_id = ? AND key = ?"  # noqa: S608 - fixed text
    whole = tables.all(sql, room.id, named)
    if whole or named.startswith(PREFIXES):
        return whole
    return [row for prefix in PREFIXES for row in tables.all(sql, room.id, prefix + named)]


def _missing(tables: Tables, room: RoomRow, named: str) -> Refusal:
    keys = [row[0] for row in tables.all("SELECT key FROM task WHERE room_id = ? ORDER BY key LIMIT 1000", room.id)]
    similar = names.near(named, keys) or [key for key in keys if named and key.endswith(named)][:3]
    hint = f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    detail = f"there is no task {named[:60]!r} in {room.name!r}{hint}"
    return Refusal("task.not_found", detail, next=f"mycelium board --room {shlex.quote(room.name)}", near=similar)
