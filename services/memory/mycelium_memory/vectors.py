"""The vectors of documents' sections, and the questions put to them. Two stores have this face, and one suite of tests.

`vectors_edge` keeps them on this machine, `vectors_server` on a Qdrant server. Everything here can be made again from
the tables, so a store may lose what it has, but says so: `Opened` tells what was found, `documents` what is there now.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mycelium_memory.embedding import Vector


@dataclass(frozen=True)
class Passage:
    """A part of a document with its vector. Several may belong to one section, when it is long."""

    section: str
    vector: Vector


@dataclass(frozen=True)
class Entry:
    """A version of a document as it is to be found: it takes the place of all that was there of the document."""

    room_id: str
    document: str  # its key: what a prefix is compared with
    sequence: int  # of the version's fact; an older one never replaces a newer one
    passages: tuple[Passage, ...]
    tags: tuple[str, ...] = ()
    author: str = ""
    time_ms: int = 0


@dataclass(frozen=True)
class Within:
    """Where to look. `rooms` are the only ones that are looked at, none of them finds nothing; the rest narrows.

    `prefix` is compared character by character, so that of a folder ends with `/`; of `tags`, a document has all;
    `since_ms` is in, `until_ms` out.
    """

    rooms: tuple[str, ...]
    prefix: str = ""
    tags: tuple[str, ...] = ()
    author: str = ""
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True)
class Near:
    """A passage that was found, the nearest first; `score` is the cosine."""

    room_id: str
    document: str
    section: str
    sequence: int
    score: float


@dataclass(frozen=True)
class Indexed:
    """A document that has vectors here, and of which version."""

    room_id: str
    document: str
    sequence: int


class Found(Enum):
    """What was there when a store was opened."""

    NOTHING = "nothing"
    KEPT = "kept"
    BROKEN = "broken"  # and is gone; an empty one has taken its place


@dataclass(frozen=True)
class Opened:
    """What was found at an opening; `times` counts them, so that a caller sees that there has been another one."""

    found: Found
    why: str
    times: int


class Vectors(Protocol):
    """The vectors of one model. Every call may raise `child.Away` (try again) or `child.Failed` (it was refused)."""

    @property
    def opened(self) -> Opened | None:
        """The last opening; None before the first, and after what ended it."""
        ...

    async def open(self) -> Opened:
        """Get ready, making an empty store where there is none, or none that can be read."""
        ...

    async def put(self, entries: Sequence[Entry]) -> None:
        """Have these versions found from now on, and nothing else of their documents."""
        ...

    async def delete(self, room_id: str, document: str, sequence: int) -> None:
        """Drop what is there of a document up to that version."""
        ...

    async def delete_room(self, room_id: str) -> None:
        """Drop everything of a room."""
        ...

    async def search(self, vector: Vector, within: Within, most: int) -> list[Near]:
        """The passages nearest to a vector. Several of them may be of one section."""
        ...

    async def count(self, rooms: Sequence[str]) -> int:
        """How many passages these rooms have, exactly."""
        ...

    def documents(self) -> AsyncIterator[list[Indexed]]:
        """Everything that is there, page by page; a document may come in two pages."""
        ...

    async def close(self) -> None:
        """Let go of it. What it holds stays."""
        ...


class Store(Protocol):
    """Where vectors are kept: one `Vectors` a model (its stamp), one of which is complete and in use."""

    async def current(self) -> str:
        """The stamp of the model whose vectors are complete; empty when none are."""
        ...

    async def switch(self, stamp: str) -> None:
        """From now on that one is current; every other is dropped. No other may be open."""
        ...

    def vectors(self, stamp: str, dimensions: int) -> Vectors:
        """Those of a model, not opened yet."""
        ...


def point(room_id: str, document: str, number: int) -> str:
    """The id of a document's passage: the same in every store, so that a repeated write changes nothing."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{room_id}\0{document}\0{number}"))


def payload(entry: Entry, passage: Passage) -> dict[str, object]:
    """What is stored beside a vector; `room`, `document`, `tags`, `author`, `time` and `sequence` can be asked for."""
    return {
        "room": entry.room_id,
        "document": entry.document,
        "section": passage.section,
        "sequence": entry.sequence,
        "tags": list(entry.tags),
        "author": entry.author,
        "time": entry.time_ms,
    }
