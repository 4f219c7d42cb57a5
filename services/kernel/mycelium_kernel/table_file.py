"""The file that a service keeps its tables in: how it is opened, made and taken away, and whose tables it has."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from mycelium_kernel.service import Projection

OWN = Path(__file__).with_name("tables.sql")  # what the kernel keeps beside the service's
VERSION = 3


def connect(path: Path | None) -> sqlite3.Connection:
    """The file at `path`, which need not be there yet; None: in memory."""
    name = ":memory:" if path is None else str(path)
    connection = sqlite3.connect(name, isolation_level=None, cached_statements=512, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # Not FULL: the log is what must survive a loss of power; the tables catch up from wherever they are.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # erased text must not stay in free pages
        connection.execute("PRAGMA cache_size = -65536")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make(connection: sqlite3.Connection, projection: Projection, epoch: str) -> None:
    """Make the tables in a file that is empty."""
    connection.executescript(_schema(projection))
    connection.execute("INSERT INTO meta VALUES ('schema', ?), ('epoch', ?)", (_mark(projection), epoch))


def _schema(projection: Projection) -> str:
    return "".join(schema.read_text(encoding="utf-8") for schema in (OWN, *projection.schemas))


def _mark(projection: Projection) -> str:
    digest = hashlib.sha256(_schema(projection).encode()).hexdigest()[:16]
    return f"{VERSION}.{projection.version}.{digest}"


def is_current(connection: sqlite3.Connection, projection: Projection, epoch: str) -> bool:
    """Whether the tables in it are of this schema, and of the log `epoch`."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return False
    meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    return meta.get("schema") == _mark(projection) and meta.get("epoch") == epoch


def condemn(path: Path) -> None:
    """Have the running service make its tables again."""
    _condemned(path).touch(mode=0o600)


def remove(path: Path) -> None:
    """Take the tables away; they come back from the log. Not while a service has them open."""
    for each in (*(path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")), _condemned(path)):
        each.unlink(missing_ok=True)


def is_condemned(path: Path) -> bool:
    """Whether somebody has found that what they hold is not what the log says."""
    return _condemned(path).exists()


def _condemned(path: Path) -> Path:
    return path.with_name(path.name + "-condemned")


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file itself is broken, not that a statement is wrong or the disk full."""
    return type(error) is sqlite3.DatabaseError
