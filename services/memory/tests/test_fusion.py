"""Rankings made into one: laws that hold for any rankings."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mycelium_memory.fusion import fuse

RANKINGS = st.lists(st.lists(st.integers(0, 12), max_size=10), max_size=4)


def order(*rankings: list[str]) -> list[str]:
    return [fused.what for fused in fuse(rankings)]


def test_what_both_have_comes_before_what_one_has_at_its_top() -> None:
    """The point of it."""
    assert order(["a", "b", "c"], ["d", "b", "e"]) == ["b", "a", "d", "c", "e"]


def test_a_single_ranking_stays_as_it_is() -> None:
    """Search by words alone, while there is no meaning."""
    assert order(["c", "a", "b"], []) == ["c", "a", "b"]
    assert order() == []


def test_a_thing_that_comes_twice_counts_once_where_it_came_first() -> None:
    """As a section with several passages does; what follows moves up."""
    fused = fuse([["a", "a", "b"]])
    assert [(one.what, one.places) for one in fused] == [("a", (1,)), ("b", (2,))]


def test_a_weight_of_nothing_takes_a_ranking_out_of_the_score() -> None:
    """Weights are of rankings."""
    assert [one.what for one in fuse([["a", "b"], ["b", "a"]], weights=(1, 0))] == ["a", "b"]


@given(RANKINGS)
def test_everything_is_there_once_with_a_falling_score(rankings: list[list[int]]) -> None:
    """Nothing is lost, nothing is doubled."""
    fused = fuse(rankings)
    assert sorted(one.what for one in fused) == sorted({what for ranking in rankings for what in ranking})
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)


@given(RANKINGS, st.integers(0, 12))
def test_moving_up_in_one_ranking_never_moves_a_thing_down(rankings: list[list[int]], thing: int) -> None:
    """Monotone."""
    for number, ranking in enumerate(rankings):
        if thing in ranking[1:]:
            better = [*rankings]
            better[number] = [thing, *(what for what in ranking if what != thing)]
            assert place(better, thing) <= place(rankings, thing)


@given(RANKINGS)
def test_the_order_of_rankings_changes_no_score(rankings: list[list[int]]) -> None:
    """Neither words nor meaning come first."""
    scores = {one.what: round(one.score, 12) for one in fuse(rankings)}
    assert scores == {one.what: round(one.score, 12) for one in fuse(rankings[::-1])}


@given(RANKINGS)
def test_two_things_that_all_rankings_have_in_one_order_stay_in_it(rankings: list[list[int]]) -> None:
    """Agreement is kept."""
    fused = [one.what for one in fuse(rankings)]
    places = {one.what: one.places for one in fuse(rankings)}
    for early, late in pairwise(fused):
        assert not all(0 < b < a for a, b in zip(places[early], places[late], strict=True))


def place(rankings: list[list[int]], thing: int) -> int:
    return [one.what for one in fuse(rankings)].index(thing)
