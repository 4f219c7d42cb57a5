"""The model that claims are judged by is judged: histories that a board may have, and such as none may have."""

import pytest

from e2e.lease import Answer, Asked, History, State, step
from e2e.linear import NEVER, Call, fault
from e2e.requirements import requirement

A, B = "sec", "builder"
TTL_S = 10


def call(asked: Asked, began: float, ended: float) -> Call[Asked]:
    """Between two seconds of the clock."""
    return Call("k", asked._replace(since=round(began * 1000), until=round(ended * 1000)), began, ended)


def took(
    by: str, token: int, began: float, ended: float, *, at: float | None = None, **asked: str | bool
) -> Call[Asked]:
    """A claim that was given, and lasts from `at` on."""
    ends = round(((began if at is None else at) + TTL_S) * 1000)
    said = Answer("claim", str(asked.get("to") or by), token, ends)
    return call(
        Asked("claim", by, said, to=str(asked.get("to", "")), ttl_s=TTL_S, force=bool(asked.get("force"))), began, ended
    )


def held(by: str, holder: str, until: float, began: float, ended: float) -> Call[Asked]:
    """A claim that was refused."""
    return call(Asked("claim", by, Answer("held", holder, ends=round(until * 1000)), ttl_s=TTL_S), began, ended)


def renewed(by: str, token: int, began: float, ended: float, *, until: float = 0) -> Call[Asked]:
    """A renewal that was done."""
    ends = round((until or began + TTL_S) * 1000)
    return call(Asked("renew", by, Answer("claim", by, token, ends), token=token, ttl_s=TTL_S), began, ended)


def did(what: str, said: str, token: int, began: float, ended: float, holder: str = "") -> Call[Asked]:
    """A release, a block or an end by A."""
    return call(Asked(what, A, Answer(said, holder), token=token, ttl_s=TTL_S), began, ended)


def seen(holder: str, until: float, began: float, ended: float) -> Call[Asked]:
    """What the board showed."""
    return call(Asked("look", B, Answer("row", holder, ends=round(until * 1000))), began, ended)


def cut(by: str, began: float, ended: float = NEVER) -> Call[Asked]:
    """A claim whose answer nobody heard; with an end, it may have failed."""
    asked = Asked("claim", by, since=round(began * 1000), until=round(min(ended, 99) * 1000), ttl_s=TTL_S)
    return Call("k", asked, began, ended, may_fail=ended < NEVER)


GOOD: dict[str, History] = {
    "one after the other": [took(A, 5, 0, 1), held(B, A, 10, 2, 3), did("release", "done", 5, 4, 5), took(B, 6, 6, 7)],
    "of two at once one is refused": [took(A, 5, 0, 9, at=3), held(B, A, 13, 0, 9)],
    "who holds it is shown it again": [took(A, 5, 0, 1), took(A, 5, 2, 3, at=0)],
    "its time is over": [took(A, 5, 0, 1), took(B, 6, 10, 11), did("renew", "lost", 5, 12, 13, B)],
    "over or not, nobody can say": [took(A, 5, 0, 1), took(B, 6, 9, 11, at=10.5)],
    "a renewal in time": [took(A, 5, 0, 1), renewed(A, 5, 8, 9), held(B, A, 18, 11, 12)],
    "by force": [took(A, 5, 0, 1), took(B, 6, 2, 3, force=True), did("release", "lost", 5, 4, 5, B)],
    "for another, who asks for the token": [took(A, 0, 0, 1, to=B), took(B, 5, 2, 3, at=0)],
    "resolved": [took(A, 5, 0, 1), did("resolve", "done", 5, 2, 3, A), did("claim", "closed", 0, 4, 5)],
    "resolved by another": [took(B, 5, 0, 1), did("resolve", "done", 0, 2, 3, B), did("resolve", "closed", 0, 4, 5)],
    "waiting, and still held": [took(A, 5, 0, 1), did("block", "done", 0, 2, 3, A), seen(A, 10, 4, 5)],
    "a look at what is over": [took(A, 5, 0, 1), seen(A, 10, 2, 3), seen("", 0, 11, 12)],
    "said to be over": [took(A, 5, 0, 1), did("expire", "done", 5, 11, 12, A), did("expire", "none", 5, 13, 14)],
    "cut off and done": [cut(A, 0), held(B, A, 10.5, 1, 2), took(A, 5, 3, 4, at=0.5)],
    "cut off and never done": [cut(A, 0), took(B, 5, 1, 2)],
    "in doubt and done late": [took(B, 4, 0, 1), cut(A, 3, 20), held(A, B, 10, 3, 4), seen(A, 24, 14, 15)],
}  # fmt: skip
BAD: dict[str, History] = {
    "two holders": [took(A, 5, 0, 9), took(B, 6, 0, 9)],
    "two holders under one token": [took(A, 5, 0, 9), took(B, 5, 0, 9)],
    "a token that shrinks": [took(A, 5, 0, 1), did("release", "done", 5, 2, 3), took(B, 4, 4, 5)],
    "renewed under an old token": [took(A, 5, 0, 1), took(B, 6, 2, 3, force=True), renewed(A, 5, 4, 5)],
    "renewed when it was over, and another held it": [took(A, 5, 0, 1), took(B, 6, 11, 12), renewed(A, 5, 13, 14)],
    "renewed when it was over": [took(A, 5, 0, 1), renewed(A, 5, 11, 12)],
    "ended although it was renewed": [took(A, 5, 0, 1), renewed(A, 5, 8, 9), took(B, 6, 11, 12)],
    "held although it was over": [took(A, 5, 0, 1), held(B, A, 10, 11, 12)],
    "held although it was given back": [took(A, 5, 0, 1), did("release", "done", 5, 2, 3), held(B, A, 10, 4, 5)],
    "a token shown to another": [took(A, 5, 0, 1, to=B)],
    "claimed although it was resolved": [did("resolve", "done", 0, 0, 1), took(A, 5, 2, 3)],
    "resolved twice": [did("resolve", "done", 0, 0, 9), did("resolve", "done", 0, 0, 9)],
    "released twice": [took(A, 5, 0, 1), did("release", "done", 5, 2, 9), did("release", "done", 5, 2, 9)],
    "an end that nobody was given": [took(A, 5, 0, 1, at=5)],
    "a refusal that tells of another end": [took(A, 5, 0, 1), held(B, A, 12, 2, 3)],
    "a look at a holder of before": [took(A, 5, 0, 1), did("release", "done", 5, 2, 3), seen(A, 10, 4, 5)],
    "a look past the holder": [took(A, 5, 0, 1), seen("", 0, 2, 3)],
    "waiting, and its claim is gone": [took(A, 5, 0, 1), did("block", "done", 0, 2, 3, A), seen("", 0, 4, 5)],
    "in doubt, and done too late": [took(B, 5, 0, 1), cut(A, 0, 9), seen(A, 30, 20, 21)],
}  # fmt: skip


@requirement("board:races")
@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_of_claims_passes(name: str) -> None:
    """Each has an order."""
    assert fault(GOOD[name], State(), step) is None


@requirement("board:races")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_of_claims_is_caught(name: str) -> None:
    """None has, and the fault shows where it ends."""
    found = fault(BAD[name], State(), step)
    assert found is not None
    assert found.stuck
