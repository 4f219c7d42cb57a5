"""Ends tasks for sure. Used by whatever in the kernel runs a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

LOGGER = logging.getLogger(__name__)
TRIES = 4


async def end(tasks: Iterable[asyncio.Task[Any] | None], again_s: float = 0.5) -> None:
    """Cancel tasks, and return when they have ended; their errors are dropped.

    `asyncio.wait_for` of Python 3.11, on which nats-py stands, loses a cancellation that comes at the same moment as
    an answer; so a task that goes on is cancelled again after `again_s` seconds, and given up after a few times.
    """
    left = {task for task in tasks if task is not None}
    for _try in range(TRIES):
        if not left:
            return
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=again_s)
        for task in ended:
            if not task.cancelled():
                task.exception()  # looked at, so that nobody reports it as never looked at
    for task in left:
        LOGGER.warning("task %s does not end", task.get_name())
