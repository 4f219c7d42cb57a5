"""What a request may have at most, wherever it is asked: rows of a page, bytes of a text. For commands and queries."""

from __future__ import annotations

from mycelium_kernel.errors import Refusal


def rows(limit: int, usual: int, most: int) -> int:
    """How many rows a page may have, the usual number where none is given. Refused when there are too many."""
    if limit > most:
        raise Refusal("request.invalid", f"limit is {limit}: use 1 to {most}")
    return limit or usual


def text(given: str, most_bytes: int) -> str:
    """A text as it came: nothing is stripped. Refused when it is broken or too large."""
    if "\0" in given:
        raise Refusal("content.invalid", f"the text has a null byte at character {given.index(chr(0)):,}")
    try:
        size = len(given.encode())
    except UnicodeEncodeError as error:
        raise Refusal("content.invalid", f"the text is not valid Unicode at character {error.start:,}") from None
    if size > most_bytes:
        detail = f"the text has {size:,} bytes in UTF-8, at most {most_bytes:,} are allowed; split it"
        raise Refusal("content.too_large", detail, size=str(size), limit=str(most_bytes))
    return given
