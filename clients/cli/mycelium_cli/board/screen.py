"""A board that is kept open on a terminal: as much of it as the screen shows, its first rows first.

What is longer would scroll away what needs a person, which stands at the top, and fill the terminal's history with each
change.
"""

import os
import re
import sys
from collections.abc import Iterable

from mycelium_cli.output import Paint, width_of

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_KEPT_FREE = 2  # lines: of the cursor, and of a word about the line to the hub


def size() -> os.terminal_size | None:
    """Of the terminal that is written to; None when it is none, or doesn't say."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno()) if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None
    return found if found and found.columns and found.lines else None


def fitted(lines: Iterable[str], screen: os.terminal_size, paint: Paint) -> list[str]:
    """The first lines, so many as fit; where some don't, the last one says how many they are."""
    known = list(lines)
    room = max(1, screen.lines - _KEPT_FREE)
    if sum(_height(line, screen.columns) for line in known) <= room:
        return known
    shown: list[str] = []
    for line in known:
        room -= _height(line, screen.columns)
        if room < 1:
            break
        shown.append(line)
    return [*shown, paint.dim(f"… {len(known) - len(shown)} more lines; Ctrl-C ends it")]


def _height(line: str, columns: int) -> int:
    """How many lines of the screen it takes."""
    return max(1, -(-width_of(_COLOUR.sub("", line)) // columns))
