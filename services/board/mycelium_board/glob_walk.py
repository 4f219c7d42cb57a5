"""Walks one pattern of a reservation through all others at once, to say which of them share a path with it. Pure.

The places that are reached in the others are the bits of one number, and the time is bounded by the lengths alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

SLASH = "/"
LAST = 0x10FFFF


class Free(Enum):
    """What takes any number of characters, or none: the places where a walk may stay."""

    STAR = "*"  # within a segment
    DEEP = "**"  # across segments


FORK = None  # goes on to the next token, or past the two after it
Ranges = tuple[tuple[int, int], ...]  # a class of characters: code points from and to, in order; never a slash
Token = str | Ranges | Free | None
Piece = tuple[Token, ...]
ANY: Ranges = ((0, ord(SLASH) - 1), (ord(SLASH) + 1, LAST))  # every character but the slash
SKIP = 3  # from a fork to where it leads past its two tokens


@dataclass(frozen=True)
class Glob:
    """A pattern as it is walked: one of the pieces is what a path has to match."""

    pieces: tuple[Piece, ...]


class Net:
    """Patterns laid side by side, to be asked which of them another one meets."""

    def __init__(self, globs: Sequence[Glob]) -> None:
        places: dict[Token, list[int]] = {}
        starts, ends, size = [], [], 0
        self._owners: list[tuple[int, int]] = []  # the place after each piece, and the number of its pattern
        for number, glob in enumerate(globs):
            for piece in glob.pieces:
                starts.append(size)
                for token in piece:
                    places.setdefault(token, []).append(size)
                    size += 1
                ends.append(size)
                self._owners.append((size, number))
                size += 1
        self._starts, self._ends = _bits(starts, size), _bits(ends, size)
        self._bits = {token: _bits(found, size) for token, found in places.items()}
        self._forks = self._bits.pop(FORK, 0)
        self._deep = self._bits.get(Free.DEEP, 0)
        self._star = self._bits.get(Free.STAR, 0)
        self._passed = self._forks | self._deep | self._star  # where one may go on without a character
        self._takers: dict[Token, tuple[int, int]] = {}

    def meeting(self, glob: Glob) -> list[int]:
        """The numbers of the patterns that share a path with `glob`, in order."""
        met = 0
        for piece in glob.pieces:
            met |= self._walk(piece)
        return sorted({number for place, number in self._owners if met >> place & 1}) if met else []

    def _walk(self, piece: Piece) -> int:
        """The ends that a walk through all patterns reaches when it takes the steps of `piece`."""
        reached = [self._starts] + [0] * len(piece)
        for place, token in enumerate(piece):
            here = self._spread(reached[place], self._passed)
            if not here:
                continue
            if token is FORK:
                reached[place + 1] |= here
                reached[place + SKIP] |= here
            elif isinstance(token, Free):  # it stays while the others go on
                reached[place + 1] |= self._spread(here, self._passed | self._taking(token)[0])
            else:
                moving, staying = self._taking(token)
                reached[place + 1] |= (here & moving) << 1 | here & staying
        return self._spread(reached[-1], self._passed) & self._ends

    def _spread(self, here: int, through: int) -> int:
        """`here`, and all that is reached from there through a run of such places, or past a fork."""
        before = -1
        while here != before:
            before = here
            here |= ((here & through) + through) ^ through  # the carry of the sum runs through each run of ones
            here |= (here & self._forks) << SKIP
        return here

    def _taking(self, token: Token) -> tuple[int, int]:
        """The places that a character of `token` moves on from, and those that take it and stay."""
        if token not in self._takers:
            moving = 0
            for other, bits in self._bits.items():
                if not isinstance(other, Free) and _share(token, other):
                    moving |= bits
            self._takers[token] = moving, self._deep | (0 if token == SLASH else self._star)
        return self._takers[token]


def _share(token: Token, other: Token) -> bool:
    """Whether some character is meant by both."""
    if token is Free.DEEP:
        return True
    ours, theirs = _ranges(token), _ranges(other)
    one = two = 0
    while one < len(ours) and two < len(theirs):
        if ours[one][1] < theirs[two][0]:
            one += 1
        elif theirs[two][1] < ours[one][0]:
            two += 1
        else:
            return True
    return False


def _ranges(token: Token) -> Ranges:
    if isinstance(token, str):
        return ((ord(token), ord(token)),)
    return ANY if token is None or isinstance(token, Free) else token


def _bits(places: Iterable[int], size: int) -> int:
    """A number with these bits set; in one go, since there may be many."""
    found = bytearray(size // 8 + 1)
    for place in places:
        found[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(found, "little")
