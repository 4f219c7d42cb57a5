"""Looks at the tables that services keep: whether each file is whole, of this log, and up with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from mycelium_hub.examine_log import Told
from mycelium_hub.finding import NOTE, OK, WRONG, Finding
from mycelium_hub.home import Home
from mycelium_hub.services import projections
from mycelium_kernel import table_file

LAG_FEW = 1_000  # facts that were stored while this looked are no lag


def check(home: Home, told: Told | None) -> Iterator[Finding]:
    """Every service's table file."""
    for name, projection in projections().items():
        last = max((told.last.get(one, 0) for one in projection.filters), default=0) if told else None
        paths = home.table_files(name)
        if not paths:
            yield Finding("tables", NOTE, f"{name} has none yet; they are made from the log", "mycelium up")
        for path in paths:
            # A replica's name is that of its log: rooms-2.
            replica = name if path.parent == home.tables else f"{name}-{path.parent.name}"
            yield _look(home, path, replica, told, last)


def _look(home: Home, path: Path, name: str, told: Told | None, last: int | None) -> Finding:
    rebuild = "mycelium down && mycelium-hub doctor --fix && mycelium up"
    mend = partial(_remove, home, path)
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5)) as file:
            damage = [row[0] for row in file.execute("PRAGMA quick_check(3)").fetchall() if row[0] != "ok"]
            meta = dict(file.execute("SELECT name, value FROM meta").fetchall())
    except sqlite3.DatabaseError as error:
        damage, meta = [str(error)], {}
    if damage:
        return Finding("tables", WRONG, f"{name}: {path} is damaged: {damage[0]}", rebuild, mend)
    position = int(meta.get("position", 0))
    if told is None or last is None:
        return Finding("tables", OK, f"{name}: whole, up to fact {position}")
    if meta.get("epoch") != told.epoch:
        return Finding("tables", WRONG, f"{name}: made from another log", rebuild, mend)
    if position < last - LAG_FEW:
        seen = f"{name}: at fact {position}, {last - position} behind the log"
        return Finding("tables", WRONG, seen, f"mycelium logs {name} --tail 50")
    return Finding("tables", OK, f"{name}: whole, at fact {position} of {last}")


def _remove(home: Home, path: Path) -> None:
    """They come back from the log. Never under a running hub."""
    with home.owned():
        table_file.remove(path)
