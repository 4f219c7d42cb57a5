"""Waiting for something to become true, with a bound. The only place of `e2e/` that looks again and again."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(look: Callable[[], Found | None], what: str, within_s: float = 10.0) -> Found:
    """What `look` returns as soon as it is neither None nor False; fails with `what` when that takes too long."""
    end_s = time.monotonic() + within_s
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {within_s:g} s: {what}")
        time.sleep(0.02)
