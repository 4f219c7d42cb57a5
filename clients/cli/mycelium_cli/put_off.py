"""Ctrl-C and its like, put off while something that was spent is written down: a join code, a refresh token."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stops_put_off(came: list[int], note: Callable[[int], None]) -> Iterator[None]:
    """Have `note` told of each stop in the block. The first that stands in `came` at its end is given then.

    For the main thread alone.
    """
    before = {stop: signal.signal(stop, lambda number, _frame: note(number)) for stop in _STOPS}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])
