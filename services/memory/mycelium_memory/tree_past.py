"""What the log tells of a document's past: whether a file's text is a version that is stored already."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium.memory.v1 import events_pb2, views_pb2
from mycelium_kernel import events, headers
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tables import Tables
from mycelium_memory import commands_content, document_file, frontmatter
from mycelium_memory.commands_documents import written

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

MOST = 50  # versions of one length and beginning that are compared, the newest first
LAST = 2**63 - 1  # that a table can hold


@dataclass(frozen=True)
class Headline:
    """A document as the tables have it; version 0 when there never was one."""

    key: str = ""
    version: int = 0
    there: bool = False
    thread: str = ""


@dataclass(frozen=True)
class Past:
    """A version that a file's text is; `exact` when to the letter, as the tree itself writes it."""

    version: int
    exact: bool


def headline(runtime: Runtime, room_id: str, document_id: str) -> Headline:
    sql = "SELECT key, version, removed, thread FROM document WHERE room_id = ? AND document_id = ?"
    row = _tables(runtime).one(sql, room_id, document_id)
    return Headline(row[0], row[1], not row[2], row[3]) if row else Headline()


def removed_since(runtime: Runtime, room_id: str, document_id: str, version: int) -> bool:
    """Whether the removal of the file that held a version is a fact already, or is that version."""
    sql = """SELECT 1 FROM version WHERE room_id = ?1 AND document_id = ?2 AND removed = 1
      AND (version = ?3 OR (version > ?3 AND origin = ?4)) LIMIT 1"""
    return _tables(runtime).one(sql, room_id, document_id, version, views_pb2.ORIGIN_FILE) is not None


def is_file_since(runtime: Runtime, room_id: str, document_id: str, after: int, until: int) -> bool:
    """Whether every version after one and up to another was taken from the file."""
    sql = """SELECT 1 FROM version WHERE room_id = ? AND document_id = ? AND version > ? AND version <= ?
      AND origin != ? LIMIT 1"""
    other = _tables(runtime).one(sql, room_id, document_id, after, until, views_pb2.ORIGIN_FILE)
    return other is None


async def find(runtime: Runtime, room: RoomRow, document_id: str, after: int, text: str) -> Past | None:
    """The version after `after` that a file's text is: one that the tree wrote, or one that was taken from the file.

    However many came since: what the tree writes names its version, the others are looked up by length and beginning.
    """
    said, content = await asyncio.to_thread(_read, text)
    if after < said <= LAST and await is_version(runtime, room, document_id, said, text):
        return Past(said, exact=True)
    if content is None:
        return None
    sql = """SELECT version, sequence FROM version WHERE room_id = ? AND document_id = ? AND version > ?
      AND removed = 0 AND origin = ? AND bytes = ? AND summary = ? ORDER BY version DESC LIMIT ?"""
    size, summary = len(commands_content.text_of(content).encode()), commands_content.summary_of(content)
    asked = (room.id, document_id, after, views_pb2.ORIGIN_FILE, size, summary, MOST)
    for version, sequence in _tables(runtime).all(sql, *asked):
        event = await _event(runtime, sequence)
        if event is not None and content == event.content:
            return Past(version, exact=False)
    return None


async def is_version(runtime: Runtime, room: RoomRow, document_id: str, version: int, text: str) -> bool:
    """Whether a text is a version of a document, to the letter."""
    sql = "SELECT sequence FROM version WHERE room_id = ? AND document_id = ? AND version = ? AND removed = 0"
    row = _tables(runtime).one(sql, room.id, document_id, version)
    event = await _event(runtime, row[0]) if row else None
    return event is not None and row is not None and document_file.text(written(event, row[0])) == text


async def _event(runtime: Runtime, sequence: int) -> events_pb2.DocumentWritten | None:
    found = await runtime.connection.get(sequence)
    event = events.decode(found[0][headers.TYPE], found[1]) if found else None
    return event if isinstance(event, events_pb2.DocumentWritten) else None


def _read(text: str) -> tuple[int, views_pb2.Content | None]:
    """The version that a file's fields say, 0 for none; and what it would hold as a document, if it can be one."""
    try:
        said = frontmatter.parse(text).managed.get("version")
        return said if type(said) is int else 0, commands_content.of_file(text)
    except Refusal:
        return 0, None


def _tables(runtime: Runtime) -> Tables:
    assert runtime.tables is not None
    return runtime.tables
