"""Tells what changed below a folder, as the system tells it. What it may have missed is found by the next full look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from mycelium_kernel.errors import words

LOGGER = logging.getLogger(__name__)
STEP_MS, GROUP_MS = 50, 200  # a quiet while that ends a group of changes; how long a group grows at most
OVERFLOW = 2_000  # changes in a group from which on some may have been lost
RETRY_S = 1.0

Changed = Callable[[list[tuple[str, ...]]], None]


async def watch(root: Path, changed: Changed, everything: Callable[[], None], report: Callable[[str], None]) -> None:
    """Call `changed` with paths below `root`, in parts, until cancelled.

    `everything` is called when some may have been missed: after an error, again and again while it lasts. `report` is
    told why the system tells nothing.
    """
    while True:
        try:
            await _watch(await asyncio.to_thread(root.resolve), changed, everything, report)
        except (OSError, RuntimeError) as error:
            LOGGER.warning("changes of files are not told, so all are looked at again and again: %s", words(error))
            report(f"changes of files are looked for, not told: {words(error)}")
        everything()
        await asyncio.sleep(RETRY_S)


async def _watch(root: Path, changed: Changed, everything: Callable[[], None], report: Callable[[str], None]) -> None:
    from watchfiles import awatch

    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it tells of each change
    prefix, first = f"{root}/", True
    async for changes in awatch(
        root, watch_filter=None, step=STEP_MS, debounce=GROUP_MS, rust_timeout=1_000, yield_on_timeout=True,
        ignore_permission_denied=True,
    ):  # fmt: skip
        if first:
            first = False
            report("")
            everything()  # what changed since the last look, before it was watched
        if len(changes) > OVERFLOW:
            everything()
        found = {path.removeprefix(prefix) for _kind, path in changes if path.startswith(prefix)}
        parts = [tuple(path.split("/")) for path in found]
        if visible := [path for path in parts if not any(part.startswith(".") for part in path)]:
            changed(visible)
