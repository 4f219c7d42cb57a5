"""Python's collector of cycles, whose full passes hold everybody up: 150 to 300 ms where thousands are connected.

Programs call `settle` once they are up; who meets a rush keeps full passes out of it with a `Rush`.
"""

from __future__ import annotations

import gc
from types import TracebackType

NEVER = 1_000_000_000


def settle() -> None:
    """Leave what start-up has made, and what lasts as long as the process, out of every later pass."""
    gc.freeze()


class Rush:
    """While somebody is within, no full pass begins; one that became due does when the last has left."""

    def __init__(self) -> None:
        self._within = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        self._within += 1
        if self._within == 1:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], NEVER)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within -= 1
        if not self._within:
            gc.set_threshold(*self._usual)
