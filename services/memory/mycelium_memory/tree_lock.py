"""One process keeps a tree: the one with the lock beside the rooms' folders, which goes with it however it ends."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from pathlib import Path

LOGGER = logging.getLogger(__name__)
NAME = ".tree.lock"
AGAIN_S = 1.0


async def take(root: Path) -> int:
    """Wait until no other process keeps the tree; the descriptor to close when this one no longer does."""
    waited = False
    while (descriptor := _try(root)) is None:
        if not waited:
            LOGGER.info("another process keeps the tree in %s", root)
        waited = True
        await asyncio.sleep(AGAIN_S)
    return descriptor


def _try(root: Path) -> int | None:
    descriptor = os.open(root / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
