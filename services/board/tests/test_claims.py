"""Claims: one holder, a token that proves it, an end; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_kernel import clock
from services.board.tests.hub import START, Hub, moving, rebuilt

KEY = "work/ship-passkey-login"


@pytest.fixture
def board() -> Hub:
    """With one task that nobody holds."""
    hub = Hub()
    hub.task(KEY, "# Ship passkey login")
    return hub


def claiming(**fields: object) -> service_pb2.ClaimTaskRequest:
    return service_pb2.ClaimTaskRequest(room="demo", task=KEY, **fields)  # type: ignore[arg-type]


def test_a_claim_has_a_token_and_an_end(board: Hub) -> None:
    """The token is the sequence of its fact; half an hour by default."""
    claim = board.claim(KEY)
    assert (claim.holder, claim.token, claim.ttl_s) == ("sec", len(board.facts), 1800)
    assert clock.to_millis(claim.expires_at) == (START.timestamp() + 1800) * 1000


def test_the_second_is_told_who_holds_it(board: Hub) -> None:
    """Until when, too; and the claim stands."""
    first = board.claim(KEY)
    refusal = board.refused("claim.held", claiming(), "builder")
    assert "@sec until 2026-01-05T12:30:00" in refusal.detail
    assert refusal.extras["holder"] == ["sec"]
    assert board.claim(KEY).token == first.token, "claiming again is no new claim"


@pytest.mark.parametrize("named", [KEY, "ship-passkey-login", "WORK/Ship-Passkey-Login", "thread", "short"])
def test_a_task_is_named_in_any_way(board: Hub, named: str) -> None:
    """By key with or without prefix, by its thread's id or the end of it."""
    thread = board.task(KEY)
    board.claim({"thread": thread, "short": thread[-8:]}.get(named, named))
    board.refused("claim.held", claiming(), "builder")


def test_what_is_no_task_is_not_found_with_what_is_near(board: Hub) -> None:
    """A document elsewhere is none."""
    board.task("context/stack")
    assert board.refused("task.not_found", service_pb2.ClaimTaskRequest(room="demo", task="context/stack"))
    refusal = board.refused("task.not_found", service_pb2.ClaimTaskRequest(room="demo", task="work/ship-passkey-logim"))
    assert refusal.extras["near"] == [KEY]


def test_after_its_end_anybody_may_have_it(board: Hub) -> None:
    """Whether or not anybody has said yet that it is over; and the old token proves nothing any more."""
    old = board.claim(KEY, ttl_s=60)
    board.later(seconds=60)
    new = board.claim(KEY, "builder")
    assert new.token > old.token
    for request in (
        service_pb2.RenewClaimRequest(room="demo", task=KEY, token=old.token),
        moving(views_pb2.MOVE_RESOLVED, KEY, token=old.token),
        service_pb2.ReleaseTaskRequest(room="demo", task=KEY, token=old.token),
    ):
        assert "@builder holds it now" in board.refused("lease.lost", request).detail
    assert board.claim(KEY, "builder").token == new.token


def test_a_renewal_keeps_the_token(board: Hub) -> None:
    """It lasts as long again, from now; and again."""
    claim = board.claim(KEY, ttl_s=600)
    for minutes in (5, 14, 23):
        board.now = START
        board.later(minutes=minutes)
        renewed = board.renew(KEY, token=claim.token)
        assert renewed.thread == claim.thread != ""
        assert (renewed.token, clock.to_millis(renewed.expires_at)) == (
            claim.token,
            (START.timestamp() + minutes * 60 + 600) * 1000,
        )
    board.later(minutes=10)
    board.refused("lease.lost", service_pb2.RenewClaimRequest(room="demo", task=KEY, token=claim.token))


def test_a_release_gives_it_back(board: Hub) -> None:
    """Only its holder may; then another claims it."""
    claim = board.claim(KEY)
    board.refused("claim.held", service_pb2.ReleaseTaskRequest(room="demo", task=KEY), "builder")
    board.release(KEY, token=claim.token, note="handing over")
    board.refused("claim.none", service_pb2.ReleaseTaskRequest(room="demo", task=KEY))
    assert board.claim(KEY, "builder").holder == "builder"


def test_a_claim_for_another_gives_them_the_token_when_they_ask(board: Hub) -> None:
    """`--to` moves it, and who moved it has no token."""
    board.claim(KEY)
    moved = board.claim(KEY, to="builder")
    assert (moved.holder, moved.token, moved.taken_from) == ("builder", 0, "sec")
    assert board.claim(KEY, "builder").token == len(board.facts)
    board.refused("claim.held", claiming())


def test_force_takes_it_and_says_from_whom(board: Hub) -> None:
    """The one it was taken from can do nothing under the old token."""
    old = board.claim(KEY)
    taken = board.claim(KEY, "builder", force=True)
    assert taken.taken_from == "sec"
    board.refused("lease.lost", moving(views_pb2.MOVE_RESOLVED, KEY, token=old.token))


def test_a_claim_says_what_its_task_waits_for(board: Hub) -> None:
    """Nobody is kept from it, and nobody overlooks it: asking again says so, too, until nothing is left of it."""
    board.task("work/migrate")
    first: Any = {"depends-on": ["migrate", "work/nowhere"]}
    board.task(KEY, **first)
    assert board.claim(KEY).waits_for == ["work/migrate"]
    assert board.claim(KEY).waits_for == ["work/migrate"]
    board.resolve("work/migrate")
    assert not board.claim(KEY).waits_for
    assert not board.claim(KEY, "builder", force=True).waits_for


def test_somebody_unknown_holds_nothing(board: Hub) -> None:
    """Neither by asking nor by being named."""
    board.refused("handle.unregistered", claiming(), "stranger")
    assert "agent create stranger" in (board.refused("handle.unregistered", claiming(to="stranger")).next or "")


def test_who_made_a_private_room_holds_what_is_in_it() -> None:
    """Without a record of their own, as everywhere; a stranger is told that there is no such room."""
    board = Hub(private=True)
    board.task(KEY)
    assert board.claim(KEY, by="avery").holder == "avery"
    assert board.refused("room.not_found", claiming(), "kim").detail == "Room not found: 'demo'"


@pytest.mark.parametrize("ttl_s", [7 * 24 * 3600 + 1, 2**31])
def test_a_claim_can_not_last_for_ever(board: Hub, ttl_s: int) -> None:
    board.refused("request.invalid", claiming(ttl_s=ttl_s))


def test_anybody_may_resolve_and_the_claim_ends(board: Hub) -> None:
    """The answer says who held it; what is resolved can't be claimed, even before the document says so."""
    claim = board.claim(KEY)
    done = board.resolve(KEY, "builder")
    assert done.held_by == "sec"
    board.refused("task.closed", claiming())
    late = board.refused("lease.lost", service_pb2.RenewClaimRequest(room="demo", task=KEY, token=claim.token))
    assert late.detail == f"the claim of {KEY} that this token is of has ended; it is resolved"
    assert late.next == f"mycelium memory set {KEY} --room demo -m status=open", "a claim would be refused"
    board.task(KEY, status="resolved", move=len(board.facts))
    board.refused("task.closed", claiming(), "builder")
    board.task(KEY, status="open")
    assert board.claim(KEY).token > claim.token, "somebody opened it again"


def test_an_end_is_said_once_and_only_of_that_claim(board: Hub) -> None:
    """A claim that was renewed, or another one, is left alone."""
    old = board.claim(KEY, ttl_s=60)
    ending = service_pb2.ExpireClaimRequest(room_id=board.room_id, key=KEY, token=old.token)
    assert not board.ask(ending, "").expired
    board.later(seconds=61)
    assert board.ask(ending, "").expired
    board.claim(KEY, "builder", ttl_s=60)
    assert not board.ask(ending, "").expired


def test_a_task_that_is_gone_lets_its_claim_end(board: Hub) -> None:
    """The document was removed meanwhile."""
    claim = board.claim(KEY, ttl_s=60)
    board.remove(KEY)
    board.refused("task.not_found", claiming())
    board.later(seconds=61)
    assert board.ask(service_pb2.ExpireClaimRequest(room_id=board.room_id, key=KEY, token=claim.token), "").expired


def test_tables_are_the_same_from_zero(board: Hub) -> None:
    """After all kinds of facts."""
    claim = board.claim(KEY, ttl_s=60)
    board.renew(KEY, token=claim.token)
    board.resolve(KEY, token=claim.token)
    board.task(KEY, status="resolved", move=len(board.facts))
    board.task("decisions/ttl", options=["15m", "60m"])
    board.ask(moving(views_pb2.MOVE_BLOCKED, "decisions/ttl", on="#502"))
    board.remove(KEY)
    assert rebuilt(board.facts).dump() == board.tables.dump()
