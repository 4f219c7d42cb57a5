"""What reaches the terminal: tables, colours, ages, and other people's texts made harmless.

Functions that build text are pure and take a `Paint`; `Output` alone writes. Nothing that came over the
wire is printed without `clean` or `clean_line`: a message may hold escape sequences.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

# C0 (but tab and newline), DEL, C1, and the characters that reorder text or hide in it.
_UNSAFE = [*range(9), 11, 12, *range(13, 32), *range(127, 160)]
_REORDERING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029, 0xFEFF]
_HIDING = [
    0x00AD,
    0x034F,
    0x115F,
    0x1160,
    0x180E,
    0x200B,
    *range(0x2060, 0x2065),
    *range(0x206A, 0x2070),
    0x3164,
    0xFFA0,
]
_TAGS = range(0xE0000, 0xE0080)
_JOINERS = "\u200c\u200d"
_VISIBLE = (
    {code: f"\\x{code:02x}" for code in _UNSAFE}
    | {code: f"\\u{code:04x}" for code in [*_REORDERING, *_HIDING]}
    | {code: f"\\U{code:08x}" for code in _TAGS}
)
_VISIBLE_IN_A_LINE = _VISIBLE | {9: " ", 10: " "}
_VISIBLE_IN_JSON = {code: f"\\u{code:04x}" for code in [*range(127, 160), *_REORDERING, *_HIDING]} | {
    code: f"\\udb40\\u{0xDC00 + code - 0xE0000:04x}" for code in _TAGS
}
_VIRAMA = 9  # the combining class of the signs after which a joiner shapes the end of a word

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def clean(text: object) -> str:
    """Somebody's text over several lines, with control characters shown instead of obeyed."""
    return _joined(str(text)).replace("\r\n", "\n").translate(_VISIBLE)


def clean_line(text: object) -> str:
    """Somebody's text as one line: names, titles, details of errors."""
    return _joined(str(text)).translate(_VISIBLE_IN_A_LINE)


def _joined(text: str) -> str:
    """Joiners that join nothing, shown; inside words and emoji they are part of how these are written."""
    if not any(joiner in text for joiner in _JOINERS):
        return text
    from unicodedata import category, combining

    def shown(at: int, char: str) -> str:
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        joins = [bool(beside) and category(beside)[0] in "LMS" for beside in (before, after)]
        ends_a_syllable = bool(before) and combining(before) == _VIRAMA
        return char if all(joins) or ends_a_syllable else f"\\u{ord(char):04x}"

    return "".join(shown(at, char) if char in _JOINERS else char for at, char in enumerate(text))


class Paint:
    """Colours, or none, and how wide the terminal is, 0 without one: the same calls whether or not one reads along."""

    def __init__(self, *, on: bool, columns: int = 0) -> None:
        self.on = on
        self.columns = columns

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def bold(self, text: str) -> str:
        """Who and what."""
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        """When, and other small print."""
        return self._wrap("2", text)

    def good(self, text: str) -> str:
        """It happened."""
        return self._wrap("32", text)

    def warn(self, text: str) -> str:
        """It waits, or needs a look."""
        return self._wrap("33", text)

    def bad(self, text: str) -> str:
        """It failed."""
        return self._wrap("31", text)


PLAIN = Paint(on=False)


def wants_colour(stream: TextIO) -> bool:
    """Colours only on a terminal that knows them, and never under NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(text: str) -> int:
    """How many columns a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    wide = sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
    return wide - sum(1 for char in text if category(char) in {"Mn", "Me", "Cf"})


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], paint: Paint) -> list[str]:
    """Rows under headers, as wide as their longest cell; no trailing spaces, nothing cut.

    Where that is wider than the terminal, a cell of more than a third of it moves its own line only.
    """
    cells = [[clean_line(cell) for cell in row] for row in rows]
    widths = [max(width_of(line[column]) for line in [list(headers), *cells]) for column in range(len(headers))]
    if 0 < paint.columns < sum(widths) + 2 * (len(widths) - 1):
        widths = [
            min(width, max(width_of(head), paint.columns // 3)) for width, head in zip(widths, headers, strict=True)
        ]

    def joined(line: Sequence[str]) -> str:
        padded = [cell + " " * (widths[column] - width_of(cell)) for column, cell in enumerate(line)]
        return "  ".join(padded).rstrip()

    return [paint.dim(joined(headers)), *(joined(line) for line in cells)]


def fields(pairs: Iterable[tuple[str, str]], paint: Paint) -> list[str]:
    """One thing's fields, a line each; empty ones are left out."""
    shown = [(name, clean_line(value)) for name, value in pairs if value]
    widest = max((len(name) for name, _ in shown), default=0)
    return [f"{paint.dim(name.ljust(widest))}  {value}" for name, value in shown]


def short(identifier: object) -> str:
    """The short form of an id: its last eight digits, accepted wherever an id is."""
    return clean_line(identifier).replace("-", "")[-8:]


def at(handle: object) -> str:
    """A handle as people write it."""
    return f"@{clean_line(handle)}" if handle else ""


def shell_word(text: object) -> str:
    """A name as it is typed in a shell: quoted when it must be."""
    from shlex import quote

    return quote(clean_line(text))


def age(timestamp: object, now_s: float) -> str:
    """How long ago, in the largest unit that fits: `5m ago`. A time that can't be read is shown as it is."""
    from datetime import datetime

    try:
        then_s = datetime.fromisoformat(str(timestamp)).timestamp()
    except ValueError:
        return clean_line(timestamp)
    past_s = max(0, int(now_s - then_s))
    for unit_s, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if past_s >= unit_s:
            return f"{past_s // unit_s}{letter} ago"
    return f"{past_s}s ago"


def as_json(data: object, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """JSON for a program that may print it: no raw control or reordering character is left in it."""
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only, separators=None if indent else (",", ":"))
    return text.translate(_VISIBLE_IN_JSON)


def _columns(stream: TextIO) -> int:
    """How wide the terminal is; 0 when it is none, or doesn't say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def _can_say_anything(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "").startswith("utf")


class Output:
    """The only writer: text for people or JSON for programs, never both."""

    def __init__(self, *, json_wanted: bool = False) -> None:
        self.json = json_wanted
        self.paint = Paint(on=not json_wanted and wants_colour(sys.stdout), columns=_columns(sys.stdout))

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines for a person."""
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def data(self, data: object, *, one_line: bool = False) -> None:
        """Print JSON; `one_line` for streams, where each line is a document."""
        ascii_only = not _can_say_anything(sys.stdout)
        sys.stdout.write(as_json(data, indent=None if one_line else 2, ascii_only=ascii_only) + "\n")
        sys.stdout.flush()

    def answer(self, data: object, draw: Callable[[Any, Paint], Iterable[str]]) -> None:
        """Print what a command was asked for, in the form that was asked for."""
        if self.json:
            self.data(data)
        else:
            self.lines(draw(data, self.paint))

    def note(self, text: str) -> None:
        """A remark beside the answer: on stderr, so that a pipe doesn't carry it."""
        note(text)


def note(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{clean_line(text)}\n")
    sys.stderr.flush()
