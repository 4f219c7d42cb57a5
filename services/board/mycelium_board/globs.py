r"""What a pattern of a reservation means, and whether two of them share a path. Pure.

A pattern is a path, with wildcards or without. `*` and `?` stay within a segment, `**` as a segment is any number of
them, `[a-z]` and `[!a-z]` are one character, `{a,b}` either, and `\` takes the next character as it is. Case counts.
What ends in a name means everything below it too, as `src/auth` does; what ends in a wildcard, as `src/*.py`, does not.
A segment all in brackets, as `[id]`, may be a folder's very name, so it means that as well. A name such as
`deploy:staging` is a path of one segment.

Libraries that match (pathspec, wcmatch) can't say whether two patterns meet, and a path is a pattern without wildcards;
so one function does both, `mycelium_board.glob_walk`; what is written is read here.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Iterable

from mycelium_board.glob_walk import ANY, FORK, LAST, SKIP, SLASH, Free, Glob, Net, Piece, Ranges, Token

__all__ = ["Glob", "Net", "canonical", "overlap", "parse", "path"]
MOST_CHARACTERS = 200
MOST_ALTERNATIVES = 32
MOST_TOKENS = 400  # of all alternatives of a pattern
MOST_CLASSES = 4  # of a pattern, and
MOST_RANGES = 16  # of each of them: classes are compared with one another


def canonical(text: str) -> str:
    """How a pattern is written: the same for `./src//auth/` and `src/auth`. Raises `ValueError` for what is none."""
    text = unicodedata.normalize("NFC", text.strip())
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text):,} characters, at most {MOST_CHARACTERS} are allowed")
    if not text.isprintable():
        raise ValueError("has characters that can't be printed")
    written = SLASH.join(_parts(text))
    if not written:
        raise ValueError("is empty; '**' is everything")
    return written


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Glob:
    """What a pattern means. Raises `ValueError`, whose text goes on from the pattern: "has 40 alternatives, …"."""
    text = canonical(text)
    pieces = [piece for one in _expand(text) if (parts := _parts(one)) for piece in _readings(parts)]
    if not pieces:
        raise ValueError("is empty; '**' is everything")
    if sum(map(len, pieces)) > MOST_TOKENS:
        raise ValueError(f"is too long with all its alternatives; at most {MOST_TOKENS} characters are allowed")
    if len({token for piece in pieces for token in piece if isinstance(token, tuple)} - {ANY}) > MOST_CLASSES:
        raise ValueError(f"has more than {MOST_CLASSES} different classes like [a-z]")
    return Glob(tuple(pieces))


def path(text: str) -> Glob:
    """The path that `text` is, whatever characters it has; one that ends in a slash is a folder and all below it.

    Raises `ValueError` for what is no path within the folder.
    """
    parts = _parts(unicodedata.normalize("NFC", text))
    if not parts:
        raise ValueError("is no path")
    return Glob((_piece([tuple(part) for part in parts], is_deep=text.endswith(SLASH)),))


def overlap(one: Glob, other: Glob) -> bool:
    """Whether some path is meant by both."""
    return bool(Net([one]).meeting(other))


def _parts(text: str) -> list[str]:
    parts = [part for part in text.split(SLASH) if part not in {"", "."}]
    if ".." in parts:
        raise ValueError("leads out by '..'; paths are as from the top folder")
    return parts


def _expand(text: str) -> list[str]:
    """The alternatives of braces, written out."""
    found = _braces(text)
    if found is None:
        return [text]
    start, inner, end = found
    heads = [head for part in inner for head in _expand(part)]
    tails = _expand(text[end:])
    if len(heads) * len(tails) > MOST_ALTERNATIVES:
        raise ValueError(f"has more than {MOST_ALTERNATIVES} alternatives")
    return [text[:start] + head + tail for head in heads for tail in tails]


def _braces(text: str) -> tuple[int, list[str], int] | None:
    """The first braces with a comma in them: where they start, what they choose from, where they end."""
    for start, letter in _letters(text):
        if letter != "{":
            continue
        depth, cuts = 0, [start]
        for place, other in _letters(text, start):
            depth += (other == "{") - (other == "}")
            if depth == 1 and other == ",":
                cuts.append(place)
            if depth == 0:
                if len(cuts) > 1:
                    cuts.append(place)
                    return start, [text[a + 1 : b] for a, b in itertools.pairwise(cuts)], place + 1
                break
    return None


def _letters(text: str, start: int = 0) -> Iterable[tuple[int, str]]:
    """The characters that may have a meaning, with their places: without those that are taken as they are."""
    place = start
    while place < len(text):
        if text[place] == "\\":
            place += 2
            continue
        yield place, text[place]
        place += 1


def _readings(parts: list[str]) -> Iterable[Piece]:
    """What the segments of an alternative mean; those in brackets also as names."""
    segments = [_segment(part) for part in parts]
    named = [tuple(part) if part[0] + part[-1] == "[]" else one for part, one in zip(parts, segments, strict=True)]
    for reading in (segments, named) if named != segments else (segments,):
        is_name = all(isinstance(token, str) for token in reading[-1])
        yield _piece(reading, is_deep=is_name or reading[-1] == DEEP)


def _segment(text: str) -> Piece:
    """The tokens of a segment. That no path has an empty one need not be said: stars that meet there meet elsewhere."""
    if text == "**":
        return DEEP
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        letter, place = text[place], place + 1
        if letter == "\\":
            tokens.append(text[place : place + 1] or letter)
            place += 1
        elif letter == "*":
            if tokens[-1:] != [Free.STAR]:
                tokens.append(Free.STAR)
        elif letter == "?":
            tokens.append(ANY)
        elif letter == "[" and (end := _end_of_class(text, place)):
            tokens.append(_class(text[place:end]))
            place = end + 1
        else:
            tokens.append(letter)
    return tuple(tokens)


def _end_of_class(text: str, place: int) -> int:
    """Where the class ends that begins at `place`; 0 when it does not. A `]` that comes first is in it."""
    return max(0, text.find("]", place + 1 + (text[place : place + 1] in {"!", "^"})))


def _class(inner: str) -> Ranges:
    """The characters of `a-z` or `!a-z`."""
    negated = inner[0] in "!^"
    letters = inner[negated:]
    ranges: list[tuple[int, int]] = []
    place = 0
    while place < len(letters):
        first = last = letters[place]
        if letters[place + 1 : place + 2] == "-" and place + 2 < len(letters):
            last = letters[place + 2]
            place += 2
        if first > last:
            raise ValueError(f"has a range from {first!r} back to {last!r}")
        ranges.append((ord(first), ord(last)))
        place += 1
    if len(ranges) > MOST_RANGES:
        raise ValueError(f"has a class of more than {MOST_RANGES} characters or ranges")
    slash = (ord(SLASH), ord(SLASH))
    return _but([*ranges, slash]) if negated else _but([*_but(ranges), slash])


def _but(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All characters but those of `ranges`."""
    left, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            left.append((start, low - 1))
        start = max(start, high + 1)
    return (*left, *([(start, LAST)] if start <= LAST else []))


DEEP: Piece = (Free.DEEP,)


def _piece(segments: list[Piece], *, is_deep: bool) -> Piece:
    """The tokens of a whole path: `**/` is nothing, or anything up to a slash."""
    while segments and segments[-1] == DEEP:
        segments.pop()
    tokens: list[Token] = []
    for segment in segments or [(Free.STAR,)]:
        if segment != DEEP:
            tokens.extend((*segment, SLASH))
        elif tokens[-SKIP:] != [FORK, Free.DEEP, SLASH]:
            tokens.extend((FORK, Free.DEEP, SLASH))
    tokens.pop()
    return (*tokens, FORK, SLASH, Free.DEEP) if is_deep else tuple(tokens)
