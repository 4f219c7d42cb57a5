"""The disk under the log: the server is started again once there is room, when it may have met the end of the disk.

A nats-server whose write failed refuses every append until it is started again. The services stop before that
(`mycelium_kernel.space`), so it happens only when something else fills the disk. Starting it again is safe: what it
acknowledged is on disk, and the services connect again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from mycelium_kernel.space import Space

LOGGER = logging.getLogger(__name__)
LOOK_S = 0.25


async def guard(folder: Path, restart: Callable[[], Awaitable[None]]) -> None:
    """Look at the disk of `folder` until cancelled."""
    space = Space(str(folder))
    short = starved = False
    while True:
        await asyncio.sleep(LOOK_S)
        if space.is_short() != short:
            short = not short
            LOGGER.warning("%s", space.shortage() or "the log's disk has room again")
        starved |= space.is_short(4)
        if starved and not short:
            LOGGER.warning("NATS is started again: the disk was full, and it may refuse facts since")
            await restart()
            starved = False
