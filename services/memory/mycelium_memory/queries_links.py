"""Reads of links: those of a document and to it, a room's graph, a text with what it embeds.

What is written in a document was found when it was written; where it leads is decided here, from what is there now.
So a target that is removed, comes back or is renamed shows at once. A link to another room leads nowhere, and nothing
is looked up for it: the answer is the same whether there is such a room or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from mycelium.memory.v1 import links_pb2, views_pb2
from mycelium_kernel import limits, rooms_seen
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.service import Context
from mycelium_kernel.tables import PAGE_BYTES, Tables
from mycelium_memory import keys, linking, lookup, sections, views
from mycelium_memory.linking import Resolved
from mycelium_memory.model import document_id
from mycelium_memory.sections import Section

BACKLINKS, BACKLINKS_MOST = 500, 5_000
NODES, NODES_MOST = 500, 5_000
LINKS_PER_PAGE = 500  # resolved for a page of the graph, but for those of its first document
STATES = {
    "ok": links_pb2.LINK_STATE_OK,
    "broken": links_pb2.LINK_STATE_BROKEN,
    "no_section": links_pb2.LINK_STATE_NO_SECTION,
    "not_expandable": links_pb2.LINK_STATE_NOT_EXPANDABLE,
    "other_room": links_pb2.LINK_STATE_OTHER_ROOM,
    "too_large": links_pb2.LINK_STATE_TOO_LARGE,
}
HERE = "WHERE room_id = ?1 AND document_id = ?2 AND removed = 0"
# Of rows of `link`: the document that it would rather lead to is not there.
LEADS = """NOT EXISTS (SELECT 1 FROM document AS one INDEXED BY document_listed
  WHERE one.room_id = ?1 AND one.folded = link.rather AND one.removed = 0)"""


class Stored:
    """A document of a room as links see it. No more of it is read than is asked for."""

    def __init__(self, reader: Reader, document_id: str, key: str) -> None:
        self._reader = reader
        self._place = reader.room.id, document_id
        self.key = key

    @property
    def body(self) -> str:
        """Its text, or its value as JSON."""
        return str(self._read("text"))

    @property
    def expandable(self) -> bool:
        """Whether others may embed it."""
        return self._content.expandable

    def section(self, name: str) -> Section | None:
        """The section of that name; a value has none."""
        return sections.named(self._sections, name)

    @cached_property
    def _sections(self) -> dict[str, Section]:
        headings = views.headings(self._content)
        return sections.by_slug(sections.parted(self.body, headings)) if headings else {}

    @cached_property
    def _content(self) -> views_pb2.Content:
        return views_pb2.Content.FromString(self._read("content"))

    def _read(self, column: str) -> Any:
        row = self._reader.tables.one(f"SELECT {column} FROM document {HERE}", *self._place)  # noqa: S608 - a name
        assert row, "the tables don't change while a query runs"
        return row[0]


class Reader:
    """Finds documents of a room for the links of one answer, each once."""

    def __init__(self, tables: Tables, room: RoomRow) -> None:
        self.tables, self.room = tables, room
        self._found: dict[str, Stored | None] = {}

    def lookup(self, key: str) -> Stored | None:
        """The document of a stored key."""
        if key not in self._found:
            identifier = document_id(keys.fold(key))
            row = self.tables.one(f"SELECT key FROM document {HERE}", self.room.id, identifier)  # noqa: S608 - fixed
            self._found[key] = Stored(self, identifier, row[0]) if row else None
        return self._found[key]

    def resolve(self, written: Iterable[views_pb2.Link], own: str) -> list[links_pb2.ResolvedLink]:
        """What links of the document `own` lead to."""
        written = list(written)
        found = linking.resolve(map(views.link, written), self.lookup, own)
        return [self.shown(own, link, one) for link, one in zip(written, found, strict=True)]

    def shown(self, own: str, link: views_pb2.Link, resolved: Resolved) -> links_pb2.ResolvedLink:
        """One of them, with the key as the document it leads to has it."""
        there = self.lookup(resolved.key) if resolved.key and not link.room else None
        key = there.key if there else resolved.key
        return links_pb2.ResolvedLink(source=own, link=link, key=key, state=STATES[resolved.state])


def get_links(tables: Tables, request: links_pb2.GetLinksRequest, context: Context) -> links_pb2.GetLinksResponse:
    """Of a document that is not there, only what links to it. Refused when nothing does."""
    room = rooms_seen.find_room(tables, request.room, context)
    limit = limits.rows(request.limit, BACKLINKS, BACKLINKS_MOST)
    key, identifier = lookup.identify(request.key)
    reader = Reader(tables, room)
    row = tables.one(f"SELECT key, content FROM document {HERE}", room.id, identifier)  # noqa: S608 - fixed text
    page = links_pb2.GetLinksResponse(key=row[0] if row else key, exists=row is not None)
    _add_backlinks(page, reader, request.cursor, limit)
    if row:
        page.links.extend(reader.resolve(views_pb2.Content.FromString(row[1]).links, page.key))
    elif not page.backlinks and not page.next:
        raise lookup.missing(tables, room, key)
    return page


def _add_backlinks(page: links_pb2.GetLinksResponse, reader: Reader, cursor: str, limit: int) -> None:
    """The cursor is the place of the last one: the key that it is in, folded, and its number there."""
    folded = keys.fold(page.key)
    number, _, source = cursor.partition(" ")
    after = (source, int(number)) if number.isdecimal() and len(number) < 19 else ("", 0)
    sql = f"""SELECT source, number FROM link WHERE room_id = ?1 AND target = ?2 AND (source, number) > (?3, ?4)
      AND {LEADS} ORDER BY source, number LIMIT ?5"""  # noqa: S608 - fixed text
    rows = reader.tables.all(sql, reader.room.id, folded, *after, limit + 1)
    key, content, before, place, size = "", views_pb2.Content(), "", "", 0
    for source, number in rows[:limit]:
        if size > PAGE_BYTES:
            break
        if source != before:
            key, content = _content(reader, source)
            before = source
        (link,) = reader.resolve([content.links[number]], key)
        place, size = f"{number} {source}", size + link.ByteSize()
        if keys.fold(link.key) == folded:  # else neither of the two is there that it may mean, and it means the other
            page.backlinks.append(link)
    more = rows and place != f"{rows[-1][1]} {rows[-1][0]}"
    page.next = place if more else ""


def _content(reader: Reader, folded: str) -> tuple[str, views_pb2.Content]:
    sql = f"SELECT key, content FROM document {HERE}"  # noqa: S608 - fixed text
    row = reader.tables.one(sql, reader.room.id, document_id(folded))
    assert row, "the links of a document go with it"
    return row[0], views_pb2.Content.FromString(row[1])


def get_graph(tables: Tables, request: links_pb2.GetGraphRequest, context: Context) -> links_pb2.GetGraphResponse:
    """In pages of documents by key; the cursor is the last key, folded."""
    room = rooms_seen.find_room(tables, request.room, context)
    limit = limits.rows(request.limit, NODES, NODES_MOST)
    sql = f"""SELECT key, content, version, folded, EXISTS (SELECT 1 FROM link
        WHERE link.room_id = ?1 AND link.target = document.folded AND {LEADS})
      FROM document INDEXED BY document_listed WHERE room_id = ?1 AND removed = 0 AND folded > ?2
      ORDER BY folded"""  # noqa: S608 - fixed text
    page, reader, last, size = links_pb2.GetGraphResponse(), Reader(tables, room), "", 0
    for key, content, version, folded, is_linked in tables.iterate(sql, room.id, request.cursor):
        written = views_pb2.Content.FromString(content).links
        if not _fits(page, len(written), size, limit):
            page.next = last
            break
        links = reader.resolve(written, key)
        _add_node(page, links_pb2.Node(key=key, version=version, orphan=not is_linked), links, only=request.problems)
        last, size = folded, size + len(key) + sum(link.ByteSize() for link in links)
    return page


def _fits(page: links_pb2.GetGraphResponse, links: int, size: int, limit: int) -> bool:
    """Whether one more document goes on a page; the first always does."""
    full = page.documents >= limit or size > PAGE_BYTES
    return not page.documents or not (full or page.links + links > LINKS_PER_PAGE)


def _add_node(
    page: links_pb2.GetGraphResponse, node: links_pb2.Node, links: list[links_pb2.ResolvedLink], *, only: bool
) -> None:
    page.documents += 1
    page.links += len(links)
    if node.orphan or not only:
        page.nodes.append(node)
    page.edges.extend(link for link in links if not only or link.state != links_pb2.LINK_STATE_OK)


def expand_document(
    tables: Tables, request: links_pb2.ExpandDocumentRequest, context: Context
) -> links_pb2.ExpandDocumentResponse:
    """The document with what it embeds, as both are now."""
    room = rooms_seen.find_room(tables, request.room, context)
    key, identifier = lookup.identify(request.key)
    row = tables.one(f"{views.DOCUMENT} {HERE}", room.id, identifier)
    if row is None:
        raise lookup.missing(tables, room, key)
    document, reader = views.document(row, room), Reader(tables, room)
    written = {(link.start, link.end): link for link in document.content.links}
    found = map(views.link, document.content.links)
    expanded = linking.expand(document.content.body, found, reader.lookup, document.key)
    document.content.body = expanded.text
    left = (reader.shown(document.key, written[one.link.start, one.link.end], one) for one in expanded.problems)
    return links_pb2.ExpandDocumentResponse(document=document, unexpanded=left)
