"""Finds the documents that requests name. For loads and queries."""

from __future__ import annotations

from mycelium_kernel import names
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables
from mycelium_memory import keys
from mycelium_memory.commands_documents import not_found, was_removed
from mycelium_memory.model import document_id

NEAR_ROWS = 200  # keys beside the one that is not there, among which a near one is sought


def near_keys(tables: Tables, room: RoomRow, key: str) -> list[str]:
    """The keys of documents that are most like one that is not there: of its neighbours, and of those named alike."""
    folded = keys.fold(key)
    sql = "SELECT folded, key FROM document INDEXED BY document_listed WHERE room_id = ? AND removed = 0 AND folded"
    before = tables.all(f"{sql} < ? ORDER BY folded DESC LIMIT {NEAR_ROWS}", room.id, folded)
    after = tables.all(f"{sql} > ? ORDER BY folded LIMIT {NEAR_ROWS}", room.id, folded)
    known = dict([*before, *after])
    same_end = [name for name in known if name.rpartition("/")[2] == folded.rpartition("/")[2]]
    return list(dict.fromkeys(known[name] for name in [*same_end[:1], *names.near(folded, known)]))


def missing(tables: Tables, room: RoomRow, key: str) -> Refusal:
    """The refusal of a key that names no document: who removed it, or the keys that may have been meant."""
    sql = "SELECT key, version, updated_by FROM document WHERE room_id = ? AND document_id = ? AND removed = 1"
    gone = tables.one(sql, room.id, document_id(keys.fold(key)))
    return was_removed(room, *gone) if gone else not_found(room, key, near_keys(tables, room, key))


def identify(key: str) -> tuple[str, str]:
    """A key as it is kept, and the id of the document that it names. Refused when it can't be a key."""
    checked = keys.check(key)
    return checked, document_id(keys.fold(checked))
