"""Mends what `doctor --deep` has found: puts a flipped bit right, takes away what is made again by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mycelium_hub.deep_store import Damage
from mycelium_hub.home import Home
from mycelium_kernel import table_file

NEXT = "mycelium down && mycelium doctor --deep --fix && mycelium up"


def of_store(home: Home, damage: Damage) -> Callable[[], None] | None:
    """How a store's file is mended; never under a running hub."""
    return partial(_mend_store, home, damage) if damage.is_mendable else None


def of_tables(home: Home, path: Path) -> Callable[[], None]:
    """How tables are made again from the log: by the running service, else at the next start."""
    return partial(_mend_tables, home, path)


def _mend_store(home: Home, damage: Damage) -> None:
    with home.owned():
        if damage.patch is None:
            damage.path.unlink(missing_ok=True)
            return
        place, mended = damage.patch
        descriptor = os.open(damage.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, mended, place)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mend_tables(home: Home, path: Path) -> None:
    if home.owner() is not None:
        table_file.condemn(path)
        return
    with home.owned():
        table_file.remove(path)
