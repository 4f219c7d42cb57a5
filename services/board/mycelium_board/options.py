"""What a decision offers: the answers in its document's `options`, however they are written there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mycelium_board.projection import text_of

FIELD = "options"
QUOTES = "\"'"


def offered(fields: Mapping[str, Any]) -> list[str]:
    """The answers, each once: those of a list, or of a text that is a list or has commas. What is empty is none."""
    return [text for text in dict.fromkeys(_texts(fields.get(FIELD))) if text]


def of_json(fields_json: str) -> list[str]:
    """The same of a document's fields as they are kept."""
    return offered(json.loads(fields_json)) if f'"{FIELD}"' in fields_json else []


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from (text_of(one) for one in value)
    elif isinstance(value, str):
        yield from _written(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield text_of(value)


def _written(text: str) -> Iterator[str]:
    """The answers in one text."""
    if text.startswith("[") and text.endswith("]"):
        try:
            yield from _texts(json.loads(text))
        except (ValueError, RecursionError):
            text = text[1:-1]  # as YAML has it, without quotes
        else:
            return
    for line in text.splitlines():
        for one in line.split(","):
            yield _unquoted(one.strip())


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in QUOTES
    return text[1:-1].strip() if is_quoted else text
