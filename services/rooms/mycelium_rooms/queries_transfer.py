"""Reads a whole room, page by page, for a bundle."""

from __future__ import annotations

from mycelium.rooms.v1 import transfer_pb2
from mycelium_kernel.callers import handle_of
from mycelium_kernel.service import Context
from mycelium_kernel.tables import PAGE_BYTES, Tables
from mycelium_kernel.tail import Page, Part
from mycelium_rooms import lookup, views
from mycelium_rooms.commands_portable import filters, packed

FACTS, FACTS_MOST = 500, 5_000


def export_part(tables: Tables, request: transfer_pb2.ExportRoomRequest, context: Context) -> Part:
    """Of the log, not of the feed, which does not go back to a room's beginning."""
    room = lookup.find_room(tables, request.room, context)
    return Part(filters(room), request.after, min(request.limit or FACTS, FACTS_MOST))


def export_room(
    tables: Tables, request: transfer_pb2.ExportRoomRequest, context: Context, page: Page
) -> transfer_pb2.ExportRoomResponse:
    """Facts in the log's order."""
    room = lookup.find_room(tables, request.room, context)
    shown = tables.one(f"{views.ROOM} WHERE room.room_id = ?2", handle_of(context), room.id)
    members = tables.all("SELECT handle FROM member WHERE room_id = ? AND has_left = 0 ORDER BY handle", room.id)
    answer = transfer_pb2.ExportRoomResponse(
        room=views.room(shown) if shown else None,
        members=[member[0] for member in members],
        until=min(request.until or page.last, page.last),
    )
    size = 0
    for raw in page.facts:
        fact = packed(raw.sequence, raw.type, raw.data) if raw.sequence <= answer.until else None
        if fact is None:
            continue
        size += fact.ByteSize()
        if answer.facts and size > PAGE_BYTES:
            break
        answer.facts.append(fact)
    answer.more = bool(answer.facts) and answer.facts[-1].sequence < answer.until
    return answer
