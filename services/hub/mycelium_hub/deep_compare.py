"""Compares a service's tables with the same tables made from the log elsewhere, row by row, and checks their file.

What counts is what the kernel compares in its law: not what only waits to be swept. Read in one transaction, so that a
running service may go on meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycelium_kernel import subjects
from mycelium_kernel.errors import Unavailable, words
from mycelium_kernel.service import Projection
from mycelium_kernel.tables import Tables

Row = tuple[Any, ...]
FEW = 3  # differences of a table that are told one by one
LATER = ((44, 48), (56, 60))  # schema format and text encoding: nothing until what made the tables is checkpointed
# Bytes of a database file that do not depend on how its content came about.
SAME_HEADER = ((0, 24), LATER[0], (48, 56), LATER[1], (60, 92))
# Not what reads an index of words (fts5vocab), and keeps nothing.
INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE % USING fts5 (%'"


@dataclass
class Replica:
    """One table file, held as it is now."""

    path: Path
    name: str  # of the service
    projection: Projection
    connection: sqlite3.Connection
    epoch: str = ""
    position: int = 0
    is_open: bool = False
    is_compared: bool = False
    found: list[str] = field(default_factory=list)
    lost: list[tuple[str, int]] = field(default_factory=list)  # facts by room that it has read, and the store lacks

    @classmethod
    def open(cls, path: Path, name: str, projection: Projection) -> Replica:
        """Hold the tables as they are now; a file that can't be read is told in `found`."""
        replica = cls(path, name, projection, sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5))
        replica.connection.isolation_level = None
        try:
            replica.connection.text_factory = bytes
            replica.connection.execute("BEGIN")
            meta = dict(replica.connection.execute("SELECT name, value FROM meta").fetchall())
            replica.epoch, replica.position = meta[b"epoch"].decode(), int(meta.get(b"position", 0))
            replica.is_open = True
        except (sqlite3.Error, KeyError, ValueError, TypeError) as error:
            replica.found.append(f"can't be read: {words(error)}")
        return replica

    def close(self) -> None:
        """Let it go on."""
        self.connection.close()

    def compare(self, rebuilt: Path) -> None:
        """Set `found` to whatever differs from the tables at `rebuilt`, which were made up to the same fact."""
        self.found = []
        self._look(rebuilt, self._structure, self._rows, self._words)
        self.is_compared = True

    def check_file(self, rebuilt: Path) -> None:
        """Set `found` to what is wrong with the file alone."""
        self.found = []
        self._look(rebuilt, self._structure)
        self.is_compared = False

    def _look(self, rebuilt: Path, *looks: Callable[[sqlite3.Connection, Path], Iterator[str]]) -> None:
        with closing(sqlite3.connect(rebuilt, isolation_level=None)) as other:
            other.text_factory = bytes
            for look in looks:
                try:
                    self.found += look(other, rebuilt)
                except (sqlite3.Error, Unavailable) as error:
                    self.found.append(f"can't be read: {error.__cause__ or error}")
                    return

    def _structure(self, other: sqlite3.Connection, rebuilt: Path) -> Iterator[str]:
        """The file's own header, its pages and indexes, and what it says its tables are."""
        mine, theirs = (_head(path) for path in (self.path, rebuilt))
        for begin, end in SAME_HEADER:
            if (begin, end) in LATER and _is_ahead(self.path) and not any(mine[begin:end]):
                continue
            yield from (f"byte {at} is wrong (header)" for at in range(begin, end) if mine[at] != theirs[at])
        checked = self.connection.execute("PRAGMA integrity_check(3)").fetchall()
        yield from (_text(row[0]).replace("\n", " ") for row in checked if row[0] not in {b"ok", "ok"})
        described = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
        if self.connection.execute(described).fetchall() != other.execute(described).fetchall():
            raise sqlite3.DatabaseError("they are of another version, or their description is damaged (sqlite_master)")

    def _rows(self, other: sqlite3.Connection, _rebuilt: Path) -> Iterator[str]:
        here, there = (Tables(None, self.projection, self.epoch, one) for one in (self.connection, other))
        erased = {row[0].decode() for row in there.all("SELECT room_id FROM erased")}
        for table in there.names():
            columns = there.all("SELECT name, pk FROM pragma_table_xinfo(?) ORDER BY cid", table)
            keys = [at for at, (_name, pk) in enumerate(columns) if pk]
            order = f" ORDER BY {', '.join(_text(columns[at][0]) for at in keys)}"
            rows = [one.iterate(one.rows_of(table) + order) for one in (here, there)]
            count = 0
            for mine, theirs in _differences(rows[0], rows[1], keys):
                if table == "entity" and subjects.room_of(_text((mine or theirs or ("..",))[0])) in erased:
                    continue
                count += 1
                if count <= FEW:
                    yield f"table {table}, {_describe(columns, keys, mine, theirs)}"
            if count > FEW:
                yield f"table {table}, {count - FEW} more rows"

    def _words(self, other: sqlite3.Connection, _rebuilt: Path) -> Iterator[str]:
        """Indexes of words: whether each is whole in itself, and has the same words in the same places."""
        numbered = [(name, key) for name, key in self.projection.swept_tables.items() if "," not in key]
        gone = " UNION ".join(
            f"SELECT {key} FROM main.{name} WHERE room_id IN (SELECT room_id FROM main.erased)"  # noqa: S608
            for name, key in numbered
        )
        for one in (self.connection, other):
            one.execute("CREATE TEMP TABLE gone (doc INTEGER PRIMARY KEY)")
            if gone:
                one.execute(f"INSERT INTO temp.gone {gone}")
        for name, sql in self.connection.execute(INDEXES).fetchall():
            table = _text(name)
            yield from _check_words(self.connection, table, _text(sql))
            sides = []
            for one in (self.connection, other):
                one.execute(f"CREATE VIRTUAL TABLE temp.words_of_{table} USING fts5vocab(main, {table}, instance)")
                listed = f"SELECT * FROM words_of_{table} WHERE doc NOT IN (SELECT doc FROM temp.gone)"  # noqa: S608
                sides.append(one.execute(listed))
            count = sum(1 for _pair in _differences(sides[0], sides[1], [0, 1, 2, 3]))
            if count:
                yield f"table {table}, {count} words are not those of the texts"


def _check_words(connection: sqlite3.Connection, table: str, sql: str) -> Iterator[str]:
    """Copy an index of words, since the check writes, and let SQLite check the copy."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        copy.execute(sql)
        shadows = connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow' AND name GLOB ?",
            (f"{table}_*",),
        )
        for shadow in [_text(name) for (name,) in shadows.fetchall()]:
            copy.execute(f"DELETE FROM {shadow}")  # noqa: S608 - names from the schema
            rows = connection.execute(f"SELECT * FROM {shadow}")  # noqa: S608
            places = ", ".join("?" * len(rows.description))
            copy.executemany(f"INSERT INTO {shadow} VALUES ({places})", rows)  # noqa: S608
        try:
            copy.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")  # noqa: S608
        except sqlite3.DatabaseError as error:
            yield f"table {table}: {error}"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100).ljust(100, b"\0")


def _is_ahead(path: Path) -> bool:
    """Whether the write-ahead log holds what the file does not yet."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _order(row: Row, keys: list[int]) -> list[tuple[int, Any]]:
    """How SQLite orders keys: nothing, then numbers, then texts."""
    return [(0, 0) if row[at] is None else (1 + isinstance(row[at], bytes), row[at]) for at in keys]


def _differences(
    mine: Iterator[Row], theirs: Iterator[Row], keys: list[int]
) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows that are only on one side, or differ, of two sides in the order of their keys."""
    one, other = next(mine, None), next(theirs, None)
    while one is not None or other is not None:
        if one == other:
            one, other = next(mine, None), next(theirs, None)
        elif other is None or (one is not None and _order(one, keys) < _order(other, keys)):
            yield one, None
            one = next(mine, None)
        elif one is None or _order(one, keys) > _order(other, keys):
            yield None, other
            other = next(theirs, None)
        else:
            yield one, other
            one, other = next(mine, None), next(theirs, None)


def _describe(columns: list[Row], keys: list[int], mine: Row | None, theirs: Row | None) -> str:
    """Which row, and what is wrong with it; nothing of what it holds but its key."""
    row = theirs or mine or ()
    key = ", ".join(f"{_text(columns[at][0])} {_text(row[at])}" for at in keys)
    if mine is None:
        return f"row {key}: is missing"
    if theirs is None:
        return f"row {key}: is not in the log"
    wrong = [_text(name) for (name, _pk), one, other in zip(columns, mine, theirs, strict=True) if one != other]
    return f"row {key}: {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not what the log says"
