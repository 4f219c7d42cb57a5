"""Several rankings of the same things made into one: reciprocal rank fusion. Pure.

Words and meaning score in units that can't be compared, so only places count: a thing gets `1 / (60 + place)` from each
ranking that has it. What two rankings have near their tops comes before what one has at its top.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
DAMPING = 60  # of the paper that introduced it (Cormack, Clarke, Büttcher 2009); larger values flatten the tops


@dataclass(frozen=True)
class Fused(Generic[K]):
    """A thing, its score, and its place in each ranking (from 1; 0: it is not in there)."""

    what: K
    score: float
    places: tuple[int, ...]


def fuse(rankings: Sequence[Sequence[K]], weights: Sequence[float] = (), damping: int = DAMPING) -> list[Fused[K]]:
    """Every thing of any ranking, the best first. A thing that one ranking has twice counts where it came first.

    `weights` are those of the rankings, 1 each when not given. Of two with the same score, the one with the best place
    comes first, then the one that an earlier ranking has higher up, so that the same rankings give the same order.
    """
    places: dict[K, list[int]] = {}
    for number, ranking in enumerate(rankings):
        place = 0
        for what in ranking:
            had = places.setdefault(what, [0] * len(rankings))
            if not had[number]:
                place += 1
                had[number] = place
    weighed = list(weights) or [1.0] * len(rankings)
    fused = [Fused(what, _score(had, weighed, damping), tuple(had)) for what, had in places.items()]
    return sorted(fused, key=lambda one: (-one.score, *_order(one.places)))


def _score(places: Sequence[int], weights: Sequence[float], damping: int) -> float:
    return sum(weight / (damping + place) for place, weight in zip(places, weights, strict=True) if place)


def _order(places: tuple[int, ...]) -> tuple[float, ...]:
    behind = [place or float("inf") for place in places]
    return (min(behind), *behind)
