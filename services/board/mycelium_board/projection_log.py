"""How facts become the daily log: what happened, when, and by whom, each thing once.

Messages are counted for each member and quarter of an hour, so that a room of a million messages has not a million
rows here; everything else is a row of its own. A change of a document that follows from a move is the move, and an edit
that is told as a move is told as that alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mycelium.board.v1 import events_pb2, log_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import entries, runs
from mycelium_board.edits import move_of
from mycelium_board.model import PREFIXES
from mycelium_board.projection import TITLE_CHARACTERS, text_of, title_of
from mycelium_kernel import clock
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables

QUARTER_MS = 15 * 60 * 1000  # the least by which zones differ
SAID = {"message", "event"}  # what is said in a room by somebody; all else tells of what is here otherwise


def both(
    board: Callable[[Tables, Any, Stored], None], log: Callable[[Tables, Any, Stored], None]
) -> Callable[[Tables, Any, Stored], None]:
    """What a fact does to the log, then what it does to the board, which may know better what the log has."""

    def apply(tables: Tables, event: Any, stored: Stored) -> None:
        log(tables, event, stored)
        board(tables, event, stored)

    return apply


def message_posted(tables: Tables, event: rooms_pb2.MessagePosted, stored: Stored) -> None:
    """One more of its sender's. An amendment is no fact of this type, a delivery is none; a run's answer is the run."""
    if event.message_type not in SAID or runs.answers(tables, event):
        return
    at = clock.to_millis(event.created_at)
    tables.execute(
        """INSERT INTO log_count VALUES (?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET
           messages = messages + 1, last_at = max(last_at, excluded.last_at), last_sequence = excluded.last_sequence""",
        event.room_id, at // QUARTER_MS, event.sender_handle, at, stored.sequence,
    )  # fmt: skip


def document_written(tables: Tables, event: memory_pb2.DocumentWritten, stored: Stored) -> None:
    if move_of(event):  # the log has the move
        return
    at, by, what = clock.to_millis(event.updated_at), event.updated_by, _what(event)
    if event.HasField("moved"):  # elsewhere, and brought from there
        at, by, what = clock.to_millis(event.moved.at), event.moved.by, entries.what(event.moved.move)
    if event.moved_from:
        _forget_removal(tables, event, at)
    fields = json.loads(event.content.fields_json or "{}")
    entries.enter(
        tables, event.room_id, at, stored.sequence, by, what, event.key, event.thread,
        title_of(event.content, fields), moved_from=event.moved_from, answer=_answer(what, fields),
    )  # fmt: skip


def document_removed(tables: Tables, event: memory_pb2.DocumentRemoved, stored: Stored) -> None:
    at = clock.to_millis(event.removed_at)
    if entries.renamed(tables, event.room_id, event.key, at):
        return
    thread, title = _last_told(tables, event)
    what = log_pb2.LOG_WHAT_REMOVED
    entries.enter(tables, event.room_id, at, stored.sequence, event.removed_by, what, event.key, thread, title)


def task_moved(tables: Tables, event: events_pb2.TaskMoved, stored: Stored) -> None:
    """What changes the task's document, told once with it; the edit that a move tells of becomes that move.

    What the hub itself did has no name and is not shown, but its row says that the document's change follows from it.
    """
    if event.edit:
        entries.become(tables, event.room_id, event.edit, event.key, event.move)
    elif event.fields_json:
        what = entries.MOVES.get(event.move, log_pb2.LOG_WHAT_CHANGED)
        at = clock.to_millis(event.at)
        said = _answer(what, json.loads(event.fields_json))
        row = event.room_id, at, stored.sequence, event.by, what, event.key, event.thread, event.title
        entries.enter(tables, *row, answer=said)


def _answer(what: log_pb2.LogWhat.ValueType, fields: dict[str, Any]) -> str:
    """What a decision was answered, if that is what was done; empty for all else."""
    return text_of(fields.get("answer"))[:TITLE_CHARACTERS] if what == log_pb2.LOG_WHAT_ANSWERED else ""


def _what(event: memory_pb2.DocumentWritten) -> log_pb2.LogWhat.ValueType:
    if event.moved_from:
        return log_pb2.LOG_WHAT_RENAMED
    if event.HasField("replaced"):
        return log_pb2.LOG_WHAT_CHANGED
    return log_pb2.LOG_WHAT_FILED if event.key.startswith(PREFIXES) else log_pb2.LOG_WHAT_WRITTEN


def _forget_removal(tables: Tables, event: memory_pb2.DocumentWritten, at: int) -> None:
    """The document that was renamed may have been said to be removed before."""
    tables.execute(
        "DELETE FROM log_entry WHERE room_id = ? AND key = ? AND what = ? AND at BETWEEN ? AND ?",
        event.room_id, event.moved_from, log_pb2.LOG_WHAT_REMOVED, at - entries.RENAMED_MS, at + entries.RENAMED_MS,
    )  # fmt: skip


def _last_told(tables: Tables, event: memory_pb2.DocumentRemoved) -> tuple[str, str]:
    """Thread and title of a document that is gone, as the log has them."""
    sql = "SELECT thread, title FROM log_entry WHERE room_id = ? AND key = ? ORDER BY sequence DESC LIMIT 1"
    row = tables.one(sql, event.room_id, event.key)
    return (row[0], row[1]) if row else ("", "")
