"""What is to be done about a document and its file, as both are at a moment. Pure; `tree_settle` looks and does it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from mycelium_memory.tree_base import Base
from mycelium_memory.tree_compare import Slot
from mycelium_memory.tree_disk import Found
from mycelium_memory.tree_past import Headline


class Step(enum.Enum):
    """What is to be done about a document and its file."""

    NOTHING = enum.auto()
    FORGET = enum.auto()  # neither is there
    WRITE = enum.auto()
    DELETE = enum.auto()
    GONE = enum.auto()  # the file was removed by hand
    EDITED = enum.auto()  # the file was written by hand


def decide(base: Base | None, found: bytes | None, document: Headline) -> Step:
    """`found` is the digest of the file, None without one."""
    if found is None:
        if base is None:
            return Step.WRITE if document.there else Step.NOTHING
        return Step.GONE if document.there else Step.FORGET
    if base is None or base.digest != found:
        return Step.EDITED
    if not document.there:
        return Step.DELETE
    return Step.NOTHING if base.exact and base.version == document.version else Step.WRITE


@dataclass(frozen=True)
class View:
    """A document and its file, as they are at one moment."""

    slot: Slot
    document: Headline
    base: Base | None
    found: Found | None
    is_first: bool  # whether nothing was noted of the folder before

    @property
    def base_version(self) -> int:
        """The version that was last in the file; without a file, the removal that was last seen."""
        if self.base:
            return self.base.version
        return 0 if self.is_first or self.document.there else self.document.version
