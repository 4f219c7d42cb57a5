"""Looks after what the tree has replaced: for a moment, a program that had it open may still write into it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Conflict, Refusal, Unavailable
from mycelium_memory.tree_compare import Slot
from mycelium_memory.tree_disk import Illegal, Kept, Place
from mycelium_memory.tree_open import Held
from mycelium_memory.tree_store import Store
from mycelium_memory.tree_swap import Clash, is_unfinished

KEPT_S = 2.0
Rescue = Callable[[Slot, str, int | None], Awaitable[None]]  # make a text a version; from which version, if known


class Attic:
    """Files under their hidden names, until they can go."""

    def __init__(self, store: Store, rescue: Rescue) -> None:
        self._store, self._rescue = store, rescue
        self._kept: dict[Place, tuple[float, Kept, Slot, int]] = {}

    def keep(self, kept: Kept, slot: Slot, version: int) -> None:
        """A file of a document was replaced, in which a version was."""
        self._kept[kept.place] = (time.monotonic() + KEPT_S, kept, slot, version)

    async def look_after(self) -> None:
        """Look at each a moment later, and let it go. Runs until cancelled."""
        while True:
            await asyncio.sleep(KEPT_S / 4)
            for place, (due, kept, slot, version) in list(self._kept.items()):
                if due <= time.monotonic():
                    await self._let_go(place, kept, slot, version)

    async def _let_go(self, place: Place, kept: Kept, slot: Slot, version: int) -> None:
        try:
            found = await self._store.look_at_kept(kept)
            if found:
                await self._rescue(slot, found.text, version)
                self.keep(Kept(place, found.signature), slot, version)  # there may be more to come
                return
        except (Unavailable, Conflict, Clash, Held):
            self.keep(kept, slot, version)
            return
        except (Illegal, Refusal, OSError) as error:
            await self._report(slot.room, place, error)
        else:
            await self._store.discard(place)
        self._kept.pop(place, None)

    async def rescue(self, room: RoomRow, place: Place, key: str) -> bool:
        """A hidden file that an earlier process has left: what is in it and in no version becomes one.

        `key` is that of its document, empty when there never was one. False: it has to be tried again.
        """
        if place in self._kept:
            return True
        try:
            found = None if is_unfinished(place.name) or not key else await self._store.read_kept(place)
            if found:
                await self._rescue(Slot.of(room, key), found.text, None)
        except (Unavailable, Conflict, Clash, Held):
            return False
        except (Illegal, Refusal, OSError) as error:
            await self._report(room, place, error)
        else:
            await self._store.discard(place)
        return True

    async def _report(self, room: RoomRow, place: Place, error: Exception) -> None:
        """What was kept can't become a version, and stays where it is."""
        reason = error.detail if isinstance(error, Refusal) else str(error)
        path = "/".join(place.parts[1:])
        await self._store.report_path(room, path, f"an edit that was replaced is in it, and is no document: {reason}")
