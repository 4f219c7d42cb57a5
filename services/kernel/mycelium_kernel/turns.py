"""Who may change an entity now: within one process, one after the other, so that nobody loses a race to a neighbour.

Races with other processes are the log's to settle, which stores a fact only on the sequence that was expected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass
class Turn:
    """The line of those who want to change one entity. `last` is the sequence of the last fact that one of them had."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    last: int = 0


@dataclass
class Turns:
    """The lines, by subject; kept for as long as somebody stands in one."""

    _lines: dict[str, Turn] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def taken(self, subject: str) -> AsyncIterator[Turn]:
        """Wait for one's turn, and have it for the time of the block."""
        line = self._lines.setdefault(subject, Turn())
        line.users += 1
        try:
            async with line.lock:
                yield line
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[subject]
