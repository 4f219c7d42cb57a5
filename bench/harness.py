"""Runs contenders in turn, round by round, and makes the table: min, p50, p99, n, and the ratio to the first one.

Absolute figures move from machine to machine; the ratio of two contenders of one interleaved run moves little. No
test asserts a figure.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

Measure = Callable[[int], Awaitable[list[float]]]


@dataclass
class Contender:
    """One way of doing a row's job. `measure(n)` returns n durations in milliseconds, or what the row's unit says.

    `notes` tells what was seen beside it: texts that are made when the row is over.
    """

    name: str
    durability: str
    measure: Measure
    notes: list[Callable[[], str]] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)


@dataclass
class Row:
    """A job and those who do it; the first contender is the floor that the others are compared with."""

    title: str
    goal: str
    contenders: list[Contender]
    unit: str = "milliseconds"
    loads: list[float] = field(default_factory=list)


async def run(row: Row, rounds: int, per_round: int) -> None:
    """Measure every contender in every round, each round in another order; the first round of each is thrown away."""
    for number in range(rounds + 1):
        for place in range(len(row.contenders)):
            contender = row.contenders[(place + number) % len(row.contenders)]
            samples = await contender.measure(per_round)
            if number:
                contender.samples.extend(samples)
        row.loads.append(os.getloadavg()[0])


def quantile(samples: list[float], share: float) -> float:
    """The sample below which `share` of all lie (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(row: Row) -> str:
    """The row as a Markdown table, with its goal and the load of the machine while it ran."""
    lines = [
        f"### {row.title}",
        "",
        f"Goal: {row.goal}. Load {min(row.loads):.1f} to {max(row.loads):.1f}. Figures are {row.unit}.",
        "",
        "| contender | durability | min | p50 | p99 | n | p50 ÷ first |",
        "|---|---|---|---|---|---|---|",
    ]
    first = statistics.median(row.contenders[0].samples)
    for one in row.contenders:
        median = statistics.median(one.samples)
        lines.append(
            f"| {one.name} | {one.durability} | {min(one.samples):,.2f} | {median:,.2f} | "
            f"{quantile(one.samples, 0.99):,.2f} | {len(one.samples)} | {median / first:.2f} |"
        )
    notes = [f"- {one.name}: {note()}" for one in row.contenders for note in one.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


def now_ms() -> float:
    """A clock for durations, in milliseconds."""
    return time.perf_counter() * 1000
