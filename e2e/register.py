"""A memory under one key as callers see it: what may be asked of it, and which answers each state allows."""

from typing import NamedTuple

from e2e.linear import Call


class State(NamedTuple):
    """The number of its last version, or removal; and the text and its author while it is there."""

    version: int = 0
    there: bool = False
    value: str = ""
    author: str = ""

    @property
    def current(self) -> int:
        """What an expectation has to say."""
        return self.version if self.there else 0


class Answer(NamedTuple):
    """`written` with its version and the one that it replaced, `found`, `stale` with what is, `removed`, `absent`."""

    said: str
    version: int = 0
    replaced: int = 0
    value: str = ""
    author: str = ""


class Asked(NamedTuple):
    """A `set`, `get` or `rm`, what was expected, and the answer; None: nobody knows."""

    what: str
    answer: Answer | None
    value: str = ""
    author: str = ""
    expect: int | None = None


def step(state: State, asked: Asked) -> State | None:
    """The memory after a call, or None when the answer can't be given where it is so."""
    after, truth = done(state, asked)
    return after if asked.answer in {None, truth} else None


def done(state: State, asked: Asked) -> tuple[State, Answer]:
    """What a call does, and what it has to be told."""
    if asked.what == "get":
        found = Answer("found", state.version, value=state.value, author=state.author)
        return state, found if state.there else Answer("absent")
    if asked.what == "rm" and not state.there:
        return state, Answer("absent")
    if asked.expect not in {None, state.current}:
        return state, Answer("stale", state.current, author=state.author)
    if asked.what == "rm":
        return State(state.version + 1), Answer("removed")
    after = State(state.version + 1, there=True, value=asked.value, author=asked.author)
    return after, Answer("written", after.version, replaced=state.current)


History = list[Call[Asked]]
