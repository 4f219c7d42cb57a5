"""What fields of documents mean, however they are written; what a board makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_board import notices, queries, reading
from mycelium_kernel.callers import RoomRow
from services.board.tests.hub import Hub, moving
from services.board.tests.test_edits import ASSIGNED, moves, settled, told

KEY = "work/x"


def shown(board: Hub, key: str = KEY) -> views_pb2.Row:
    return queries.row(board.tables, RoomRow(board.room_id, "demo"), key, board.now)


@pytest.mark.parametrize("value", [[], False, {}, 0, 0.0, None, "", " ", "[]", "{}", "false", "0", [[]], [None], [""]])
def test_nothing_blocks_nothing(value: Any) -> None:
    """However that is written."""
    board = Hub()
    board.task(KEY, blocked_by=value)
    assert (shown(board).blocked_by, shown(board).ready) == ("", True)
    assert settled(board) == ["filed by avery"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("#502", "#502"), (["#502", "#7"], "#502, #7"), (502, "502"), (True, "true"), ('["a"]', "a"), ("[a", "[a")],
)
def test_what_blocks_is_said_as_text(value: Any, expected: str) -> None:
    """And never as a list's marks."""
    board = Hub()
    board.task(KEY, blocked_by=value)
    assert (shown(board).blocked_by, shown(board).reason) == (expected, f"waiting on {expected}")


@pytest.mark.parametrize(
    ("value", "expected", "reason"),
    [
        ("Resolved", "resolved", "resolved"),
        ("RESOLVED", "resolved", "resolved"),
        ("done", "resolved", "resolved"),
        ("Closed", "resolved", "resolved"),
        ("complete", "resolved", "resolved"),
        ("Dismissed", "dismissed", "dismissed"),
        ("Blocked", "blocked", "blocked"),
        ("OPEN", "open", ""),
        ("in progress", "in_progress", ""),
        ("In-Review", "in_review", "in review"),
        (["open", "urgent"], "open", ""),
        ('["open"]', "open", ""),
        ("[", "[", "its status is ["),
        ("Parked", "Parked", "its status is Parked"),
        ([], "open", ""),
    ],
)
def test_a_status_is_read_however_it_is_written(value: Any, expected: str, reason: str) -> None:
    """What is closed by any word is closed; neither a review nor a word of the room's own is begun with."""
    board = Hub()
    board.task(KEY, status=value)
    assert (shown(board).status, shown(board).reason, shown(board).ready) == (expected, reason, not reason)


def test_a_review_that_somebody_holds_is_held() -> None:
    """Who took it says more than that it waits for somebody."""
    board = Hub()
    board.task(KEY, status="in_review")
    board.claim(KEY)
    assert shown(board).reason.startswith("held by @sec")


def test_done_by_any_word_ends_the_claim() -> None:
    """As resolved does, and is no second end."""
    board = Hub()
    board.task(KEY)
    board.claim(KEY)
    board.task(KEY, status="Done")
    assert settled(board) == ["filed by avery", "resolved by avery"]
    board.task(KEY, status="resolved")
    assert len(settled(board)) == 2
    board.refused("task.closed", service_pb2.ClaimTaskRequest(room="demo", task=KEY))


@pytest.mark.parametrize(
    "value", [["sec", "builder"], ["@sec", "@Builder", "sec"], "@sec, builder", '["sec", "builder"]']
)
def test_a_task_may_be_for_several(value: Any) -> None:
    """Each is told, and a line names them."""
    board = Hub()
    board.task(KEY, assignee=value)
    assert settled(board) == ["filed by avery"]
    event = moves(board)[-1]
    assert told(event) == {"sec": ASSIGNED, "builder": ASSIGNED}
    assert notices.notice(event, 1).content.startswith("@avery filed work/x for @sec, @builder")
    assert shown(board).assignee == "sec, builder"


@pytest.mark.parametrize(
    "request_",
    [
        moving(views_pb2.MOVE_RESOLVED, KEY),
        moving(views_pb2.MOVE_PROMOTED, KEY),
        moving(views_pb2.MOVE_DISMISSED, KEY),
        moving(views_pb2.MOVE_ANSWERED, KEY, answer="yes"),
    ],
)
def test_what_is_closed_waits_for_nothing(request_: service_pb2.MoveTaskRequest) -> None:
    """So who opens it again finds it as if it had never been blocked; without a reason nothing is said of one."""
    board = Hub()
    board.task(KEY, blocked_by="#502")
    board.ask(request_)
    changes = json.loads(events_pb2.TaskMoved.FromString(board.facts[-1].data).fields_json)
    assert changes["blocked_by"] is None
    assert shown(board).blocked_by == ""


def test_a_concern_that_is_over_waits_for_nothing() -> None:
    """As what anybody closes."""
    board = Hub()
    board.task(KEY, kind="concern", blocked_by="#502")
    [document_id] = board.tables.one("SELECT document_id FROM task") or [""]
    board.later(days=8)
    assert board.ask(service_pb2.ExpireConcernRequest(room_id=board.room_id, document_id=document_id), "").expired
    assert shown(board).blocked_by == ""


def test_reading_knows_the_closed_words() -> None:
    """Every word that is read as an end is one of the two."""
    assert {reading.status(word) for word in reading.DONE} == {"resolved"}
