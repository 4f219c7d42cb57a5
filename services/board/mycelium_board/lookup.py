"""Finds what callers and documents name: tasks by key, with or without its prefix, by thread or by short id."""

from __future__ import annotations

import shlex

from mycelium_board import edges
from mycelium_board.model import PREFIXES, Task
from mycelium_kernel import names, subjects
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables

# What a `Task` is made of, in its order.
COLUMNS = "document_id, key, thread, title, iif(moved_status != '', moved_status, status), kind, assignee, blocked_by"
MEMBERS = "members/"  # what the rows of active members are called by
RUNS = "runs/"  # the same of runs of engines
NEAR_ROWS = 200  # keys beside the one that is not there, among which a near one is sought


def find_task(tables: Tables, room: RoomRow, text: str) -> Task:
    """The task that `text` names. Refused when there is none, or when a short id is of several."""
    found = named(tables, room.id, text)
    if not found:
        raise _elsewhere(tables, room, text.strip()) or _missing(tables, room, text.strip())
    if len(found) > 1:
        keys = [task.key for task in found]
        raise Refusal("id.ambiguous", f"{text.strip()!r} is {' and '.join(keys)}; name one of them", near=keys)
    return found[0]


def named(tables: Tables, room_id: str, text: str) -> list[Task]:
    """Every task that `text` names, the one that is rather meant first. An id comes before any key.

    A whole id is one task's alone; a key may look like a short one.
    """
    folded = names.fold_key(text.strip())
    found = _by_id(tables, room_id, folded)
    if not found or names.is_short_id(folded):
        found = list(dict.fromkeys([*found, *_by_key(tables, room_id, folded)]))
    return found


def by_document(tables: Tables, room_id: str, document_id: str) -> Task | None:
    """The task of a document, if it is there."""
    sql = f"SELECT {COLUMNS} FROM task WHERE room_id = ? AND document_id = ?"  # noqa: S608 - fixed text
    row = tables.one(sql, room_id, document_id)
    return Task(*row) if row else None


def names_of(task: Task) -> tuple[str, ...]:
    """Every name of a task, as `named` compares them."""
    folded = names.fold_key(task.key)
    return folded, folded.partition("/")[2], task.thread, names.short_id(task.thread)


def document_of(key: str) -> str:
    """The id that memory gives the document of a key."""
    return subjects.digest(names.fold_key(key))


def _by_id(tables: Tables, room_id: str, folded: str) -> list[Task]:
    by = "thread" if names.is_id(folded) else "short" if names.is_short_id(folded) else ""
    if not by:
        return []
    sql = f"SELECT {COLUMNS} FROM task WHERE room_id = ? AND {by} = ? ORDER BY key"  # noqa: S608 - fixed text
    return [Task(*row) for row in tables.all(sql, room_id, folded)]


def _by_key(tables: Tables, room_id: str, folded: str) -> list[Task]:
    """The whole key before any that lacks its prefix."""
    keys = [folded] if folded.startswith(PREFIXES) else [prefix + folded for prefix in PREFIXES]
    found = (by_document(tables, room_id, subjects.digest(key)) for key in keys)
    return [task for task in found if task]


def _elsewhere(tables: Tables, room: RoomRow, text: str) -> Refusal | None:
    """The refusal of a row that comes from no document, as the board shows active members; None for anything else."""
    if text.lower().startswith(RUNS):
        return _of_run(tables, room, text.lower().removeprefix(RUNS))
    handle = text.lower().removeprefix(MEMBERS).removeprefix("@")
    sql = "SELECT 1 FROM member WHERE room_id = ? AND handle = ?"
    if handle == text.lower() or tables.one(sql, room.id, handle) is None:
        return None
    detail = f"@{handle} is a member of {room.name!r}, no task: its row shows what it does, and can't be changed here"
    return Refusal("row.unchangeable", detail, f"mycelium agent show {handle} --room {shlex.quote(room.name)}")


def _of_run(tables: Tables, room: RoomRow, run: str) -> Refusal | None:
    sql = "SELECT engine FROM run WHERE room_id = ? AND (run_id = ? OR substr(run_id, -8) = ?)"
    row = tables.one(sql, room.id, run, run)
    if row is None:
        return None
    detail = (
        f"{RUNS}{run} is a run of @{row[0]}, no task: its row shows that it is under way, and can't be changed here"
    )
    return Refusal("row.unchangeable", detail, f"mycelium engine show {row[0]} --room {shlex.quote(room.name)}")


def _missing(tables: Tables, room: RoomRow, text: str) -> Refusal:
    similar = _near_keys(tables, room, _meant(text))
    hint = f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    detail = f"there is no task {text[:60]!r} in {room.name!r}{hint}"
    return Refusal("task.not_found", detail, next=f"mycelium board --room {shlex.quote(room.name)}", near=similar)


def _meant(text: str) -> str:
    """The name in a link; anything else as it is."""
    linked = edges.written({edges.PART_OF: text}) if text.startswith(("[[", edges.SCHEME)) else []
    return linked[0][1] if linked else text.lower()


def _near_keys(tables: Tables, room: RoomRow, text: str) -> list[str]:
    """The keys most like one that is not there, of its neighbours under each prefix."""
    known: list[str] = []
    for prefix in PREFIXES if not text.startswith(PREFIXES) else ("",):
        for sql in ("< ? ORDER BY key DESC", ">= ? ORDER BY key"):
            statement = f"SELECT key FROM task WHERE room_id = ? AND key {sql} LIMIT {NEAR_ROWS}"  # noqa: S608
            known += [row[0] for row in tables.all(statement, room.id, prefix + text)]
    known = list(dict.fromkeys(known))
    return names.near(text, known) or [key for key in known if text and key.endswith(text)][:3]
