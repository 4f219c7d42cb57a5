"""Reads of documents: one as it is or was, a room's list, the versions of one."""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, service_pb2
from mycelium_kernel import clock, limits, names, rooms_seen, times
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, PAGE_BYTES, Tables
from mycelium_kernel.tail import Page, Part
from mycelium_memory import document_file, keys, lookup, views
from mycelium_memory.commands_documents import written
from mycelium_memory.model import subject

DOCUMENTS, DOCUMENTS_MOST = 500, 5_000
VERSIONS, VERSIONS_MOST = 100, 1_000
WORK = ("work", "decisions", "status", "failed")  # where documents are tasks too
LAST = "\U0010ffff"  # no key goes on with it: it is no character
OF = "WHERE room_id = ?1 AND document_id = ?2"
# The version of a document that there was at the moment ?3.
STANDING = f"SELECT version, sequence, removed FROM version INDEXED BY version_time {OF} AND at <= ?3"  # noqa: S608
STANDING_LAST = f"{STANDING} ORDER BY at DESC, version DESC LIMIT 1"


def get_document(
    tables: Tables, request: service_pb2.GetDocumentRequest, context: Context
) -> service_pb2.GetDocumentResponse:
    room = rooms_seen.find_room(tables, request.room, context)
    key, document_id = lookup.identify(request.key)
    row = tables.one(f"{views.DOCUMENT} WHERE room_id = ? AND document_id = ? AND removed = 0", room.id, document_id)
    if row is None:
        raise lookup.missing(tables, room, key)
    document = views.document(row, room)
    return service_pb2.GetDocumentResponse(
        document=document, file=document_file.text(document) if request.as_file else ""
    )


def version_part(tables: Tables, request: service_pb2.GetVersionRequest, context: Context) -> Part:
    """Where in the log a version stands."""
    room = rooms_seen.find_room(tables, request.room, context)
    key, document_id = lookup.identify(request.key)
    row = _version(tables, room, document_id, request, context)
    if row is None or row[2]:
        raise _no_version(tables, room, key, request, row)
    return Part((subject(room.id, keys.fold(key)),), row[1] - 1, 1)


def get_version(
    tables: Tables, request: service_pb2.GetVersionRequest, context: Context, page: Page
) -> service_pb2.GetVersionResponse:
    room = rooms_seen.find_room(tables, request.room, context)
    if not page.facts:  # erased since
        raise lookup.missing(tables, room, request.key)
    fact = page.facts[0]
    event = events_pb2.DocumentWritten.FromString(fact.data)
    document = written(event, fact.sequence)
    return service_pb2.GetVersionResponse(
        document=document, file=document_file.text(document) if request.as_file else ""
    )


def _version(
    tables: Tables, room: RoomRow, document_id: str, request: service_pb2.GetVersionRequest, context: Context
) -> tuple[int, int, int] | None:
    if request.WhichOneof("which") == "at":
        at = _moment(request.at, request.zone, context)
        row = tables.one(STANDING_LAST, room.id, document_id, at)
    else:
        wanted = min(request.version, LAST_SEQUENCE)
        row = tables.one(
            f"SELECT version, sequence, removed FROM version {OF} AND version = ?3",  # noqa: S608 - fixed text
            room.id, document_id, wanted,
        )  # fmt: skip
    return (int(row[0]), int(row[1]), int(row[2])) if row else None


def _no_version(
    tables: Tables,
    room: RoomRow,
    key: str,
    request: service_pb2.GetVersionRequest,
    row: tuple[int, int, int] | None,
) -> Refusal:
    if tables.one(f"SELECT 1 FROM version {OF} LIMIT 1", room.id, lookup.identify(key)[1]) is None:  # noqa: S608
        return lookup.missing(tables, room, key)
    by_time = request.WhichOneof("which") == "at"
    asked = f"at {request.at}" if by_time else f"at version {request.version}"
    none = "its first version is later" if by_time else "it had no such version"
    why = f"version {row[0]} is its removal" if row else none
    return Refusal("memory.version_not_found", f"{key!r} was not there {asked}: {why}")


def _moment(text: str, zone: str, context: Context) -> int:
    return min(max(times.asked("at", text, context.now, times.zone(zone)), 0), LAST_SEQUENCE)


def list_documents(
    tables: Tables, request: service_pb2.ListDocumentsRequest, context: Context
) -> service_pb2.ListDocumentsResponse:
    """By key, in pages; the cursor is the last key, folded."""
    room = rooms_seen.find_room(tables, request.room, context)
    prefix = keys.fold(request.prefix)
    if request.at:
        return _list_at(tables, room, prefix, request, context)
    limit = limits.rows(request.limit, DOCUMENTS, DOCUMENTS_MOST)
    sql, tag = views.BRIEF if request.brief else views.DOCUMENT, request.tag.strip().casefold()
    over = ">" if request.cursor else ">="
    if tag:
        sql += f""" NATURAL JOIN (SELECT room_id, document_id, folded AS place FROM tag
          WHERE room_id = ?1 AND tag = ?4 AND folded {over} ?2 AND folded < ?3) ORDER BY place"""  # noqa: S608 - fixed text
    else:
        sql += f""" INDEXED BY document_listed WHERE room_id = ?1 AND removed = 0 AND folded {over} ?2 AND folded < ?3
          ORDER BY folded"""
    values: tuple[object, ...] = (room.id, request.cursor or prefix, prefix + LAST, *((tag,) if tag else ()))
    page, size = service_pb2.ListDocumentsResponse(), 0
    folded = ""
    for row in tables.iterate(sql, *values):
        document = views.document(row, room)
        size += document.ByteSize()
        if page.documents and (size > PAGE_BYTES or len(page.documents) >= limit):
            page.next = folded
            break
        page.documents.append(document)
        folded = row[13]
    return page


def _list_at(
    tables: Tables, room: RoomRow, prefix: str, request: service_pb2.ListDocumentsRequest, context: Context
) -> service_pb2.ListDocumentsResponse:
    """The headlines of what there was at a moment."""
    limit = limits.rows(request.limit, DOCUMENTS, DOCUMENTS_MOST)
    at = _moment(request.at, request.zone, context)
    page, over = service_pb2.ListDocumentsResponse(at=clock.from_millis(at)), ">" if request.cursor else ">="
    sql = f"""SELECT key, folded, version.version, version.sequence, version.at, version.author, version.summary,
      thread, created_by, created_at FROM document INDEXED BY document_folded
      CROSS JOIN version ON version.room_id = ?1 AND version.document_id = document.document_id AND version.version =
        (SELECT version FROM version AS one INDEXED BY version_time WHERE one.room_id = ?1
          AND one.document_id = document.document_id AND one.at <= ?4 ORDER BY one.at DESC, one.version DESC LIMIT 1)
      WHERE document.room_id = ?1 AND folded {over} ?2 AND folded < ?3 AND version.removed = 0
      ORDER BY folded LIMIT {limit + 1}"""  # noqa: S608 - a number
    rows = tables.all(sql, room.id, request.cursor or prefix, prefix + LAST, at)
    for row in rows[:limit]:
        page.documents.add(
            room_id=room.id, room=room.name, key=row[0], version=row[2], sequence=row[3],
            updated_at=clock.from_millis(row[4]), updated_by=row[5], summary=row[6], thread=row[7], created_by=row[8],
            created_at=clock.from_millis(row[9]),
        )  # fmt: skip
        page.next = row[1]
    if len(rows) <= limit:
        page.next = ""
    return page


def find_thread(
    tables: Tables, request: service_pb2.FindThreadRequest, context: Context
) -> service_pb2.FindThreadResponse:
    """By the whole key; else, what is filed as work, by what follows its prefix, if only one is called so.

    The short id of a thread that a document has names it, too.
    """
    room = rooms_seen.find_room(tables, request.room, context)
    key = keys.check(request.key)
    found = _threads(tables, room, key) or [
        row for group in WORK for row in _threads(tables, room, f"{group}/{request.key}")
    ]
    if not found and names.is_short_id(key.lower()):
        sql = "SELECT thread, key FROM document WHERE room_id = ? AND substr(thread, -8) = ? AND removed = 0"
        found = tables.all(sql, room.id, key.lower())
    if not found:
        raise lookup.missing(tables, room, key)
    if len(found) > 1:
        raise Refusal("id.ambiguous", f"{key!r} fits several: use the whole key", candidates=[row[1] for row in found])
    return service_pb2.FindThreadResponse(thread=found[0][0], key=found[0][1])


def _threads(tables: Tables, room: RoomRow, key: str) -> list[tuple[str, str]]:
    try:
        _, document_id = lookup.identify(key)
    except Refusal:  # no key under that prefix
        return []
    row = tables.one(
        "SELECT thread, key FROM document WHERE room_id = ? AND document_id = ? AND removed = 0", room.id, document_id
    )
    return [(row[0], row[1])] if row else []


def list_versions(
    tables: Tables, request: service_pb2.ListVersionsRequest, context: Context
) -> service_pb2.ListVersionsResponse:
    room = rooms_seen.find_room(tables, request.room, context)
    limit = limits.rows(request.limit, VERSIONS, VERSIONS_MOST)
    key, document_id = lookup.identify(request.key)
    named = tables.one(f"SELECT key, thread FROM document {OF}", room.id, document_id)  # noqa: S608 - fixed text
    if named is None:
        raise lookup.missing(tables, room, key)
    before = min(request.before or LAST_SEQUENCE, LAST_SEQUENCE)
    sql = f"{views.VERSION} {OF} AND version < ?3 ORDER BY version DESC LIMIT {limit + 1}"
    rows = tables.all(sql, room.id, document_id, before)
    following = rows[limit - 1][0] if len(rows) > limit else 0
    versions = map(views.version, rows[:limit])
    return service_pb2.ListVersionsResponse(versions=versions, next=following, key=named[0], thread=named[1])
