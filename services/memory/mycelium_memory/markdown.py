"""The blocks of a Markdown text, with where each stands in it. Used for links and sections; what is in them is theirs.

The parser takes about 10 µs a line, 40 µs an item of a list or a quote, and the service does nothing else meanwhile;
a text of 512 KB that people wrote takes 0.1 to 0.4 s. `too_much` tells of the few that would take far more.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

LINES = 60_000
OPENED = 20_000
NESTING = 40

OPENS = re.compile(r"^[ \t]*(?:(?:>|[-+*](?=[ \t\n])|\d{1,9}[.)](?=[ \t\n]))[ \t]*)+", re.MULTILINE)
BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Blocks:
    """The blocks of a text, and its lines as the parser counts them."""

    tokens: list[Token]
    lines: list[str]
    starts: list[int]  # where each line begins in the text; one more for the end

    def start_of(self, line: int) -> int:
        """Where a line begins; the end of the text for one after the last."""
        return self.starts[min(line, len(self.starts) - 1)]


def too_much(text: str) -> str:
    """What a text has too much of to be parsed; empty for nothing."""
    lines = text.count("\n") + text.count("\r")
    if lines > LINES:
        return f"{lines:,} lines, where {LINES:,} can be read"
    opened = sum(len(match[0].split()) + match[0].count(">") for match in OPENS.finditer(text))
    if opened > OPENED:
        return f"{opened:,} items of lists and quotes, where {OPENED:,} can be read"
    return ""


def blocks(text: str) -> Blocks:
    """The blocks of a text that is not `too_much`."""
    starts = [0, *(match.end() for match in BREAK.finditer(text)), len(text)]
    return Blocks(_parser().parse(text), BREAK.split(text), starts)


@functools.cache
def _parser() -> MarkdownIt:
    """Finds blocks only. Without references, so that an address in one is still in the text."""
    options = {"html": True, "maxNesting": NESTING}
    return MarkdownIt("commonmark", options).disable(["inline", "reference"])
