"""What the tree last saw of each file: which version is in it, and which text. `tree` decides by it who has changed.

A SQLite file of its own beside the rooms' folders, written by the one process that keeps the tree and read by whoever
shows its problems. It may lag behind, or be lost: then `tree_settle` tells from the log what the tree wrote itself,
and files that were removed meanwhile come back.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from mycelium_memory.tree_disk import Signature

NAME = ".tree.sqlite"
SETTLED_NS = 1_000_000_000  # a file that was touched this long before it was noted can't have changed unseen since
VERSION = "1"
MOST_PROBLEMS = 1_000
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- Rooms whose whole folder was looked at once.
CREATE TABLE room (room_id TEXT PRIMARY KEY) WITHOUT ROWID;
-- Files that are there. `exact`: the text is the version's own, to the letter.
CREATE TABLE file (
  room_id TEXT NOT NULL, document_id TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, digest BLOB NOT NULL,
  exact INTEGER NOT NULL, inode TEXT NOT NULL, bytes INTEGER NOT NULL, changed_ns INTEGER NOT NULL,
  touched_ns INTEGER NOT NULL, noted_ns INTEGER NOT NULL, PRIMARY KEY (room_id, document_id)
) WITHOUT ROWID;
CREATE INDEX file_key ON file (room_id, key);
-- What is left alone, and why. `path` is under the room's folder; empty for the folder itself. With a `version` it is
-- an edit that met a write, which is told until there is a later version.
CREATE TABLE problem (
  room_id TEXT NOT NULL, path TEXT NOT NULL, room TEXT NOT NULL, reason TEXT NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (room_id, path)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Base:
    """What a file was when it was last seen to be right."""

    key: str
    version: int
    digest: bytes
    exact: bool


@dataclass(frozen=True)
class Noted:
    """A file in the list of all."""

    document_id: str
    key: str
    version: int
    exact: bool
    signature: Signature
    noted_ns: int

    def is_as(self, now: Signature) -> bool:
        """Whether the file is the same for sure, without reading it."""
        return now == self.signature and now[3] + SETTLED_NS < self.noted_ns


class Bases:
    """The file. Used by one thread."""

    def __init__(self, root: Path, epoch: str) -> None:
        """Open it. It begins anew when it is of another log or form, or can't be read."""
        self._path = root / NAME
        try:
            self._connection = self._open()
            said = dict(self._connection.execute("SELECT name, value FROM meta"))
            if self._connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                said = {}
        except sqlite3.DatabaseError:
            said = {}
        if said != {"epoch": epoch, "version": VERSION}:
            self._begin(epoch)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # keys of rooms that are no more may still stand in it
        return connection

    def _begin(self, epoch: str) -> None:
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self._connection.close()
        for ending in ("", "-wal", "-shm"):
            self._path.with_name(NAME + ending).unlink(missing_ok=True)
        self._connection = self._open()
        self._connection.executescript(SCHEMA)
        self._connection.execute("INSERT INTO meta VALUES ('epoch', ?), ('version', ?)", (epoch, VERSION))

    def close(self) -> None:
        self._connection.close()

    def get(self, room_id: str, document_id: str) -> Base | None:
        sql = "SELECT key, version, digest, exact FROM file WHERE room_id = ? AND document_id = ?"
        row = self._connection.execute(sql, (room_id, document_id)).fetchone()
        return Base(row[0], row[1], row[2], bool(row[3])) if row else None

    def put(self, room_id: str, document_id: str, base: Base, now: Signature) -> None:
        """A file is right now."""
        values = (
            room_id, document_id, base.key, base.version, base.digest, base.exact, str(now[0]), *now[1:],
            time.time_ns(),
        )  # fmt: skip
        self._connection.execute(f"INSERT OR REPLACE INTO file VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608

    def forget(self, room_id: str, document_id: str) -> None:
        """There is no file of a document any more."""
        self._connection.execute("DELETE FROM file WHERE room_id = ? AND document_id = ?", (room_id, document_id))

    def noted(self, room_id: str, below: str = "") -> list[Noted]:
        """The files of a room; with `below`, the one of that key, and those whose keys go on from it with a slash."""
        sql = """SELECT document_id, key, version, exact, inode, bytes, changed_ns, touched_ns, noted_ns FROM file
          WHERE room_id = ?1 AND (?2 = '' OR key = ?2 OR (key > ?2 || '/' AND key < ?2 || '0'))"""
        rows = self._connection.execute(sql, (room_id, below))
        return [
            Noted(row[0], row[1], row[2], bool(row[3]), (int(row[4]), row[5], row[6], row[7]), row[8]) for row in rows
        ]

    def is_known(self, room_id: str) -> bool:
        """Whether the whole of a room's folder was looked at before."""
        return self._connection.execute("SELECT 1 FROM room WHERE room_id = ?", (room_id,)).fetchone() is not None

    def know(self, room_id: str) -> None:
        self._connection.execute("INSERT OR IGNORE INTO room VALUES (?)", (room_id,))

    def forget_room(self, room_id: str) -> None:
        """Nothing is known of a room's folder, or the room is no more: then no key of it stays on the disk."""
        statements = [f"DELETE FROM {table} WHERE room_id = ?" for table in ("room", "file", "problem")]  # noqa: S608
        if sum(self._connection.execute(statement, (room_id,)).rowcount for statement in statements):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def rooms(self) -> set[str]:
        """Every room of which anything is noted."""
        sql = "SELECT room_id FROM room UNION SELECT room_id FROM file UNION SELECT room_id FROM problem"
        return {row[0] for row in self._connection.execute(sql)}

    def report(self, room_id: str, room: str, path: str, reason: str, version: int = 0) -> None:
        """What is wrong with a path, or which version an edit of it became when it met a write."""
        values = (room_id, path, room, reason, version)
        self._connection.execute("INSERT OR REPLACE INTO problem VALUES (?, ?, ?, ?, ?)", values)

    def mend(self, room_id: str, path: str, version: int = 0) -> None:
        """Nothing is wrong with a path, which is at a version now."""
        sql = "DELETE FROM problem WHERE room_id = ? AND path = ? AND (version = 0 OR version < ?)"
        self._connection.execute(sql, (room_id, path, version))

    def problems(self, room_id: str, below: str = "") -> set[str]:
        """The paths of a room with which something is wrong; with `below`, that one and those in it."""
        sql = """SELECT path FROM problem WHERE room_id = ?1 AND path != '' AND version = 0
          AND (?2 = '' OR path = ?2 OR (path > ?2 || '/' AND path < ?2 || '0'))"""
        return {row[0] for row in self._connection.execute(sql, (room_id, below))}


@dataclass(frozen=True)
class Problem:
    """A path that is left alone."""

    room_id: str
    room: str
    path: str
    reason: str


def every_problem(root: Path, room_id: str = "") -> list[Problem]:
    """What is left alone, of all rooms or of one, by path; read by any process. Nothing where no tree was kept."""
    try:
        connection = sqlite3.connect(f"{(root / NAME).absolute().as_uri()}?mode=rw", uri=True)
    except sqlite3.OperationalError:
        return []
    sql = f"""SELECT room_id, room, path, reason FROM problem WHERE ?1 = '' OR room_id = ?1
      ORDER BY room, path LIMIT {MOST_PROBLEMS}"""  # noqa: S608 - a number
    with contextlib.closing(connection):
        try:
            return [Problem(*row) for row in connection.execute(sql, (room_id,))]
        except sqlite3.DatabaseError:  # begun anew at this moment
            return []
