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
        self._is_free = True  # nobody was let in yet in this turn

    def enter(self, begin: Callable[[], None]) -> None:
        """Call `begin` at once, or after those that were here before, one a turn of the loop."""
        if not self._is_free:
            self._waiting.append(begin)
            return
        self._is_free = False
        asyncio.get_running_loop().call_soon(self._next_turn)
        begin()

    def _next_turn(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next_turn)
            self._waiting.popleft()()
        else:
            self._is_free = True
