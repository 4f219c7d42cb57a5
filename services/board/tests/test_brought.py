"""What the board makes of tasks that were brought from another hub."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mycelium.board.v1 import log_pb2, views_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium_board import queries_log
from mycelium_kernel import clock
from services.board.tests.hub import START, Hub, rebuilt

KEY = "work/ship-it"


def told(board: Hub) -> list[str]:
    """The log, the first entry first."""
    page = queries_log.read_log(board.tables, log_pb2.ReadLogRequest(room="demo"), board.context("avery"))
    entries = [entry for day in page.days for entry in day.entries]
    return [f"{one.by} {log_pb2.LogWhat.Name(one.what)[9:].lower()} {one.time}" for one in reversed(entries)]


def brought(board: Hub, *, moved: memory_views_pb2.Moved | None = None, **fields: Any) -> None:
    """A version of another hub, as an import stores it."""
    board.task(KEY, origin=memory_views_pb2.ORIGIN_IMPORT, moved=moved, **fields)


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        ("resolved", ["sec resolved 11:30"]),
        ("promoted", ["sec promoted 11:30"]),
        ("claimed", ["sec unblocked 11:30"]),
        ("expired", ["sec changed 11:30"]),
        ("whatever", ["sec changed 11:30"]),
    ],
)
def test_a_move_is_told_as_what_it_was(move: str, expected: list[str]) -> None:
    """By who made it, when it was made; what the hub did is not shown; nothing is asked of the document here."""
    board, at = Hub(), clock.to_timestamp(START - timedelta(minutes=30))
    brought(board)
    brought(board, moved=memory_views_pb2.Moved(sequence=1, move=move, by="sec", at=at), status="resolved")
    brought(board, moved=memory_views_pb2.Moved(sequence=2, move=move, at=at), status="resolved")
    assert sorted(told(board)) == sorted(["avery filed 12:00", *expected])
    for table in ("asked", "edit"):
        assert not board.tables.all(f"SELECT * FROM {table}")
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_an_edit_is_told_as_what_it_did() -> None:
    """And nobody is told of it again."""
    board = Hub()
    versions: tuple[dict[str, Any], ...] = ({}, {"blocked_by": "#1"}, {}, {"status": "resolved"})
    for fields in versions:
        brought(board, **fields)
    expected = ["filed", "blocked", "unblocked", "resolved"]
    assert told(board) == [f"avery {what} 12:00" for what in expected]
    assert not board.tables.all("SELECT * FROM edit")
    assert rebuilt(board.facts).dump() == board.tables.dump()


def test_what_was_moved_elsewhere_is_no_move_here() -> None:
    """Though a move here has the same place."""
    board = Hub()
    brought(board)
    board.resolve(KEY)
    brought(board, moved=memory_views_pb2.Moved(sequence=len(board.facts), move="resolved", by="sec"))
    assert len(board.tables.all("SELECT * FROM asked")) == 1
    assert views_pb2.MOVE_RESOLVED in [row[0] for row in board.tables.all("SELECT move FROM asked")]
