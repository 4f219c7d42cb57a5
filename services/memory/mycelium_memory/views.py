"""Rows of the tables as the nouns that queries answer with."""

from __future__ import annotations

from typing import Any

from mycelium.memory.v1 import views_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import RoomRow
from mycelium_memory import links
from mycelium_memory.sections import Heading

DOCUMENT = """SELECT key, content, is_value, text, version, sequence, thread, created_by, created_at, updated_by,
  updated_at, summary, document_id, folded FROM document"""
BRIEF = DOCUMENT.replace("is_value, text,", "is_value, '',")
KINDS: dict[int, links.Kind] = {
    views_pb2.LINK_KIND_WIKI: "wiki",
    views_pb2.LINK_KIND_URL: "url",
    views_pb2.LINK_KIND_EMBED: "embed",
    views_pb2.LINK_KIND_FIELD: "field",
}
VERSION = "SELECT version, sequence, at, author, removed, summary, bytes, origin, moved_from, conflicted FROM version"


def content(rest: bytes, is_value: int, text: str) -> views_pb2.Content:
    """What a document holds, put together again."""
    whole = views_pb2.Content.FromString(rest)
    setattr(whole, "value_json" if is_value else "body", text)
    return whole


def document(row: tuple[Any, ...], room: RoomRow) -> views_pb2.Document:
    """A row of `DOCUMENT`, or of `BRIEF`."""
    return views_pb2.Document(
        room_id=room.id,
        room=room.name,
        key=row[0],
        content=content(row[1], row[2], row[3]),
        version=row[4],
        sequence=row[5],
        thread=row[6],
        created_by=row[7],
        created_at=clock.from_millis(row[8]),
        updated_by=row[9],
        updated_at=clock.from_millis(row[10]),
        summary=row[11],
    )


def version(row: tuple[Any, ...]) -> views_pb2.Version:
    """A row of `VERSION`."""
    return views_pb2.Version(
        version=row[0],
        sequence=row[1],
        updated_at=clock.from_millis(row[2]),
        updated_by=row[3],
        removed=bool(row[4]),
        summary=row[5],
        bytes=row[6],
        origin=row[7],
        moved_from=row[8],
        conflicted=bool(row[9]),
    )


def headings(content: views_pb2.Content) -> list[Heading]:
    """The headings of a text as they were found."""
    return [Heading(one.title, one.level, one.start) for one in content.headings]


def link(view: views_pb2.Link) -> links.Link:
    """A link as it was found."""
    kind = KINDS[view.kind]
    return links.Link(view.target, kind, view.section, view.text, view.type, view.room, view.start, view.end)
