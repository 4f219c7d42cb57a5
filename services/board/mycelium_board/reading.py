"""What a document's fields mean to the board, however they are written: as text, as a list, or as text that is a list.

Pure, and the same for what a rebuild reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mycelium_board.model import BLOCKED, CLOSED, OPEN, REVIEW, WORKING

KNOWN = (OPEN, WORKING, REVIEW, BLOCKED, *CLOSED)
DONE = ("done", "closed", "complete", "completed")  # what others call resolved
NOTHING = ("false", "null", "none", "0", "0.0", "{}")  # what a task that waits for nothing may have there


def status(value: object) -> str:
    """The stage of a task: one that the board knows, or the word of the room's own; the first of several."""
    first = next(texts(value), "")
    plain = first.lower().replace(" ", "_").replace("-", "_")
    return CLOSED[0] if plain in DONE else plain if plain in KNOWN else first


def word(value: object) -> str:
    """The first text of a field."""
    return next(texts(value), "")


def blocked_by(value: object) -> str:
    """What a task waits for outside the board; empty when that is nothing."""
    return ", ".join(text for text in texts(value) if text.lower() not in NOTHING)


def handles(value: object) -> str:
    """Whom a task is for: handles between commas, each once."""
    return ", ".join(dict.fromkeys(one for text in texts(value) for one in _named(text)))


def _named(text: str) -> Iterator[str]:
    for one in text.split(","):
        if handle := one.strip().removeprefix("@").lower():
            yield handle


def texts(value: object) -> Iterator[str]:
    """Each text in a field that says something."""
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, str) and (text := one.strip()):
            if (found := _list(text)) is None:
                yield text
            else:
                waiting = [*found, *waiting]
        elif isinstance(one, list):
            waiting = [*one, *waiting]
        elif one is not None and not isinstance(one, str):
            yield json.dumps(one, ensure_ascii=False)


def _list(text: str) -> list[object] | None:
    """The list that a text is."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None
