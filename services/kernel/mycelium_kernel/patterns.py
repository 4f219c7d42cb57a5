"""Patterns of keys: which documents somebody wants to hear of. Written as shells and `fnmatch` have them.

`*` stands for anything, slashes too, so that `decisions/*` is all that is under `decisions/`, however deep; `?` for
one character, `[ab]` for one of these. One that ends with a slash is a beginning. Keys that name one document (`fold`)
match alike.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mycelium_kernel import names
from mycelium_kernel.errors import Refusal

BYTES = 512  # as a key
PATTERNS = 20  # at a time


@dataclass(frozen=True)
class Pattern:
    """A pattern as it was written, and folded: two that fold alike are the same."""

    text: str
    folded: str

    def matches(self, key: str) -> bool:
        """Whether a key fits."""
        return self.fits(names.fold_key(key))

    def fits(self, folded: str) -> bool:
        """Whether a key fits that is folded already."""
        if self.folded.endswith("/"):
            return folded.startswith(self.folded) or fnmatch.fnmatchcase(folded, self.folded + "*")
        return fnmatch.fnmatchcase(folded, self.folded)


def read(text: str) -> Pattern:
    """The pattern that a text is. Refused when no key could fit it."""
    written = text.strip()
    fault = ""
    if not written:
        fault = "it is empty; * is every key"
    elif len(written.encode(errors="replace")) > BYTES:
        fault = f"it is longer than {BYTES} bytes"
    elif written.startswith("/"):
        fault = "keys begin at the room, not with a slash"
    elif re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", written):
        fault = "it has characters that no key has"
    if fault:
        raise Refusal("request.invalid", f"{written[:60]!r} can't be a pattern of keys: {fault}")
    return Pattern(written, names.fold_key(written))


def read_all(texts: Iterable[str]) -> tuple[Pattern, ...]:
    """Several patterns, each once."""
    found = {pattern.folded: pattern for pattern in map(read, texts)}
    if len(found) > PATTERNS:
        raise Refusal("request.invalid", f"{len(found)} patterns of keys, at most {PATTERNS} are taken at a time")
    return tuple(found.values())
