"""The rows of a board: which a filter means, in which order, and what they say."""

from __future__ import annotations

import pytest

from mycelium.board.v1 import service_pb2
from mycelium_board import queries
from mycelium_board.creating import slug
from services.board.tests.hub import START, Hub


def rows(board: Hub, wanted: service_pb2.Filter.ValueType, since_ms: int = 0) -> list[str]:
    request = service_pb2.ListTasksRequest(room="demo", filter=wanted, closed_since_ms=since_ms)
    return [row.key for row in queries.list_tasks(board.tables, request, board.context("avery")).rows]


def test_filters_mean_what_a_person_looks_for() -> None:
    """Decisions first, then what is blocked, then reviews; claimed work; what was closed since a moment."""
    board = Hub()
    board.task("work/plain")
    board.task("work/review", status="in_review")
    board.task("work/stuck", status="blocked")
    board.task("decisions/ttl")
    board.task("work/done", status="resolved")
    board.task("context/stack", "no task")
    assert rows(board, service_pb2.FILTER_UNSPECIFIED) == ["decisions/ttl", "work/stuck", "work/review"]
    board.claim("work/plain", ttl_s=60)
    assert rows(board, service_pb2.FILTER_IN_FLIGHT) == ["work/plain"]
    board.later(seconds=61)
    assert rows(board, service_pb2.FILTER_IN_FLIGHT) == []
    assert rows(board, service_pb2.FILTER_RESOLVED) == ["work/done"]
    assert rows(board, service_pb2.FILTER_RESOLVED, round(START.timestamp() * 1000) + 1) == []
    assert len(rows(board, service_pb2.FILTER_ALL)) == 5


def test_a_title_is_the_field_the_heading_or_the_first_line() -> None:
    """Whatever a person wrote."""
    board = Hub()
    board.task("work/a", "body", title="Re: plan: phase 2")
    board.task("work/b", "\n\nfirst line\nsecond")
    request = service_pb2.ListTasksRequest(room="demo", filter=service_pb2.FILTER_ALL)
    found = queries.list_tasks(board.tables, request, board.context("avery")).rows
    assert {row.key: row.title for row in found} == {"work/a": "Re: plan: phase 2", "work/b": "first line"}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Ship passkey login", "ship-passkey-login"),
        ("Don't panic!", "dont-panic"),
        ("Café über alles", "cafe-uber-alles"),
        ("🚀", ""),
        ("x" * 70, "x" * 60),
        ("many words " * 10, "many-words-many-words-many-words-many-words-many-words-many"),
    ],
)
def test_a_key_is_made_of_the_titles_words(title: str, expected: str) -> None:
    """In plain letters; nothing when nothing is left."""
    assert slug(title) == expected
