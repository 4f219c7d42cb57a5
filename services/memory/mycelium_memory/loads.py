"""Reads what decisions on documents need."""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, files_pb2, moves_pb2, service_pb2, transfer_pb2, views_pb2
from mycelium_kernel import rooms_seen
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_memory import keys, lookup, views
from mycelium_memory.commands_documents import Writing
from mycelium_memory.commands_transfer import Importing, not_importing, read
from mycelium_memory.model import document_id, import_subject, subject


def for_write(tables: Tables, request: service_pb2.WriteDocumentRequest, context: Context) -> Writing:
    writing = _writing(tables, request.room, request.key, context)
    if writing.there is None and not (request.HasField("body") or request.HasField("value_json")):
        raise lookup.missing(tables, writing.room, writing.key)
    return writing


def for_own(
    tables: Tables, request: files_pb2.TakeFileRequest | moves_pb2.FollowMoveRequest, _context: Context
) -> Writing:
    """The room by its id alone: its folder is there for whoever may write into it, its board for whoever moved."""
    return _found(tables, rooms_seen.need(tables, request.room_id), request.key)


def for_import(tables: Tables, request: transfer_pb2.ImportDocumentsRequest, _context: Context) -> Importing:
    """The room by its id alone, which nobody but who imports it has; what can't be read, the decision refuses."""
    row = tables.one("SELECT room_id, name, importing FROM room WHERE room_id = ?", request.room_id)
    if row is None:
        raise not_importing(request.room_id)
    wanted = {subject(row[0], keys.fold(event.key)) for event in map(read, request.facts)}
    documents = {each: tables.entity(each, events_pb2.DocumentState).state for each in wanted}
    entity = tables.entity(import_subject(row[0]), events_pb2.DocumentsImportState)
    return Importing(RoomRow(row[0], row[1]), bool(row[2]), entity, documents)


def for_remove(tables: Tables, request: service_pb2.RemoveDocumentRequest, context: Context) -> Writing:
    writing = _writing(tables, request.room, request.key, context)
    if writing.there is None:
        raise lookup.missing(tables, writing.room, writing.key)
    return writing


def _writing(tables: Tables, room_text: str, key_text: str, context: Context) -> Writing:
    return _found(tables, rooms_seen.find_room(tables, room_text, context), key_text)


def _found(tables: Tables, room: RoomRow, key_text: str) -> Writing:
    key = keys.check(key_text)
    folded = keys.fold(key)
    entity = tables.entity(subject(room.id, folded), events_pb2.DocumentState)
    return Writing(room, key, entity, _content(tables, room.id, document_id(folded)))


def _content(tables: Tables, room_id: str, document_id: str) -> views_pb2.Content | None:
    """What the document holds now; None when it is not there."""
    sql = "SELECT content, is_value, text FROM document WHERE room_id = ? AND document_id = ? AND removed = 0"
    row = tables.one(sql, room_id, document_id)
    return views.content(*row) if row else None
