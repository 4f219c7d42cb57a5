"""What may be spent, decided: the law of sums, limits that hold, one count for a step however often it is tried."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.engine.v1 import service_pb2
from mycelium_engine import spending
from mycelium_engine.calls import PICO, Limits, Outcome, Use
from mycelium_engine.spending import State
from mycelium_kernel.errors import Refusal

NOW = datetime(2026, 9, 3, 16, 40, tzinfo=UTC)
LATER = datetime(2026, 9, 4, 8, 0, tzinfo=UTC)
SMALL = st.integers(1, 10**6)


def use(step: int, ask: int, outcome: Outcome = "reported", read: int = 3, wrote: int = 4, pico: int | None = 5) -> Use:
    return Use(step, ask, False, outcome, read, wrote, pico)


def admitted(state: State | None, hub: Limits, step: int, ask: int) -> spending.Verdict:
    return spending.admit(state, hub, step, ask, NOW, is_priced=True)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=40), st.data())
def test_the_sum_of_the_parts_is_the_total_however_often_each_is_told(
    taken: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Each use counts once, in any order, with any of them told again right away."""
    state: State | None = None
    for number, (read, wrote, pico) in enumerate(taken):
        one = use(number, number + 1000, "reported", read, wrote, pico)
        for _ in range(data.draw(st.integers(1, 3))):
            state = spending.record(state, one, NOW) or state

    turns, tokens, money = spending.parts(state, Limits())
    assert turns.used == len(taken)
    assert tokens.used == sum(read + wrote for read, wrote, _ in taken)
    assert money.used == sum(pico for _, _, pico in taken)


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=60))
def test_turns_are_never_more_than_their_limit(limit: int, tries: list[tuple[int, int]]) -> None:
    """Whatever steps try, and whichever of them is tried again: so many steps ask, and no other."""
    state: State | None = None
    asked = set()
    for step, ask in tries:
        verdict = admitted(state, Limits(turns=limit), step, ask)
        state = verdict.state or state
        if not verdict.slug:
            asked.add(step)

    assert len(asked) == min(limit, len({step for step, _ in tries}))
    assert (state or State()).turns == len(asked)


def test_a_step_that_died_asks_again_on_its_own_turn_and_what_it_took_is_called_lost() -> None:
    """Killed between the turn and the answer: nobody knows what was answered, and no second turn is taken."""
    hub = Limits(turns=1)
    first = admitted(None, hub, 7, 1)
    again = admitted(first.state, hub, 7, 2)
    other = admitted(again.state, hub, 8, 3)

    assert (first.is_reserved, again.is_reserved, again.slug, other.slug) == (True, True, "", "model.over_budget")
    assert again.state is not None
    assert (again.state.turns, again.state.lost) == (1, 1)
    assert admitted(again.state, hub, 7, 2).state is None, "a try whose answer from the log was lost takes no second"
    done = spending.record(again.state, Use(7, 2, True, "reported", 3, 4, 5), NOW)
    assert done is not None
    assert (done.turns, done.input_tokens, done.output_tokens, done.pico_usd) == (1, 3, 4, 5)


def test_a_turn_that_was_reserved_and_forgotten_is_not_counted_twice() -> None:
    """More steps than are remembered may come between."""
    state = admitted(None, Limits(turns=1000), 1, 1).state
    for step in range(2, 2 + spending.REMEMBERED):
        state = spending.record(state, use(step, 1), NOW)
    assert state is not None
    assert len(state.counted) == spending.REMEMBERED
    state = spending.record(state, Use(1, 1, True, "reported", 1, 1, 1), NOW)
    assert state is not None
    assert state.turns == 1 + spending.REMEMBERED


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        (Limits(turns=1), "1 of the 1 turns of this room (the hub's llm.max_turns_per_room)"),
        (Limits(tokens=7), "7 of the 7 tokens of this room (the hub's llm.max_tokens_per_room)"),
        (Limits(pico_usd=5), "$0.000000000005 of the $0.000000000005 of this room (the hub's llm.max_usd_per_room)"),
    ],
)
def test_what_is_used_up_is_said_with_its_limit_and_whose_it_is(hub: Limits, said: str) -> None:
    """And since when."""
    state = spending.record(None, use(1, 1), NOW)

    verdict = admitted(state, hub, 2, 2)

    assert verdict.slug == "model.over_budget"
    assert verdict.detail == f"engines have used {said} since 2026-09-03 16:40 UTC"
    assert verdict.arguments == "--renew"


def test_what_nobody_knows_is_not_guessed() -> None:
    """Tokens that were not told end a budget in tokens or money, not one in turns; a price must be known before."""
    state = spending.record(None, use(1, 1, "unreported", 0, 0, None), NOW)
    lost = spending.record(None, use(1, 1, "lost", 0, 0, None), NOW)

    assert admitted(state, Limits(tokens=100), 2, 2).slug == "model.unmetered"
    assert admitted(state, Limits(pico_usd=100), 2, 2).slug == "model.unmetered"
    assert admitted(state, Limits(turns=2), 2, 2).slug == ""
    assert admitted(lost, Limits(tokens=100), 2, 2).slug == ""
    assert lost is not None
    assert lost.lost == 1
    unknown = spending.admit(None, Limits(pico_usd=100), 2, 2, NOW, is_priced=False)
    assert unknown.slug == "model.price_unknown"
    assert spending.admit(None, Limits(tokens=100), 2, 2, NOW, is_priced=False).slug == ""


def test_without_a_limit_in_turns_nothing_is_saved_before_the_question() -> None:
    """Each save is a sync to disk."""
    assert admitted(None, Limits(tokens=5, pico_usd=5), 1, 1) == spending.Verdict()


def changing(**given: object) -> service_pb2.ChangeBudgetRequest:
    request = service_pb2.ChangeBudgetRequest(room_id="r", renew=bool(given.pop("renew", False)))
    for name, limit in given.items():
        target = getattr(request, name)
        target.SetInParent()
        if limit == "hub":
            target.inherit = True
        else:
            target.most = limit
    return request


def test_a_rooms_own_limits_replace_the_hubs_until_they_are_taken_back() -> None:
    """None at all is a limit of its own, too."""
    hub = Limits(turns=9, tokens=9)
    state = spending.change(None, changing(turns=2, tokens=0), "avery 1", NOW)

    assert [(part.limit, part.is_own) for part in spending.parts(state, hub)] == [(2, True), (0, True), (0, False)]
    state = spending.change(state, changing(turns="hub"), "avery 2", NOW)
    assert [(part.limit, part.is_own) for part in spending.parts(state, hub)] == [(9, False), (0, True), (0, False)]


def test_renewing_counts_from_zero_once_for_each_key() -> None:
    """Limits stay; what a step under way took is counted from then on; a repeat takes away nothing."""
    state = spending.change(None, changing(turns=1), "avery 1", NOW)
    state = admitted(state, Limits(), 1, 1).state
    state = spending.change(state, changing(renew=True), "avery 2", LATER)
    assert state is not None
    assert (state.turns, state.limits.turns, state.since.ToDatetime(UTC)) == (0, 1, LATER)
    state = spending.record(state, Use(1, 1, True, "reported", 3, 4, 5), LATER)
    assert state is not None
    assert (state.turns, state.input_tokens) == (0, 3)

    assert spending.change(state, changing(renew=True), "avery 2", LATER) is None
    with pytest.raises(Refusal, match=r"key\.reused"):
        spending.change(state, changing(turns=5), "avery 2", LATER)


@pytest.mark.parametrize(
    ("pico", "text"),
    [(0, "$0.00"), (PICO * 5 // 2, "$2.50"), (31_200_000_000, "$0.0312"), (PICO, "$1.00"), (1, "$0.000000000001")],
)
def test_money_is_shown_whole(pico: int, text: str) -> None:
    """No part of it is rounded away."""
    assert spending.usd(pico) == text
