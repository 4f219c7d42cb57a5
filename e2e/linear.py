"""Judges whether a history of calls is linearizable: each took effect at one moment between its begin and its end.

The search of Wing and Gong with Lowe's memory: calls are put in an order one after the other, and a set of calls that
led to one state is tried once. Calls on different objects don't touch each other, so each object is looked at alone.
A call that was answered and changes nothing is put as early as it fits: later it would change nothing either.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)
Asked = TypeVar("Asked")
Step = Callable[[State, Asked], State | None]
NEVER = float("inf")
TOLD = 12  # of each list that a fault shows


@dataclass(frozen=True)
class Call(Generic[Asked]):
    """What was asked and answered, on which object, and between which two moments.

    One that was never answered has no end: it may have taken effect at any later moment, or never. One that `may_fail`
    takes effect before its end, or never.
    """

    on: str
    asked: Asked
    began: float
    ended: float = NEVER
    may_fail: bool = False


class Fault(NamedTuple):
    """An object whose calls fit no order, the end of the longest that was found, and what could not follow it."""

    on: str
    order: list[str]
    stuck: list[str]

    def __str__(self) -> str:
        """The end of it, which is where to look."""
        before = "\n    ".join(self.order) or "nothing"
        after = "\n    ".join(self.stuck)
        return f"{self.on!r} is not linearizable: after\n    {before}\n  none of these can be next\n    {after}"


def fault(calls: Iterable[Call[Asked]], start: State, step: Step[State, Asked]) -> Fault | None:
    """None when it is linearizable.

    `step` gives the state after what was asked in a state, or None when its answer can't be given in that state.
    """
    apart: defaultdict[str, list[Call[Asked]]] = defaultdict(list)
    for call in calls:
        apart[call.on].append(call)
    for on, part in sorted(apart.items()):
        found = _Search(part, start, step).run()
        if found is not None:
            order, stuck = found
            return Fault(on, [repr(call.asked) for call in order], [repr(call.asked) for call in stuck])
    return None


class _Entry:
    """The begin or the end of a call, in a list by time from which calls that have their place are lifted."""

    __slots__ = ("after", "before", "end", "number")

    def __init__(self, number: int, end: "_Entry | None") -> None:
        self.number, self.end = number, end  # `end`: of a begin, its end; None in the end itself, or without one
        self.before: _Entry = self
        self.after: _Entry | None = None


class _Step(NamedTuple, Generic[State]):
    """A call that was given a place, the state before it, and whether nothing else need be tried there."""

    begin: _Entry
    before: State
    is_sure: bool


class _Search(Generic[State, Asked]):
    """One object's calls."""

    def __init__(self, calls: list[Call[Asked]], start: State, step: Step[State, Asked]) -> None:
        self.calls = sorted(calls, key=lambda call: call.began)
        self.state, self.step = start, step
        self.head = _Entry(-1, None)
        self.answered = self.done = 0  # a bit for each call that has an end, or its place
        self.begins: list[_Entry] = []
        self.tried: set[tuple[int, int, State]] = set()
        self.path: list[_Step[State]] = []
        self.longest = -1
        self.best: tuple[list[Call[Asked]], list[Call[Asked]]] = ([], [])
        self._put_in_line()

    def _put_in_line(self) -> None:
        events: list[tuple[float, int, int, _Entry]] = []
        for number, call in enumerate(self.calls):
            end = None if call.ended == NEVER else _Entry(number, None)
            begin = _Entry(number, end)
            self.begins.append(begin)
            events.append((call.began, 0, number, begin))
            if end is not None:
                self.answered |= 1 << number
                events.append((call.ended, 1, number, end))  # at one moment, what begins may be before what ends
        last = self.head
        for *_, entry in sorted(events, key=lambda event: event[:3]):
            last.after, entry.before = entry, last
            last = entry

    def run(self) -> tuple[list[Call[Asked]], list[Call[Asked]]] | None:
        """The end of the longest order, and what stood in line after it; None when all have their place."""
        entry = self.head.after
        while entry is not None and self.answered & ~self.done:
            if self._place(entry):
                entry = self.head.after
            elif self.begins[entry.number] is entry:
                entry = entry.after
            else:
                self._remember(entry)
                begin = self._go_back()
                if begin is None:
                    return self.best
                entry = begin.after
        return None

    def _place(self, entry: _Entry) -> bool:
        """Put a call next, if that fits and is new; one that may fail and has come to its end has no effect."""
        call, begin = self.calls[entry.number], self.begins[entry.number]
        if entry is begin:
            after = self.step(self.state, call.asked)
            is_sure = after == self.state and call.ended != NEVER and not call.may_fail
        else:
            after, is_sure = self.state if call.may_fail else None, True
        if after is None:
            return False
        placed = self.done | 1 << entry.number
        low = (~placed & placed + 1).bit_length() - 1  # all before it are placed: so many bits need not be kept
        if (low, placed >> low, after) in self.tried:
            return False
        self.tried.add((low, placed >> low, after))
        self.path.append(_Step(begin, self.state, is_sure))
        self.state, self.done = after, placed
        _lift(begin)
        return True

    def _go_back(self) -> _Entry | None:
        """Take back the last call that others may be tried for; None when there is none."""
        while self.path:
            begin, self.state, is_sure = self.path.pop()
            self.done &= ~(1 << begin.number)
            _put_back(begin)
            if not is_sure:
                return begin
        return None

    def _remember(self, end: _Entry) -> None:
        """What stands before the first end, if no longer order was found so far."""
        if len(self.path) <= self.longest:
            return
        self.longest = len(self.path)
        stuck, entry = [], self.head.after
        while entry is not None and entry is not end:
            stuck.append(self.calls[entry.number])
            entry = entry.after
        self.best = ([self.calls[step.begin.number] for step in self.path[-TOLD:]], stuck[:TOLD])


def _lift(begin: _Entry) -> None:
    for entry in (begin, begin.end):
        if entry is not None:
            entry.before.after = entry.after
            if entry.after is not None:
                entry.after.before = entry.before


def _put_back(begin: _Entry) -> None:
    for entry in (begin.end, begin):
        if entry is not None:
            entry.before.after = entry
            if entry.after is not None:
                entry.after.before = entry


def judged(verdict: Callable[[], None]) -> str:
    """What a verdict has against a history; empty when it has nothing."""
    try:
        verdict()
    except AssertionError as error:
        return str(error)
    return ""
