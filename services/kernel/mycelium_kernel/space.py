"""Room on the disk of the log: facts are refused before the disk is full, since a server that has met its end stops.

A nats-server whose write failed answers no append any more until it is started again, and says nothing to those that
wait. So the log's writer looks first, where the server's store is on its own machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

RESERVE_BYTES = 256 * 1024 * 1024
RESERVE_SHARE = 8  # on a small disk: an eighth of it


@dataclass(frozen=True)
class Space:
    """The disk that `folder` is on; an empty one is another machine's, which keeps its own limit."""

    folder: str

    def look(self) -> tuple[int, int]:
        """Free bytes, and how many of them are kept free. A disk that can't be looked at counts as roomy."""
        try:
            disk = os.statvfs(self.folder)
        except OSError:
            return RESERVE_BYTES, 0
        return disk.f_bavail * disk.f_frsize, min(RESERVE_BYTES, disk.f_blocks * disk.f_frsize // RESERVE_SHARE)

    def is_short(self, part: int = 1) -> bool:
        """Whether less is free than the reserve, or than a half (2), a quarter (4) of it."""
        free, reserve = self.look() if self.folder else (0, 0)
        return free * part < reserve

    def shortage(self) -> str:
        """What is to be said of it; empty when there is room."""
        free, reserve = self.look() if self.folder else (0, 0)
        if free >= reserve:
            return ""
        return f"the log's disk is nearly full: {free >> 20} MB free, {reserve >> 20} MB are kept free"
