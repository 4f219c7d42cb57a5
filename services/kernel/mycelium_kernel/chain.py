"""A chain of hashes per room over its facts, kept beside each service's tables: what the log held when they read it.

`mycelium-hub doctor --deep` computes the chains again from the bytes on disk. Written by the applier for every fact
that it reads, whatever its type, so its cost lies on the way of each fact: a few microseconds.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

from mycelium_kernel import events, subjects

if TYPE_CHECKING:
    from mycelium_kernel.tables import Tables
    from mycelium_kernel.tail import RawFact

SIZE = 16
START = bytes(SIZE)  # stands before the first fact of a chain
ROOMS_KEPT = 10_000  # heads that are remembered
_NUMBERS = struct.Struct("<QqI")


def link(previous: bytes, fact: RawFact) -> bytes:
    """The hash of a fact: over the one before it, then its place, time, subject, headers as they stand, and data."""
    said = "\n".join([fact.subject, *map(":".join, fact.headers.items())]).encode()
    numbers = _NUMBERS.pack(fact.sequence, fact.time, len(said))
    return blake2b(previous + numbers + said + fact.data, digest_size=SIZE).digest()


def room_of(fact: RawFact, *, is_tombstone: bool) -> str:
    """The room with which a fact is erased, and in whose chain it stands.

    A room's own creation stands on the subject of a name, which outlives it, but belongs to the room and is erased
    with it. Its tombstone stays.
    """
    room_id = subjects.room_of(fact.subject)
    if room_id != subjects.NAMES or is_tombstone:
        return room_id
    try:
        event = events.decode(fact.type, fact.data)
    except KeyError:  # a type that nobody here reads
        return room_id
    return getattr(event, "room_id", room_id)


def extend(tables: Tables, room_id: str, fact: RawFact) -> None:
    """Add a fact to the chain of its room, within the transaction that applies it."""
    heads = tables.heads
    previous = heads.get(room_id)
    if previous is None:
        row = tables.one("SELECT hash FROM chain WHERE room_id = ? ORDER BY sequence DESC LIMIT 1", room_id)
        previous = row[0] if row else START
        if len(heads) >= ROOMS_KEPT:
            heads.clear()
    heads[room_id] = following = link(previous, fact)
    tables.execute("INSERT INTO chain VALUES (?, ?, ?)", room_id, fact.sequence, following)
