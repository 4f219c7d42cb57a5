"""Where the tree has to look: told by facts and by changed files, and taken by its next turn."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from mycelium_memory.tree_compare import Slot


@dataclass
class Pending:
    """Where to look."""

    everything: bool = True
    paths: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by room's id
    slots: dict[tuple[str, str], Slot] = field(default_factory=dict)
    documents: dict[tuple[str, str], int] = field(default_factory=dict)  # with the place of the fact that told of it
    created: set[str] = field(default_factory=set)  # rooms that were made under our eyes: whatever comes is new

    def add(self, other: Pending) -> None:
        """Look there, too."""
        self.everything |= other.everything
        for room_id, paths in other.paths.items():
            self.paths[room_id] |= paths
        self.slots = {**other.slots, **self.slots}
        self.documents = {**other.documents, **self.documents}
        self.created |= other.created
