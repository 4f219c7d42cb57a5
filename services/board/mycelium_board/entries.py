"""What moves are in the daily log."""

from __future__ import annotations

from mycelium.board.v1 import log_pb2, views_pb2
from mycelium_kernel.tables import Tables

RENAMED_MS = 60 * 60 * 1000  # what a renaming by hand is told by, a new document and a removal, is not further apart
MOVES = {
    views_pb2.MOVE_RESOLVED: log_pb2.LOG_WHAT_RESOLVED,
    views_pb2.MOVE_PROMOTED: log_pb2.LOG_WHAT_PROMOTED,
    views_pb2.MOVE_DISMISSED: log_pb2.LOG_WHAT_DISMISSED,
    views_pb2.MOVE_ANSWERED: log_pb2.LOG_WHAT_ANSWERED,
    views_pb2.MOVE_BLOCKED: log_pb2.LOG_WHAT_BLOCKED,
    views_pb2.MOVE_UNBLOCKED: log_pb2.LOG_WHAT_UNBLOCKED,
    views_pb2.MOVE_CLAIMED: log_pb2.LOG_WHAT_UNBLOCKED,  # where it changes the document, it does that
}


def called(move: views_pb2.Move.ValueType) -> str:
    """A move as a version says it that follows from it, such as `resolved`."""
    return views_pb2.Move.Name(move).removeprefix("MOVE_").lower()


def what(name: str) -> log_pb2.LogWhat.ValueType:
    """What the log says of such a version."""
    named = {called(move): found for move, found in MOVES.items()}
    return named.get(name, log_pb2.LOG_WHAT_CHANGED)


def renamed(tables: Tables, room_id: str, key: str, at: int) -> str:
    """The key that a document has now, where its file was renamed by hand shortly before or after; else empty."""
    sql = """SELECT key FROM log_entry WHERE room_id = ? AND moved_from != '' AND moved_from = ?
      AND at BETWEEN ? AND ? ORDER BY sequence DESC LIMIT 1"""
    row = tables.one(sql, room_id, key, at - RENAMED_MS, at + RENAMED_MS)
    return row[0] if row else ""


def enter(tables: Tables, *row: object, moved_from: str = "", outcome: str = "", answer: str = "") -> None:
    """Have the log tell something; `row` are the columns of schema_log.sql that everything has, in their order."""
    tables.execute("INSERT INTO log_entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row, moved_from, outcome, answer)


def become(tables: Tables, room_id: str, sequence: int, key: str, move: views_pb2.Move.ValueType) -> None:
    """An edit that the log has is known to be a move."""
    if move in MOVES:
        tables.execute(
            "UPDATE log_entry SET what = ? WHERE room_id = ? AND sequence = ? AND key = ?",
            MOVES[move], room_id, sequence, key,
        )  # fmt: skip
