"""What patterns mean, said a second time and in the plainest way: the reference that `globs` is compared with.

A pattern is made of atoms, whose text the code reads and whose meaning is looked up here, path by path.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

DEEP = "**"
SEGMENTS = [*"abc", *("".join(two) for two in itertools.product("abc", repeat=2))]
PATHS = [list(parts) for size in (1, 2, 3) for parts in itertools.product(SEGMENTS, repeat=size)]


@dataclass(frozen=True)
class Either:
    """Braces: one of these runs of atoms."""

    choices: tuple[tuple[Atom, ...], ...]


Atom = str | Either  # a letter, `?`, `*`, `/`, a class, or braces


def text_of(atoms: tuple[Atom, ...]) -> str:
    """The pattern as it is typed."""
    return "".join(
        atom if isinstance(atom, str) else "{" + ",".join(map(text_of, atom.choices)) + "}" for atom in atoms
    )


def written_out(atoms: tuple[Atom, ...]) -> Iterator[tuple[str, ...]]:
    """The alternatives, without braces."""
    runs = [[(atom,)] if isinstance(atom, str) else _choices(atom) for atom in atoms]
    for chosen in itertools.product(*runs):
        yield tuple(itertools.chain.from_iterable(chosen))


def _choices(either: Either) -> list[tuple[str, ...]]:
    return [flat for choice in either.choices for flat in written_out(choice)]


@dataclass(frozen=True)
class Step:
    """A segment of an alternative: what one segment of a path has to be; None: any number of them."""

    matches: Callable[[str], object] | None
    is_name: bool


def meaning(atoms: tuple[Atom, ...]) -> Callable[[list[str]], bool]:
    """Whether a path, given by its segments, is meant by a pattern."""
    readings: list[list[Step]] = []
    for flat in written_out(atoms):
        groups = [tuple(run) for is_slash, run in itertools.groupby(flat, "/".__eq__) if not is_slash]
        if groups:
            readings.append([_step(group) for group in groups])
            if any(is_in_brackets("".join(group)) for group in groups):
                readings.append([_named("".join(group)) or _step(group) for group in groups])
    return lambda parts: any(_matches(steps, parts, is_deep=False) for steps in readings)


def is_in_brackets(segment: str) -> bool:
    """Whether a segment is a name too."""
    return segment.startswith("[") and segment.endswith("]")


def _named(segment: str) -> Step | None:
    return Step(segment.__eq__, is_name=True) if is_in_brackets(segment) else None


def _step(group: tuple[str, ...]) -> Step:
    if "".join(group) == DEEP:
        return Step(None, is_name=True)
    wanted = re.compile("".join(map(_regex, group)))
    return Step(wanted.fullmatch, is_name=all(atom.isalpha() for atom in group))


def _regex(atom: str) -> str:
    return {"*": "[^/]*", "?": "[^/]"}.get(atom, atom.replace("[!", "[^"))


def _matches(steps: list[Step], parts: list[str], *, is_deep: bool) -> bool:
    if not steps:
        return not parts or is_deep
    first, rest = steps[0], steps[1:]
    if first.matches is None:
        return any(_matches(rest, parts[count:], is_deep=True) for count in range(len(parts) + 1))
    return bool(parts and first.matches(parts[0])) and _matches(rest, parts[1:], is_deep=first.is_name)


LETTERS = st.sampled_from("abc")
WILD = st.sampled_from(["?", "*", "[ab]", "[!a]", "[b-c]", "[!a-b]"])
PLAIN = st.one_of(LETTERS, LETTERS, WILD)


def _segment(atom: st.SearchStrategy[str], most: int) -> st.SearchStrategy[tuple[Atom, ...]]:
    run = st.lists(atom, min_size=1, max_size=most).map(tuple)
    return st.one_of(run, run, st.just(("*", "*")))


def _join(segments: list[tuple[Atom, ...]]) -> tuple[Atom, ...]:
    joined: list[Atom] = []
    for segment in segments:
        joined += [*segment, "/"]
    return tuple(joined[:-1])


SMALL = st.lists(_segment(PLAIN, 2), min_size=1, max_size=2).map(_join)
CHOICE = st.lists(st.one_of(PLAIN, st.just("/")), max_size=3).map(tuple)
BRACES = st.lists(CHOICE, min_size=2, max_size=3).map(lambda choices: Either(tuple(choices)))
LARGE = st.tuples(st.one_of(SMALL, st.just(())), st.one_of(BRACES, st.just("/")), SMALL).map(
    lambda found: (*found[0], found[1], *found[2])
)
PATTERNS = st.one_of(SMALL, LARGE)
SOME_PATHS = st.lists(st.sampled_from([*SEGMENTS, "[ab]", "[!a]"]), min_size=1, max_size=4)


@st.composite
def about(draw: st.DrawFn, parts: list[str]) -> tuple[Atom, ...]:
    """A pattern that has been made from a path, so that it means it, or nearly."""
    segments: list[tuple[Atom, ...]] = []
    for part in parts:
        letters: tuple[Atom, ...] = (part,)
        if not is_in_brackets(part):
            letters = tuple(draw(st.sampled_from([letter, letter, "?", "[!c]", "*"])) for letter in part)
        wild: list[tuple[Atom, ...]] = [("*", "*"), ("*",), letters, letters, letters]
        if draw(st.integers(0, 4)):  # else it is left out
            segments.append(draw(st.sampled_from(wild)))
    return _join(segments) or ("*", "*")
