"""What a name means when it could mean several tasks, or none; and what is told of a task that is gone."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.board.v1 import events_pb2, service_pb2
from mycelium_board import lookup, notices
from services.board.tests.hub import Hub


def claiming(task: str) -> service_pb2.ClaimTaskRequest:
    return service_pb2.ClaimTaskRequest(room="demo", task=task)


def test_a_title_that_is_like_a_short_id_is_not_taken_silently() -> None:
    """Either may be meant; a whole key and a whole thread say which."""
    board = Hub()
    thread = board.task("work/first")
    board.task(f"work/{thread[-8:]}")
    refusal = board.refused("id.ambiguous", claiming(thread[-8:]))
    assert refusal.extras["near"] == ["work/first", f"work/{thread[-8:]}"]
    assert board.claim(f"work/{thread[-8:]}").key == f"work/{thread[-8:]}"
    assert board.claim(thread).key == "work/first"


def test_a_task_whose_key_is_its_own_short_id_is_one() -> None:
    """And no two."""
    board = Hub()
    key = "work/x"
    thread = board.task(key)
    assert [task.key for task in lookup.named(board.tables, board.room_id, thread[-8:])] == [key]


@pytest.mark.parametrize("text", ["[[work/f-1]]", "[[f-1]]", "[[Work/F-1|the first]]", "myc://work/f-1", "work/f-l"])
def test_near_names_are_those_of_what_a_link_means(text: str) -> None:
    """A link is no name of a task, but says which is meant."""
    board = Hub()
    for number in range(1, 4):
        board.task(f"work/f-{number}")
    assert "work/f-1" in board.refused("task.not_found", claiming(text)).extras["near"]


def test_who_waited_for_what_is_gone_is_told_that_it_is_gone() -> None:
    """And of what is closed, that it is closed."""
    board = Hub()
    for key in ("work/gone", "work/done"):
        board.task(key)
        fields: dict[str, Any] = {"depends-on": key}
        board.task(f"{key}-then", **fields)
    board.remove("work/gone")
    board.resolve("work/done")
    said = []
    for key in ("work/gone", "work/done"):
        waiting = lookup.document_of(f"{key}-then")
        request = service_pb2.UnblockTaskRequest(
            room_id=board.room_id, document_id=waiting, cause=key, closed=len(board.facts)
        )
        assert board.ask(request, "").unblocked
        said.append(notices.line(events_pb2.TaskMoved.FromString(board.facts[-1].data)).partition(" — ")[0])
    assert said == [
        "work/gone-then waits no longer: work/gone is removed",
        "work/done-then waits no longer: work/done is closed",
    ]
