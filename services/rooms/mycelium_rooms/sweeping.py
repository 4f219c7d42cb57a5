"""Sweeps deleted rooms out of this process's tables, a few milliseconds at a time, so that nobody waits for it.

The tombstone takes away the room's own row, and with it every way to what it held; the rows of a room that may have a
million of them go by and by. Then the index of words is merged, whose pages hold words of deleted messages until
that, and the write-ahead log is emptied. A restart goes on where this was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mycelium_kernel.tables import Tables

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOOK_S, STEP_S = 0.5, 0.001  # between looks, and between steps, in which others are served
ROWS = 100  # that one step deletes
MERGE_PAGES = 50  # of the index of words that one step writes
MERGED = 2  # changes of a step that did something (SQLite's own measure)
KEYS = {
    "message": "sequence",
    "revision": "room_id, message_id, sequence",
    "thread": "room_id, thread",
    "delivery": "room_id, queue, message_id",
    "holding": "room_id, queue, message_id, session",
}
# Fixed texts all of them.
DELETE = [
    f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE room_id = ?1 LIMIT ?2)"  # noqa: S608
    for table, key in KEYS.items()
]


async def sweep_tables(runtime: Runtime) -> None:
    """Look for ever whether there is something to sweep."""
    tables = runtime.tables
    assert tables is not None
    sweeper = Sweeper(tables)
    while True:
        is_busy = sweeper.step() or not sweeper.is_shrunk()
        await asyncio.sleep(STEP_S if is_busy else LOOK_S)


class Sweeper:
    """Sweeps step by step."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._merging = False
        self._shrunk = False

    def step(self) -> bool:
        """Sweep a little; False when nothing is left to sweep."""
        row = self._tables.one("SELECT room_id FROM grave INDEXED BY grave_unswept WHERE swept = 0 LIMIT 1")
        if row is None:
            return False
        self._shrunk = False
        if not self._delete(row[0]) and not self._merge():
            self._tables.execute("UPDATE grave SET swept = 1 WHERE swept = 0 AND room_id = ?", row[0])
        return True

    def is_shrunk(self) -> bool:
        """Empty the write-ahead log after what was swept; whether that is done."""
        if not self._shrunk:
            self._shrunk = self._tables.one("PRAGMA journal_mode") != ("wal",) or self._tables.shrink()
        return self._shrunk

    def _delete(self, room_id: str) -> bool:
        """Delete some rows of a room; whether there were any."""
        for sql in DELETE:
            if self._tables.execute(sql, room_id, ROWS):
                self._merging = False
                return True
        return False

    def _merge(self) -> bool:
        """Merge some pages of the index; whether there were any."""
        before = self._changes()
        pages = MERGE_PAGES if self._merging else -MERGE_PAGES  # a negative count begins anew, with all there is
        self._tables.execute("INSERT INTO message_words (message_words, rank) VALUES ('merge', ?)", pages)
        self._merging = self._changes() - before >= MERGED
        return self._merging

    def _changes(self) -> int:
        row = self._tables.one("SELECT total_changes()")
        return int(row[0]) if row else 0
