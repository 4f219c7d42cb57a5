"""Paths as git, shells and agents' hooks hand them over: read from stdin, made readable, sent in parts."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_MOST, _MOST_CHARACTERS = 1_000, 100_000  # of one request
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def read(data: bytes) -> list[str]:
    """Paths between NULs, as `git diff -z` writes them, else one a line; git quotes odd ones then."""
    if b"\0" in data:
        return [_text(path) for path in data.split(b"\0") if path]
    return [_text(_unquoted(line)) for line in (line.rstrip(b"\r") for line in data.split(b"\n")) if line]


def readable(path: str) -> str:
    """A path from the command line, whose bytes may be no text."""
    return _text(path.encode("utf-8", "surrogateescape"))


def from_top(path: str) -> str:
    """A path as from the top folder of the repository that it lies in, when it is absolute; else as it is."""
    if not os.path.isabs(path):
        return path
    top = next((folder for folder in Path(path).parents if os.path.exists(folder / ".git")), None)
    return os.path.relpath(path, top) if top else path


def parts(paths: Iterable[str]) -> Iterator[list[str]]:
    """The paths, in as many parts as it takes requests."""
    part: list[str] = []
    size = 0
    for path in paths:
        if part and (len(part) == _MOST or size + len(path) > _MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(path)
        size += len(path)
    if part:
        yield part


def _text(path: bytes) -> str:
    """What is no UTF-8 is shown as that; wildcards match it all the same."""
    return path.decode("utf-8", "replace")


def _unquoted(line: bytes) -> bytes:
    if len(line) < 2 or not (line.startswith(b'"') and line.endswith(b'"')):
        return line

    def meant(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _LETTERS.get(code, code)

    return _ESCAPED.sub(meant, line[1:-1])
