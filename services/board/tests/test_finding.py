"""Which task is meant, and from which place in the log on something may have been done to it."""

from __future__ import annotations

import pytest

from mycelium.board.v1 import finding_pb2, service_pb2
from mycelium_board import queries_finding
from mycelium_kernel.errors import Refusal
from services.board.tests.hub import Hub

KEY = "work/ship-passkey-login"


def find(board: Hub, named: str = KEY, handle: str = "sec") -> finding_pb2.FindTaskResponse:
    request = finding_pb2.FindTaskRequest(room="demo", task=named)
    return queries_finding.find_task(board.tables, request, board.context(handle))


def test_a_task_is_found_by_every_name_with_the_place_of_its_last_fact() -> None:
    """A renewal is one; nothing that is done to another task is."""
    board = Hub()
    thread = board.task(KEY)
    board.task("work/other")
    assert find(board).sequence == 0
    claim = board.claim(KEY)
    board.claim("work/other")
    for named in (KEY, "ship-passkey-login", thread, thread[-8:]):
        found = find(board, named)
        assert (found.key, found.thread, found.sequence) == (KEY, thread, claim.token)
    board.renew(KEY)
    assert find(board).sequence == len(board.facts) > claim.token


def test_a_refused_claim_tells_the_place_of_what_it_was_refused_for() -> None:
    """Whatever is done to the task after that stands behind it."""
    board = Hub()
    thread = board.task(KEY)
    board.claim(KEY)
    board.renew(KEY)
    refusal = board.refused(
        "claim.held", service_pb2.ClaimTaskRequest(room="demo", task="ship-passkey-login"), "builder"
    )
    told = {name: refusal.extras[name] for name in ("task", "thread", "sequence")}
    assert told == {"task": [KEY], "thread": [thread], "sequence": [str(find(board).sequence)]}


def test_what_is_not_there_is_not_found() -> None:
    """A task that was deleted, a note, a room that the caller is a stranger to."""
    board = Hub(private=True)
    board.task(KEY)
    board.task("context/note")
    assert find(board).key == KEY
    for named, handle, slug in ((KEY, "stranger", "room.not_found"), ("context/note", "sec", "task.not_found")):
        with pytest.raises(Refusal, match=slug):
            find(board, named, handle)
    board.remove(KEY)
    with pytest.raises(Refusal, match=r"task\.not_found"):
        find(board)
