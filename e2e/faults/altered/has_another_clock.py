"""Not a bug but a fault: the clock of each process is as far off as a file says, which may change at any moment.

The file of `E2E_CLOCK` is JSON: a part of a command line to seconds, the first that fits. NATS keeps its own clock.
"""

import json
import os
import secrets
import sys
import time
import uuid
from datetime import timedelta
from typing import Any

MODULE = "mycelium_kernel.clock"


class _Offset:
    """How far off this process is, read anew when the file has changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        self._offset_s = 0.0

    def __call__(self) -> float:
        try:
            changed = os.stat(self._path).st_mtime_ns
            if changed != self._read:
                self._read, self._offset_s = changed, self._of_this_process()
        except (OSError, ValueError):  # being written
            pass
        return self._offset_s

    def _of_this_process(self) -> float:
        with open(self._path) as file:
            told: dict[str, float] = json.load(file)
        line = " ".join(sys.orig_argv)
        return next((seconds for part, seconds in told.items() if part in line), 0.0)


def patch(clock: Any) -> None:
    """Move `time.time`, the product's clock, and the time that stands in ids."""
    offset_s, true_s = _Offset(os.environ["E2E_CLOCK"]), time.time
    system_clock = clock.system_clock

    def new_id() -> str:
        low = (0b10 << 62) | secrets.randbits(62)
        return str(uuid.UUID(int=int(time.time() * 1000) << 80 | 7 << 76 | secrets.randbits(12) << 64 | low))

    time.time = lambda: true_s() + offset_s()
    clock.system_clock = lambda: system_clock() + timedelta(seconds=offset_s())
    clock.new_id = new_id
