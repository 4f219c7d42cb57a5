"""The judge of histories is judged: known good and bad ones, and any small one against trying every order."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.linear import NEVER, Call, fault
from e2e.register import Answer, Asked, History, State, done, step
from e2e.requirements import requirement

A, B = "avery", "kim"


def wrote(
    version: int, value: str, began: float, ended: float, *, replaced: int = 0, **said: int | None
) -> Call[Asked]:
    """A `set` that was done."""
    return Call("k", Asked("set", Answer("written", version, replaced), value, A, said.get("expect")), began, ended)


def read(version: int, value: str, began: float, ended: float) -> Call[Asked]:
    """A `get`; version 0: nothing was there."""
    answer = Answer("found", version, value=value, author=A) if version else Answer("absent")
    return Call("k", Asked("get", answer), began, ended)


def removed(began: float, ended: float, *, said: str = "removed") -> Call[Asked]:
    """An `rm`."""
    return Call("k", Asked("rm", Answer(said), author=A), began, ended)


def stale(expect: int, version: int, began: float, ended: float) -> Call[Asked]:
    """A `set` that was refused."""
    answer = Answer("stale", version, author=A if version else "")
    return Call("k", Asked("set", answer, "never", B, expect), began, ended)


def cut(value: str, began: float) -> Call[Asked]:
    """A `set` whose answer nobody heard."""
    return Call("k", Asked("set", None, value, A), began, NEVER)


def in_doubt(value: str, began: float, ended: float) -> Call[Asked]:
    """A `set` that was done before its end, or not at all."""
    return Call("k", Asked("set", None, value, A), began, ended, may_fail=True)


GOOD: dict[str, History] = {
    "one after the other": [
        wrote(1, "a", 0, 1),
        read(1, "a", 2, 3),
        wrote(2, "b", 4, 5, replaced=1),
        read(2, "b", 6, 7),
    ],
    "a read of the new text while it is written": [wrote(1, "a", 0, 10), read(1, "a", 1, 2)],
    "reads on both sides of a write": [wrote(1, "a", 0, 10), read(0, "", 1, 8), read(1, "a", 2, 9)],
    "answers in another order than they took effect": [wrote(2, "b", 0, 1, replaced=1), wrote(1, "a", 0, 9)],
    "a removal, and versions that go on": [wrote(1, "a", 0, 1), removed(2, 3), read(0, "", 4, 5), wrote(3, "c", 6, 7)],
    "a second removal finds nothing": [wrote(1, "a", 0, 1), removed(2, 9), removed(2, 9, said="absent")],
    "of two who expect one is refused": [wrote(1, "a", 0, 9, expect=0), stale(0, 1, 0, 9)],
    "a write that was cut off and done": [cut("a", 0), read(1, "a", 5, 6)],
    "a write that was cut off and done much later": [cut("a", 0), read(0, "", 5, 6), read(1, "a", 7, 8)],
    "a write that may fail, and did": [in_doubt("a", 0, 9), wrote(1, "b", 7, 8), read(1, "b", 10, 11)],
    "a write that may fail, and did not": [in_doubt("a", 0, 9), read(1, "a", 7, 8), read(1, "a", 10, 11)],
    "a write that was cut off and never done": [cut("a", 0), read(0, "", 5, 6), wrote(1, "b", 7, 8)],
}
BAD: dict[str, History] = {
    "a stale read": [wrote(1, "a", 0, 1), read(0, "", 2, 3)],
    "a read of what is not yet written": [read(1, "a", 0, 1), wrote(1, "a", 2, 3)],
    "a read of what was replaced": [wrote(1, "a", 0, 1), wrote(2, "b", 2, 3, replaced=1), read(1, "a", 4, 5)],
    "two reads that go back": [wrote(1, "a", 0, 99), read(1, "a", 2, 3), read(0, "", 4, 5)],
    "two winners of one version": [wrote(1, "a", 0, 9, expect=0), wrote(1, "b", 0, 9, expect=0)],
    "a lost write": [wrote(1, "a", 0, 1), wrote(1, "b", 2, 3)],
    "a write that expected another version": [wrote(1, "a", 0, 1), wrote(2, "b", 2, 3, replaced=1, expect=0)],
    "refused with a version that never was": [wrote(1, "a", 0, 1), stale(0, 2, 2, 3)],
    "refused although it was so": [wrote(1, "a", 0, 1), stale(1, 1, 2, 3)],
    "done after its end": [in_doubt("a", 0, 9), read(0, "", 10, 11), read(1, "a", 12, 13)],
    "done twice": [cut("a", 0), wrote(2, "b", 1, 2, replaced=1), wrote(4, "c", 3, 4, replaced=3)],
    "a version was passed over": [wrote(1, "a", 0, 1), wrote(3, "b", 2, 3, replaced=1)],
    "removed twice": [wrote(1, "a", 0, 1), removed(2, 9), removed(2, 9)],
    "a removed text comes back": [wrote(1, "a", 0, 1), removed(2, 3), read(1, "a", 4, 5)],
}


@requirement("memory:races")
@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_passes(name: str) -> None:
    """Each has an order."""
    assert fault(GOOD[name], State(), step) is None


@requirement("memory:races")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_caught(name: str) -> None:
    """None has, and the fault shows where it ends."""
    found = fault(BAD[name], State(), step)
    assert found is not None
    assert found.stuck
    assert "'k' is not linearizable" in str(found)


@requirement("memory:races")
def test_each_key_has_an_order_of_its_own() -> None:
    """What is wrong with one is told of that one."""
    other = [
        Call(f"other{number}", call.asked, call.began, call.ended)
        for number, call in enumerate(GOOD["one after the other"][:1])
    ]
    found = fault([*other, *BAD["a lost write"]], State(), step)
    assert found is not None
    assert found.on == "k"


def any_order(calls: History) -> bool:
    """By trying every order of every choice of the calls that were not answered."""
    return any(
        _fits(order) for size in range(len(calls) + 1) for order in permutations(calls, size) if _is_whole(calls, order)
    )


def _is_whole(calls: History, order: tuple[Call[Asked], ...]) -> bool:
    return all(call in order for call in calls if call.ended < NEVER and not call.may_fail)


def _fits(order: tuple[Call[Asked], ...]) -> bool:
    state: State | None = State()
    latest = 0.0
    for call in order:
        latest = max(latest, call.began)
        state = step(state, call.asked) if state is not None and latest <= call.ended else None
    return state is not None


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Up to five calls, whose answers may be right or not."""
    found: History = []
    for number in range(draw(st.integers(1, 5))):
        what = draw(st.sampled_from(["set", "set", "get", "rm"]))
        version = draw(st.integers(0, 3))
        said = {
            "set": st.sampled_from(
                [Answer("written", version, draw(st.integers(0, 2))), Answer("stale", version), None]
            ),
            "get": st.sampled_from([Answer("found", version, value=draw(st.sampled_from("01234"))), Answer("absent")]),
            "rm": st.sampled_from([Answer("removed"), Answer("absent"), None]),
        }[what]
        answer, expect = draw(said), draw(st.none() | st.integers(0, 3))
        began = draw(st.integers(0, 6))
        may_fail = answer is None and draw(st.booleans())
        ended = began + draw(st.integers(0, 6)) if answer or may_fail else NEVER
        asked = Asked(what, answer, str(number), "", None if what == "get" else expect)
        found.append(Call("k", asked, began, ended, may_fail))
    return found


@requirement("memory:races")
@settings(max_examples=150, deadline=None)
@given(histories())
def test_it_says_what_trying_every_order_says(history: History) -> None:
    """On every small history."""
    assert (fault(history, State(), step) is None) == any_order(history)


@requirement("memory:races")
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["set", "get", "rm"]), st.none() | st.integers(0, 3), st.integers(0, 9)), max_size=40
    )
)
def test_what_was_done_one_after_the_other_passes_however_long_it_took(
    script: list[tuple[str, int | None, int]],
) -> None:
    """Answers of a true order, with begins and ends moved apart."""
    state, history = State(), []
    for moment, (what, expect, spread) in enumerate(script):
        asked = Asked(what, None, f"v{moment}", A, None if what == "get" else expect)
        state, truth = done(state, asked)
        history.append(Call("k", asked._replace(answer=truth), moment - spread, moment + spread))
    assert fault(history, State(), step) is None
