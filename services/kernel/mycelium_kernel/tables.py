"""The tables of one service: a SQLite file that can be deleted at any moment and comes back from the log.

Holds the kernel's own tables (position, entity states, answered keys, feed, erased rooms) beside the service's.
Written by the projector only; commands and queries read. Runs in the event loop: a point read takes about 20 µs.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

from mycelium_kernel import subjects, table_file
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.service import Entity, Projection

S = TypeVar("S", bound=Message)
LOGGER = logging.getLogger(__name__)

LAST_SEQUENCE = 2**63 - 1
PAGE_BYTES = 512 * 1024  # a page of an answer ends here; what does not fit is on the next one
KEPT_FACTS = 1_000_000  # how many facts back a watcher can resume, and a repeat still gets the first answer


@dataclass(frozen=True)
class Answered:
    """The fact that answered a key before, and the hash of the request that it answered."""

    sequence: int
    body: str


@dataclass(frozen=True)
class FeedRow:
    """One fact as the log holds it."""

    sequence: int
    type: str
    data: bytes


class Tables:
    """One service's tables. Open with `Tables.open`; `position` is the sequence of the last fact they hold."""

    def __init__(self, path: Path | None, projection: Projection, epoch: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._projection = projection
        self._epoch = epoch
        self._connection = connection
        self.on_damage: Callable[[Exception], None] = _ignore
        self.heads: dict[str, bytes] = {}  # the last hash of each chain, as far as they are remembered
        self.position = int(self._meta("position") or 0)

    @classmethod
    def open(cls, path: Path | None, projection: Projection, epoch: str) -> Tables:
        """Open the tables at `path` (None: in memory), or make them anew.

        They are made anew when they are missing, unreadable, of another schema, or of another log than `epoch`.
        """
        if path is None or table_file.is_condemned(path):
            return cls.anew(path, projection, epoch)
        connection = None
        try:
            connection = table_file.connect(path)
            if table_file.is_current(connection, projection, epoch):
                return cls(path, projection, epoch, connection)
        except sqlite3.DatabaseError as error:
            LOGGER.warning("tables %s can't be read (%s): built again from the log", path.name, error)
        if connection:
            connection.close()
        return cls.anew(path, projection, epoch)

    @classmethod
    def anew(cls, path: Path | None, projection: Projection, epoch: str) -> Tables:
        """Make empty tables at `path`, in place of whatever is there."""
        if path is not None:
            table_file.remove(path)
        connection = table_file.connect(path)
        table_file.make(connection, projection, epoch)
        return cls(path, projection, epoch, connection)

    def rebuild(self) -> None:
        """Empty these tables, whatever state their file is in, so that they are read from the log again."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        fresh = Tables.anew(self._path, self._projection, self._epoch)
        self._connection, self.position = fresh._connection, 0  # noqa: SLF001 - of the same class
        self.heads.clear()

    def _meta(self, name: str) -> str | None:
        row = self.one("SELECT value FROM meta WHERE name = ?", name)
        return row[0] if row else None

    def one(self, sql: str, *parameters: Any) -> tuple[Any, ...] | None:
        """The first row, or None."""
        try:
            row: tuple[Any, ...] | None = self._connection.execute(sql, parameters).fetchone()
        except sqlite3.DatabaseError as error:
            self._check_damage(error)
            raise
        return row

    def all(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows. The caller bounds them."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            self._check_damage(error)
            raise

    def iterate(self, sql: str, *parameters: Any) -> Iterator[tuple[Any, ...]]:
        """The rows one by one, for a reader that stops when it has enough."""
        try:
            yield from self._connection.execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            self._check_damage(error)
            raise

    def execute(self, sql: str, *parameters: Any) -> int:
        """Change rows; for the projector only. Returns how many were changed."""
        return self._connection.execute(sql, parameters).rowcount

    def _check_damage(self, error: Exception) -> None:
        """Tell a reader of a damaged file to come back: it is built again meanwhile."""
        if table_file.is_damage(error):
            self.on_damage(error)
            raise Unavailable("the tables are damaged and are being built again") from error

    def begin(self) -> None:
        """Begin a transaction that holds several facts."""
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self, position: int) -> None:
        """Make the facts up to `position` visible at once."""
        self.execute("INSERT OR REPLACE INTO meta VALUES ('position', ?)", str(position))
        self._connection.execute("COMMIT")
        self.position = position

    def rollback(self) -> None:
        """Forget what was not committed."""
        self.heads.clear()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def entity(self, subject: str, state: type[S]) -> Entity[S]:
        """The entity of `subject` as the tables have it; sequence 0 and no state when it has no fact."""
        row = self.one("SELECT sequence, state FROM entity WHERE subject = ?", subject)
        return Entity(subject, row[0], state.FromString(row[1])) if row else Entity(subject, 0, None)

    def put_entity(self, subject: str, sequence: int, state: Message) -> None:
        """Set an entity's state after a fact."""
        data = state.SerializeToString(deterministic=True)
        self.execute("INSERT OR REPLACE INTO entity VALUES (?, ?, ?)", subject, sequence, data)

    @property
    def kept_after(self) -> int:
        """Facts up to this sequence, and the keys that they answered, count as forgotten. Their rows may linger."""
        return max(0, self.position - KEPT_FACTS)

    def answered(self, actor: str, key: str) -> Answered | None:
        """The fact that answered this actor's key before, unless it is forgotten or its room erased."""
        row = self.one("SELECT sequence, body, room_id FROM answered WHERE actor = ? AND key = ?", actor, key)
        if row is None or row[0] <= self.kept_after or self.is_erased(row[2]):
            return None
        return Answered(row[0], row[1])

    def put_answered(self, sequence: int, actor: str, key: str, body: str, room_id: str) -> None:
        """Remember which fact answered a key; the first one stands, unless it is forgotten or its room erased."""
        self.execute(
            """INSERT INTO answered VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (actor, key)
               DO UPDATE SET sequence = ?1, body = ?4, room_id = ?5
               WHERE answered.sequence < ?1 - ?6 OR answered.room_id IN (SELECT room_id FROM erased)""",
            sequence, actor, key, body, room_id, KEPT_FACTS,
        )  # fmt: skip

    def is_erased(self, room_id: str) -> bool:
        """Whether a room was erased."""
        return self.one("SELECT 1 FROM erased WHERE room_id = ?", room_id) is not None

    def feed(self, room_ids: Iterable[str], after: int, until: int = LAST_SEQUENCE) -> Iterator[FeedRow]:
        """Kept facts of rooms with `after` < sequence <= `until`, in order, for a reader that stops when it has enough.

        Each room is walked down its own index, so that nothing is sorted however many facts there are.
        """
        sql = """SELECT sequence, type, data FROM feed INDEXED BY feed_room
                 WHERE room_id = ? AND sequence > ? AND sequence <= ? ORDER BY sequence"""
        after = max(after, self.kept_after)
        for row in heapq.merge(*(self.iterate(sql, room_id, after, until) for room_id in dict.fromkeys(room_ids))):
            yield FeedRow(*row)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table in a fixed order: what the law "state + event = state from zero" compares.

        Without what only waits to be swept, and without virtual tables, whose pages tell how they came about.
        """
        rows = {name: sorted(self.all(self.rows_of(name)), key=repr) for name in self.names()}
        erased = {row[0] for row in rows["erased"]}
        rows["entity"] = [row for row in rows["entity"] if subjects.room_of(row[0]) not in erased]
        return rows

    def names(self) -> list[str]:
        """The tables, without virtual ones and what lies beneath them."""
        listed = self.all("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name")
        names = [name.decode() if isinstance(name, bytes) else name for (name,) in listed]
        return [name for name in names if not name.startswith("sqlite_")]

    def rows_of(self, table: str) -> str:
        """The statement that reads those rows of a table that count."""
        sql = f"SELECT * FROM {table}"  # noqa: S608 - own names
        if table == "erased":
            return "SELECT room_id FROM erased"
        if table in {*self._projection.swept_tables, "feed", "answered", "chain"}:
            sql += " WHERE room_id NOT IN (SELECT room_id FROM erased)"
        if table in {"feed", "answered"}:
            sql += f" AND sequence > {self.kept_after}"
        return sql

    @contextlib.contextmanager
    def beside(self) -> Iterator[Tables]:
        """The same tables through another connection, for a thread; the same one when they are in memory."""
        if self._path is None:
            yield self
            return
        other = Tables(self._path, self._projection, self._epoch, table_file.connect(self._path))
        try:
            yield other
        finally:
            other.close()

    def shrink(self) -> bool:
        """Move everything into the main file and empty the write-ahead log, so that erased text is gone from disk.

        False when a reader was in the way; then the next `shrink` does it.
        """
        try:
            return self.one("PRAGMA wal_checkpoint(TRUNCATE)") in {(0, 0, 0), (0, -1, -1)}  # -1: tables in memory
        except sqlite3.OperationalError:
            return False

    @property
    def is_condemned(self) -> bool:
        """Whether somebody has found that what they hold is not what the log says."""
        return self._path is not None and table_file.is_condemned(self._path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _ignore(_error: Exception) -> None:
    return
