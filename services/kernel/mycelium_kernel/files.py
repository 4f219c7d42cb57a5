"""How many files a process may open. Loaded by the hub and by services before anything else of the kernel."""

from __future__ import annotations

import contextlib
import resource


def allow_many_files() -> None:
    """Every reader of a live stream is an open file, and the usual limit is for programs with a few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit than they tell
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
