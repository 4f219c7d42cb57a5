"""What texts a command takes: messages, their metadata, and the one-line and longer fields of records."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from mycelium_kernel import limits
from mycelium_kernel.errors import Refusal

CONTENT_BYTES = 256 * 1024
METADATA_BYTES = 64 * 1024
TITLE_CHARACTERS = 200
NAME_CHARACTERS = 100
DESCRIPTION_CHARACTERS = 2_000
PATH_CHARACTERS = 4_096
NOTES_CHARACTERS = 20_000


def check_content(content: str) -> str:
    """`content` as it came: nothing is stripped. Refused when it is blank, broken or too large."""
    if not content.strip():
        raise Refusal("content.empty", "the message has no text")
    return limits.text(content, CONTENT_BYTES)


def message_type(given: str) -> str:
    """The type of a message."""
    if given not in {"", "message", "event"}:
        raise Refusal("request.invalid", f"message_type is {given!r}: use 'message' or 'event'")
    return given or "message"


def metadata(text: str) -> dict[str, Any]:
    """The sender's own facts, a JSON object."""
    size = len(text.encode(errors="surrogatepass"))
    if size > METADATA_BYTES:
        raise Refusal("request.invalid", f"metadata has {size:,} bytes, at most {METADATA_BYTES:,} are allowed")
    try:
        parsed = json.loads(text, parse_constant=_no_constant) if text else {}
    except (ValueError, RecursionError):
        raise Refusal("request.invalid", "metadata is not JSON") from None
    if not isinstance(parsed, dict):
        raise Refusal("request.invalid", "metadata is not a JSON object")
    return parsed


def _no_constant(name: str) -> None:
    raise ValueError(name)


def line(field: str, text: str, limit: int) -> str:
    """A field that is shown on one line, trimmed."""
    text = text.strip()
    if len(text) > limit:
        raise Refusal("request.invalid", f"{field} has {len(text):,} characters, at most {limit:,} are allowed")
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in text):
        raise Refusal("request.invalid", f"{field} can't contain line breaks or control characters")
    return text


def paragraphs(field: str, text: str, limit: int) -> str:
    """A field that may have several lines."""
    if len(text) > limit:
        raise Refusal("request.invalid", f"{field} has {len(text):,} characters, at most {limit:,} are allowed")
    if "\0" in text:
        raise Refusal("request.invalid", f"{field} can't contain a null byte")
    return text
