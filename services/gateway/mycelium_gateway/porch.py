"""Lets new connections in one by one: a thousand that come back in one instant must not hold up who is inside.

What a connection sends first is worked on until something has to wait for somebody else. The loop would do that for all
of them before it looks at anyone again; here it does one, looks at the others, and so on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Porch:
    """Where what begins waits for its turn of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def enter(self, begin: Callable[[], None]) -> None:
        """Call `begin` in a later turn of the loop, after those that were here before, one a turn."""
        self._waiting.append(begin)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._let_in)

    def _let_in(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._let_in)
