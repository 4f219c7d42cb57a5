"""How an index of words in SQLite is kept free of what was deleted; what a word is, each service says for itself."""

from __future__ import annotations

from mycelium_kernel.tables import Tables

MERGE_PAGES = 50  # of the index that one step writes
MERGED = 2  # changes of a step that did something (SQLite's own measure)


def merge(tables: Tables, index: str, *, first: bool) -> bool:
    """Merge some pages of an index, which hold deleted words until that; False when none are left."""
    before = _changes(tables)
    pages = -MERGE_PAGES if first else MERGE_PAGES  # a negative count begins anew, with all there is
    tables.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", pages)  # noqa: S608 - a table's name
    return _changes(tables) - before >= MERGED


def _changes(tables: Tables) -> int:
    row = tables.one("SELECT total_changes()")
    return int(row[0]) if row else 0
