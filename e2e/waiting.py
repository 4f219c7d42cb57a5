"""Waiting for something to become true, with a bound. The only place of `e2e/` that looks again and again."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(look: Callable[[], Found | None], what: str, within_s: float = 60.0) -> Found:
    """What `look` returns as soon as that is true, or not empty; fails with `what` when it takes too long."""
    end_s = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {within_s:g} s: {what}")
        time.sleep(0.02)
