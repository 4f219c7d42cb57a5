"""Kept answers: never one from before a write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mycelium_memory.repeats import Repeats


def test_an_answer_is_found_again_until_one_of_its_rooms_is_written_to() -> None:
    """And only by the same question about the same rooms."""
    repeats: Repeats[str] = Repeats()
    repeats.keep("q", ("a", "b"), repeats.mark(("a", "b")), "answer")
    repeats.wrote("c")
    assert repeats.find("q", ("a", "b")) == "answer"
    assert repeats.find("q", ("a",)) is None
    assert repeats.find("other", ("a", "b")) is None
    repeats.wrote("b")
    assert repeats.find("q", ("a", "b")) is None


def test_an_answer_into_which_a_write_came_is_not_kept() -> None:
    """It was made from what was there before."""
    repeats: Repeats[str] = Repeats()
    mark = repeats.mark(("a",))
    repeats.wrote("a")
    repeats.keep("q", ("a",), mark, "old")
    assert repeats.find("q", ("a",)) is None


def test_the_longest_unused_leaves_when_there_are_too_many() -> None:
    """Its size has an end."""
    repeats: Repeats[int] = Repeats(most=2)
    for number in range(2):
        repeats.keep(number, (), repeats.mark(()), number)
    assert repeats.find(0, ()) == 0
    repeats.keep(2, (), repeats.mark(()), 2)
    assert [repeats.find(number, ()) for number in range(3)] == [0, None, 2]
    repeats.forget()
    assert repeats.find(0, ()) is None


STEP = st.tuples(st.sampled_from(["ask", "write"]), st.sampled_from([("a",), ("b",), ("a", "b")]))


@given(st.lists(STEP, max_size=40))
def test_what_is_found_is_always_what_a_fresh_look_would_say(steps: list[tuple[str, tuple[str, ...]]]) -> None:
    """Whatever the order of questions and writes."""
    repeats: Repeats[int] = Repeats(most=2)
    truth = {"a": 0, "b": 0}
    for verb, rooms in steps:
        if verb == "write":
            truth[rooms[0]] += 1
            repeats.wrote(rooms[0])
            continue
        fresh = sum(truth[room] for room in rooms)
        assert repeats.find("q", rooms) in {None, fresh}
        repeats.keep("q", rooms, repeats.mark(rooms), fresh)
        assert repeats.find("q", rooms) == fresh
