"""Finds tangles: things of which each leads to each other. One is found once, however many of it are asked for.

After Tarjan: every thing and every link is looked at once, and those of tangles that are known are not gone through.
Two such walks go side by side, along the links and against them, and the first that knows the answer ends both: whole
boards may hang on one task in one direction only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

Next = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Tangle:
    """Who is in it, each with those of it to which it leads, in an order that does not hang on who was asked for."""

    within: Mapping[str, list[str]]

    def cycle(self, start: str) -> list[str]:
        """A way from one of it back to itself, without its end, on which nobody comes twice."""
        if start in self.within[start]:
            return [start]
        to_middle, steps = self._to_middle
        if start == self._middle:
            first = min(self.within[start], key=steps.__getitem__)
            return [start, *_followed(first, start, to_middle)[:-1]]
        from_middle = _followed(start, self._middle, self._from_middle[0])[1:-1]
        return _straight([*_followed(start, self._middle, to_middle), *reversed(from_middle)])

    @property
    def _middle(self) -> str:
        return next(iter(self.within))

    @cached_property
    def _to_middle(self) -> tuple[dict[str, str], dict[str, int]]:
        against: dict[str, list[str]] = {one: [] for one in self.within}
        for one, others in self.within.items():
            for other in others:
                against[other].append(one)
        return _spread(self._middle, against)

    @cached_property
    def _from_middle(self) -> tuple[dict[str, str], dict[str, int]]:
        return _spread(self._middle, self.within)


NONE = Tangle({})


class Tangles:
    """The tangles of what has been asked for. `is_over` says that more must not be looked at."""

    def __init__(self, onward: Next, back: Next, is_over: Callable[[], bool]) -> None:
        self._onward, self._back, self._is_over = onward, back, is_over
        self._found: dict[str, Tangle] = {}

    def of(self, start: str) -> Tangle:
        """The tangle that it is in; an empty one when it is in none, or none was found in time."""
        back, onward = self._walk(start, self._back, is_back=True), self._walk(start, self._onward, is_back=False)
        while start not in self._found and not self._is_over():
            next(back)
            if start not in self._found:
                next(onward)
        return self._found.get(start, NONE)

    def _walk(self, start: str, next_: Next, *, is_back: bool) -> Iterator[None]:
        """One step at each link. `low`: the first on the way that is known to be reached from one."""
        number, low, leads = {start: 0}, {start: 0}, {start: list[str]()}
        kept, way = [start], [(start, iter(next_(start)))]
        while way:
            node, others = way[-1]
            other = next(others, None)
            if other is None:
                way.pop()
                if low[node] == number[node]:
                    self._settle(kept, node, leads, is_back=is_back)
                if way:
                    low[way[-1][0]] = min(low[way[-1][0]], low[node])
            elif other not in self._found:
                leads[node].append(other)
                if other not in number:
                    number[other] = low[other] = len(number)
                    leads[other] = []
                    kept.append(other)
                    way.append((other, iter(next_(other))))
                low[node] = min(low[node], number[other])
            yield

    def _settle(self, kept: list[str], first: str, leads: Mapping[str, list[str]], *, is_back: bool) -> None:
        """Those that were kept since the first are a tangle, or one that is in none."""
        members = [kept.pop()]
        while members[-1] != first:
            members.append(kept.pop())
        if len(members) == 1 and first not in leads[first]:
            self._found[first] = NONE
            return
        within: dict[str, list[str]] = {one: [] for one in sorted(members)}
        for one in members:
            for other in leads[one]:
                if other in within:
                    within[other if is_back else one].append(one if is_back else other)
        tangle = Tangle({one: sorted(set(others)) for one, others in within.items()})
        self._found.update(dict.fromkeys(members, tangle))


def _spread(middle: str, leads: Mapping[str, list[str]]) -> tuple[dict[str, str], dict[str, int]]:
    """From where each is reached first, and in how many steps."""
    came_from, steps, waiting = {middle: middle}, {middle: 0}, [middle]
    for one in waiting:
        for other in leads[one]:
            if other not in came_from:
                came_from[other], steps[other] = one, steps[one] + 1
                waiting.append(other)
    return came_from, steps


def _followed(start: str, end: str, to: Mapping[str, str]) -> list[str]:
    way = [start]
    while way[-1] != end:
        way.append(to[way[-1]])
    return way


def _straight(way: list[str]) -> list[str]:
    """The same way without the rounds on it."""
    kept: dict[str, None] = {}
    for one in way:
        while one in kept:
            kept.popitem()
        kept[one] = None
    return list(kept)
