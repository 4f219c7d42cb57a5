"""What moves are in the daily log."""

from __future__ import annotations

from mycelium.board.v1 import log_pb2, views_pb2
from mycelium_kernel.tables import Tables

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


def become(tables: Tables, room_id: str, sequence: int, key: str, move: views_pb2.Move.ValueType) -> None:
    """An edit that the log has is known to be a move."""
    if move in MOVES:
        tables.execute(
            "UPDATE log_entry SET what = ? WHERE room_id = ? AND sequence = ? AND key = ?",
            MOVES[move], room_id, sequence, key,
        )  # fmt: skip
