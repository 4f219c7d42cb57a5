"""Deletes rows that nothing finds any more, a few milliseconds at a time, so that nobody waits for it.

What counts as gone is decided elsewhere and at once: an erased room by its tombstone, old facts of the feed by the
position of the tables. Their rows go by and by, in each process for itself, and a restart goes on where it was. After
a room's rows its service tidies up, and the write-ahead log is emptied, so that no text of it is left on disk. Nobody
can say how long one step of tidying takes, so that is done beside the event loop, while the projector holds back.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator

from mycelium_kernel.errors import Unavailable
from mycelium_kernel.projector import Projector
from mycelium_kernel.service import Projection
from mycelium_kernel.table_file import is_damage
from mycelium_kernel.tables import Tables

LOOK_S, PAUSE_S = 0.5, 0.001  # between looks, and between steps, in which others are served
ROWS = 100  # that one step deletes at most
STEP_S = 0.01  # a step that took longer is followed by smaller ones: rows may hold large texts
ENTITIES = "DELETE FROM entity WHERE subject IN (SELECT subject FROM entity WHERE subject > ? AND subject < ? LIMIT ?)"
FULL, SWEPT, CLEAN = range(3)  # what is left of an erased room: rows, what is to be tidied up, nothing
IN_STATE = "SELECT room_id FROM erased INDEXED BY erased_left WHERE state < 2 AND state = ? LIMIT 1"
CLEANED = "UPDATE erased INDEXED BY erased_left SET state = ? WHERE state < 2 AND state = ?"
# What the kernel's own tables have of an erased room, and what they need not keep.
KERNEL_TABLES = {"feed": "sequence", "answered": "sequence", "chain": "room_id, sequence"}
FORGET = [
    f"DELETE FROM {table} WHERE sequence IN (SELECT sequence FROM {table} WHERE sequence <= ? LIMIT ?)"  # noqa: S608
    for table in ("feed", "answered")
]


async def sweep(projector: Projector) -> None:
    """Look for ever whether there is something to sweep."""
    sweeper = Sweeper(projector.projection, projector.tables)
    while True:
        if projector.tables.is_condemned:
            projector.fail(sqlite3.DatabaseError("they are not what the log says"))
        try:
            is_busy = sweeper.step()
            if not is_busy and sweeper.is_untidy():
                await _tidy(projector, sweeper)
                is_busy = True
        except Unavailable:  # the tables are damaged, and built again meanwhile
            is_busy = False
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            projector.fail(error)
            is_busy = False
        await asyncio.sleep(PAUSE_S if is_busy else LOOK_S)


async def _tidy(projector: Projector, sweeper: Sweeper) -> None:
    """Tidy up a little in a thread. It can't be cancelled, so the projector holds back until the thread has ended."""
    with projector.held():
        tidying = asyncio.create_task(asyncio.to_thread(sweeper.tidy), name="sweeper-tidy")
        try:
            await asyncio.shield(tidying)
        finally:
            await asyncio.wait({tidying})


class Sweeper:
    """Sweeps step by step. A room is first swept, then, with all that were swept meanwhile, tidied up after."""

    def __init__(self, projection: Projection, tables: Tables) -> None:
        self._tables = tables
        self._tidy = projection.tidy
        self._deletes = [
            f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE room_id = ? LIMIT ?)"  # noqa: S608
            for table, key in {**projection.swept_tables, **KERNEL_TABLES}.items()
        ]
        self._rows = ROWS
        self._is_tidying = False
        self._is_shrunk = False

    def step(self) -> bool:
        """Delete a little; False when nothing is left to delete now."""
        return self._sweep_rooms() or self._forget() or self._shrink()

    def is_untidy(self) -> bool:
        """Whether rooms were swept after which nobody has tidied up."""
        return self._tables.one(IN_STATE, SWEPT) is not None

    def tidy(self) -> bool:
        """Tidy up a little after the rooms that were swept; False when that is done. Needs to be the only writer."""
        with self._tables.beside() as tables:
            if self._tidy and self._tidy(tables, not self._is_tidying):
                self._is_tidying = True
                return True
            tables.execute(CLEANED, CLEAN, SWEPT)
        self._is_tidying = self._is_shrunk = False
        return False

    def _sweep_rooms(self) -> bool:
        row = self._tables.one(IN_STATE, FULL)
        if row is None:
            return False
        if not self._sweep_room(row[0]):
            self._tables.execute("UPDATE erased SET state = ? WHERE room_id = ?", SWEPT, row[0])
            self._is_tidying = False  # begins anew, with this room
        return True

    def _sweep_room(self, room_id: str) -> bool:
        """Delete some rows of a room; whether there were any."""
        return any(self._delete(sql, room_id) for sql in self._deletes) or any(
            self._delete(ENTITIES, prefix, prefix[:-1] + "/")  # `/` comes right after `.`
            for prefix in self._prefixes(room_id)
        )

    def _prefixes(self, room_id: str) -> Iterator[str]:
        """What the subjects of a room's entities begin with: namespace, service, room, for each service there is."""
        after = ""
        while row := self._tables.one("SELECT subject FROM entity WHERE subject > ? ORDER BY subject LIMIT 1", after):
            service = ".".join(row[0].split(".", 2)[:2])
            yield f"{service}.{room_id}."
            after = service + "/"

    def _forget(self) -> bool:
        """Delete some facts and keys that are no longer kept; whether there were any."""
        kept_after = self._tables.kept_after
        return kept_after > 0 and any(self._delete(sql, kept_after) for sql in FORGET)

    def _delete(self, sql: str, *parameters: object) -> bool:
        """Delete some rows, as many as take a short time; whether there were any."""
        began = time.perf_counter()
        count = self._tables.execute(sql, *parameters, self._rows)
        took_s = time.perf_counter() - began
        if took_s > STEP_S:
            self._rows = max(1, self._rows // 2)
        elif count == self._rows and took_s < STEP_S / 4:
            self._rows = min(ROWS, self._rows * 2)
        return count > 0

    def _shrink(self) -> bool:
        """Empty the write-ahead log after what was swept. Never busy: with a reader in the way, the next look does."""
        self._is_shrunk = self._is_shrunk or self._tables.shrink()
        return False
