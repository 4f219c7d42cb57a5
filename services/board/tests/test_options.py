"""What a decision offers, however its document writes it: the same for the answer and for the row."""

from __future__ import annotations

import pytest

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_board import options, queries
from mycelium_board.creating import MOST_OPTIONS, OPTION_CHARACTERS, offered
from mycelium_kernel.errors import Refusal
from services.board.tests.hub import Hub, moving

KEY = "decisions/ttl"
TWO = ["15m", "60m"]


def answering(text: str) -> service_pb2.MoveTaskRequest:
    return moving(views_pb2.MOVE_ANSWERED, KEY, answer=text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (TWO, TWO),
        ('["15m","60m"]', TWO),
        (" [15m, 60m] ", TWO),
        ("['15m', '60m']", TWO),
        ("15m, 60m", TWO),
        ("15m,,60m, ", TWO),
        ("15m\n60m", TWO),
        (["15m", None, "", " ", "60m", "15m"], TWO),
        ('["15m", null, "60m"]', TWO),
        ("15m", ["15m"]),
        ("[", ["["]),
        (15, ["15"]),
        ([15, 60.5], ["15", "60.5"]),
        (["a, or b", "[c]"], ["a, or b", "[c]"]),
        ('["a, or b", "[c]"]', ["a, or b", "[c]"]),
        *[(nothing, []) for nothing in (None, "", " , ", [], [None, ""], "[]", "[null]", {}, {"a": 1}, False)],
    ],
)
def test_options_bind_and_are_shown_alike(written: object, expected: list[str]) -> None:
    """A list, the text of one, or words between commas; what is empty is no answer. Without any, all answers do."""
    board = Hub()
    board.task(KEY, "How long?", options=written)
    row = queries.list_tasks(board.tables, service_pb2.ListTasksRequest(room="demo"), board.context("avery")).rows[0]
    assert list(row.options) == expected
    if expected:
        assert board.refused("request.invalid", answering("30m")).extras["near"] == expected
    assert board.ask(answering(expected[-1] if expected else "30m")).key == KEY


def test_a_text_that_only_looks_like_a_list_is_read_without_its_brackets() -> None:
    """However deep it seems to be."""
    assert options.offered({"options": "[" * 5_000 + "a]"}) == ["[" * 4_999 + "a"]


def test_the_answers_of_a_new_decision_are_plain_and_bounded() -> None:
    """Each once, in one line; too many or too long ones are refused."""
    assert offered([" 15m\n", "", "60m", "15m", "a,  b"]) == ["15m", "60m", "a, b"]
    for wrong in (list(map(str, range(MOST_OPTIONS + 1))), ["x" * (OPTION_CHARACTERS + 1)]):
        with pytest.raises(Refusal) as caught:
            offered(wrong)
        assert caught.value.slug == "content.too_large"
