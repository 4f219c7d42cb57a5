"""Judges whether a history of calls is linearizable: each took effect at one moment between its begin and its end.

The search of Wing and Gong with Lowe's memory: calls are put in an order one after the other, and a set of calls that
led to one state is tried once. Calls on different objects don't touch each other, so each object is looked at alone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)
Asked = TypeVar("Asked")
Step = Callable[[State, Asked], State | None]
NEVER = float("inf")


@dataclass(frozen=True)
class Call(Generic[Asked]):
    """What was asked and answered, on which object, and between which two moments.

    One that was never answered has no end: it may have taken effect at any later moment, or never.
    """

    on: str
    asked: Asked
    began: float
    ended: float = NEVER


class Fault(NamedTuple):
    """An object whose calls fit no order, the longest order that was found, and what could not follow it."""

    on: str
    order: list[str]
    stuck: list[str]

    def __str__(self) -> str:
        """The end of it, which is where to look."""
        before = "\n    ".join(self.order[-12:]) or "nothing"
        after = "\n    ".join(self.stuck[:12])
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


class _Search(Generic[State, Asked]):
    """One object's calls."""

    def __init__(self, calls: list[Call[Asked]], start: State, step: Step[State, Asked]) -> None:
        self.calls, self.start, self.step = calls, start, step
        self.head = _Entry(-1, None)
        self.answered = 0  # a bit for each call that has an end
        events: list[tuple[float, int, int, _Entry]] = []
        self.begins = []
        for number, call in enumerate(calls):
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
        """The longest order, and what stood in line after it; None when all have their place."""
        state, done = self.start, 0
        tried: set[tuple[int, State]] = set()
        path: list[tuple[_Entry, State]] = []
        best: tuple[list[_Entry], list[_Entry]] = ([], [])
        entry = self.head.after
        while entry is not None and self.answered & ~done:
            if self.begins[entry.number] is entry:
                after = self.step(state, self.calls[entry.number].asked)
                placed = done | 1 << entry.number
                if after is not None and (placed, after) not in tried:
                    tried.add((placed, after))
                    path.append((entry, state))
                    state, done = after, placed
                    _lift(entry)
                    entry = self.head.after
                else:
                    entry = entry.after
                continue
            if len(path) >= len(best[0]):
                best = ([one for one, _ in path], self._waiting(entry))
            if not path:
                return [self.calls[one.number] for one in best[0]], [self.calls[one.number] for one in best[1]]
            begin, state = path.pop()
            done &= ~(1 << begin.number)
            _put_back(begin)
            entry = begin.after
        return None

    def _waiting(self, end: _Entry) -> list[_Entry]:
        """The calls that stand before the first end."""
        found, entry = [], self.head.after
        while entry is not None and entry is not end:
            found.append(entry)
            entry = entry.after
        return found


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
