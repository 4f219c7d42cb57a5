"""What becomes of tasks: who may, what the document is told, and what is refused."""

from __future__ import annotations

import json

import pytest
from google.protobuf.message import Message

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import events
from services.board.tests.hub import Hub, moving

KEY = "decisions/jwt-ttl"


@pytest.fixture
def board() -> Hub:
    """With one decision that offers two answers."""
    hub = Hub()
    hub.task(KEY, "JWT access-token TTL?", options=["15m", "60m"])
    return hub


def moved(board: Hub, request: Message, by: str = "sec") -> dict[str, object]:
    """What the document's fields become by a request."""
    board.ask(request, by)
    fact = board.facts[-1]
    assert fact.type == events.type_name(events_pb2.TaskMoved)
    changes: dict[str, object] = json.loads(events_pb2.TaskMoved.FromString(fact.data).fields_json)
    return changes


def blocking(on: str = "", *, token: int = 0) -> service_pb2.MoveTaskRequest:
    return moving(views_pb2.MOVE_BLOCKED, KEY, on=on, token=token)


def clearing() -> service_pb2.MoveTaskRequest:
    return moving(views_pb2.MOVE_UNBLOCKED, KEY)


def answering(answer: str, *, token: int = 0) -> service_pb2.MoveTaskRequest:
    return moving(views_pb2.MOVE_ANSWERED, KEY, answer=answer, token=token)


def test_a_decision_takes_one_of_its_options(board: Hub) -> None:
    """And is resolved by it."""
    refusal = board.refused("request.invalid", answering("5m"))
    assert refusal.extras["near"] == ["15m", "60m"]
    assert moved(board, answering(" 15m ")) == {"status": "resolved", "answer": "15m"}
    board.refused("task.closed", answering("60m"))


@pytest.mark.parametrize(
    ("move", "changes"),
    [
        (views_pb2.MOVE_RESOLVED, {"status": "resolved"}),
        (views_pb2.MOVE_PROMOTED, {"status": "resolved", "promoted": True}),
        (views_pb2.MOVE_DISMISSED, {"status": "dismissed"}),
    ],
)
def test_a_task_is_closed_once(board: Hub, move: views_pb2.Move.ValueType, changes: dict[str, object]) -> None:
    """Whatever closed it, nothing closes it again."""
    assert moved(board, moving(move, KEY)) == changes
    board.refused("task.closed", moving(move, KEY))


@pytest.mark.parametrize(
    ("move", "changes"),
    [
        (views_pb2.MOVE_RESOLVED, {"status": "resolved", "promoted": None}),
        (views_pb2.MOVE_DISMISSED, {"status": "dismissed", "promoted": None}),
        (views_pb2.MOVE_PROMOTED, {"status": "resolved", "promoted": True}),
    ],
)
def test_what_was_promoted_and_opened_again_is_what_it_comes_to_now(
    board: Hub, move: views_pb2.Move.ValueType, changes: dict[str, object]
) -> None:
    """Not promoted for ever: its row would say so."""
    board.task(KEY, status="open", promoted=True)
    assert moved(board, moving(move, KEY)) == changes


def test_a_blocked_task_says_what_it_waits_for_and_keeps_its_holder(board: Hub) -> None:
    """A claim by the next one clears it, and so does `clear`."""
    held = board.claim(KEY)
    assert moved(board, blocking(on="#502"), "builder") == {"status": "blocked", "blocked_by": "#502"}
    assert board.claim(KEY).token == held.token
    board.task(KEY, status="blocked", blocked_by="#502", move=len(board.facts))
    assert moved(board, clearing()) == {"status": "open", "blocked_by": None}
    board.task(KEY, status="open", move=len(board.facts))
    board.task(KEY, status="blocked", blocked_by="#502")
    board.release(KEY)
    board.claim(KEY, "builder")
    assert json.loads(events_pb2.TaskMoved.FromString(board.facts[-1].data).fields_json)["blocked_by"] is None


def test_nothing_to_block_or_clear_is_refused(board: Hub) -> None:
    """Neither without a reason, nor what is not blocked."""
    board.refused("request.invalid", blocking())
    board.refused("request.invalid", blocking(on="  "))
    board.refused("task.not_blocked", clearing())
    board.refused("content.too_large", blocking(on="x" * 501))


def test_an_old_token_moves_nothing(board: Hub) -> None:
    """Of any move."""
    old = board.claim(KEY)
    board.release(KEY)
    for request in (
        blocking(on="x", token=old.token),
        moving(views_pb2.MOVE_RESOLVED, KEY, token=old.token),
        moving(views_pb2.MOVE_DISMISSED, KEY, token=old.token),
        answering("15m", token=old.token),
    ):
        board.refused("lease.lost", request)
