"""What edits of documents did to tasks, until it is told; what moves ask of documents, until they have it.

A version that a move itself asked for does nothing more, and what was brought from another hub was done there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mycelium.board.v1 import events_pb2, views_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import moves_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium_board import entries
from mycelium_board.model import Standing
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables

HUB = "hub"  # a name that nobody else can have
Event = memory_pb2.DocumentWritten | memory_pb2.DocumentRemoved


@dataclass(frozen=True)
class Seen(Standing):
    """A task as a version of its document has it; `moved`: its last move that is on the way there, and its end."""

    key: str
    thread: str
    title: str
    status: str
    kind: str
    assignee: str
    blocked_by: str
    moved: tuple[str, int, int] = ("", 0, 0)


def before(tables: Tables, room_id: str, document_id: str) -> Seen | None:
    """The task as it stands in the tables."""
    row = tables.one(
        """SELECT key, thread, title, status, kind, assignee, blocked_by, moved_status, moved_by, closed_at FROM task
          WHERE room_id = ? AND document_id = ?""",
        room_id, document_id,
    )  # fmt: skip
    if row is None:
        return None
    key, thread, title, status, kind, assignee, blocked_by, *moved = row
    return Seen(key, thread, title, status, kind, assignee, blocked_by, (moved[0], moved[1], moved[2]))


def note(tables: Tables, event: Event, stored: Stored, old: Seen | None, new: Seen | None) -> None:
    """Write down what became of a task between two versions of its document; None where it is not there.

    What was brought was told where it was done: the log alone is to know what it was.
    """
    if isinstance(event, memory_pb2.DocumentWritten) and event.HasField("moved"):
        return
    if event.origin == memory_views_pb2.ORIGIN_IMPORT:
        for move in _moves(old, new):
            entries.become(tables, event.room_id, stored.sequence, event.key, move)
        return
    if isinstance(event, memory_pb2.DocumentRemoved):
        by, at = event.removed_by, event.removed_at
    else:
        by, at = event.updated_by, event.updated_at
    seen = new or old
    assert seen
    told_at = clock.to_millis(at)
    went = entries.renamed(tables, event.room_id, seen.key, told_at) if new is None else ""
    more = (f"renamed to {went}" if went else "") if new is None else seen.blocked_by
    for move in _moves(old, new):
        tables.execute(
            "INSERT INTO edit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            event.room_id, subjects.identifier_of(stored.subject), stored.sequence, move, seen.key, seen.thread,
            seen.title, seen.status, seen.kind, seen.assignee, more, by, told_at,
        )  # fmt: skip


def _moves(old: Seen | None, new: Seen | None) -> list[views_pb2.Move.ValueType]:
    """What was done, each a fact of its own. While a move is on its way to the document, that has the say on status."""
    if old is None:
        return [views_pb2.MOVE_FILED]
    if new is None:
        return [views_pb2.MOVE_REMOVED]
    found: list[views_pb2.Move.ValueType] = []
    if new.assignee and new.assignee != old.assignee:
        found.append(views_pb2.MOVE_ASSIGNED)
    if old.moved[0]:
        return found
    if new.is_closed:
        done = views_pb2.MOVE_DISMISSED if new.status == "dismissed" else views_pb2.MOVE_RESOLVED
        return found if old.is_closed else [*found, done]
    if new.is_blocked and (not old.is_blocked or new.blocked_by != old.blocked_by):
        found.append(views_pb2.MOVE_BLOCKED)
    elif old.is_blocked and not new.is_blocked:
        found.append(views_pb2.MOVE_UNBLOCKED)
    return found


def told(tables: Tables, event: events_pb2.TaskMoved, document_id: str) -> None:
    """It stands in the log."""
    tables.execute(
        "DELETE FROM edit WHERE room_id = ? AND document_id = ? AND sequence = ? AND move = ?",
        event.room_id, document_id, event.edit, event.move,
    )  # fmt: skip


def move_of(event: memory_pb2.DocumentWritten) -> int:
    """The move that asked for a version; 0 for an edit, and for what was moved on another hub.

    Memory lets the board alone say it.
    """
    return 0 if event.origin == memory_views_pb2.ORIGIN_IMPORT else event.moved.sequence


def keep_move(tables: Tables, event: events_pb2.TaskMoved, document_id: str, sequence: int) -> None:
    """A move asks something of a document."""
    there = tables.one("SELECT 1 FROM task WHERE room_id = ? AND document_id = ?", event.room_id, document_id)
    if there:
        tables.execute(
            "INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            event.room_id, document_id, sequence, event.key, event.move, event.by, clock.to_millis(event.at),
            event.fields_json,
        )  # fmt: skip


def asked_of(tables: Tables, room_id: str, document_id: str, until: int) -> Iterator[moves_pb2.FollowMoveRequest]:
    """What moves up to that place ask of a document, in their order."""
    sql = """SELECT sequence, key, move, by_handle, at, fields FROM asked
      WHERE room_id = ? AND document_id = ? AND sequence <= ? ORDER BY sequence"""
    for sequence, key, move, by, at, fields in tables.all(sql, room_id, document_id, until):
        moved = memory_views_pb2.Moved(sequence=sequence, move=entries.called(move), by=by, at=clock.from_millis(at))
        yield moves_pb2.FollowMoveRequest(room_id=room_id, key=key, fields_json=fields, by=by or HUB, moved=moved)


def forget_move(tables: Tables, document_id: str, event: memory_pb2.DocumentWritten) -> None:
    """The document has what a move asked, if it is one that asked for this version."""
    sequence = move_of(event)
    if sequence:
        sql = "DELETE FROM asked WHERE room_id = ? AND document_id = ? AND sequence = ?"
        tables.execute(sql, event.room_id, document_id, sequence)


def forget_moves(tables: Tables, room_id: str, document_id: str) -> None:
    """The document is gone, and nothing can be asked of it."""
    tables.execute("DELETE FROM asked WHERE room_id = ? AND document_id = ?", room_id, document_id)
