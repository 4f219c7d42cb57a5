"""Reads a whole room, page by page, for a bundle."""

from __future__ import annotations

from mycelium.rooms.v1 import transfer_pb2
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import lookup, views
from mycelium_rooms.commands_portable import packed
from mycelium_rooms.model import handle_of

FACTS, FACTS_MOST, STEP = 500, 5_000, 50


def export_room(
    tables: Tables, request: transfer_pb2.ExportRoomRequest, context: Context
) -> transfer_pb2.ExportRoomResponse:
    """Facts in the log's order; read in small steps, since one fact may be large."""
    room = lookup.find_room(tables, request.room, context)
    shown = tables.one(f"{views.ROOM} WHERE room.room_id = ?2", handle_of(context), room.id)
    members = tables.all("SELECT handle FROM member WHERE room_id = ? AND has_left = 0 ORDER BY handle", room.id)
    last = tables.one("SELECT max(sequence) FROM feed INDEXED BY feed_room WHERE room_id = ?", room.id)
    page = transfer_pb2.ExportRoomResponse(
        room=views.room(shown) if shown else None,
        members=[member[0] for member in members],
        until=min(request.until or last[0], last[0]) if last and last[0] else 0,
    )
    after, size, limit = request.after, 0, min(request.limit or FACTS, FACTS_MOST)
    while rows := tables.feed([room.id], after, page.until, STEP) if after < page.until else []:
        for row in rows:
            fact = packed(row.sequence, row.type, row.data)
            if fact is None:
                continue
            size += fact.ByteSize()
            if page.facts and (size > views.PAGE_BYTES or len(page.facts) >= limit):
                page.more = True
                return page
            page.facts.append(fact)
        after = rows[-1].sequence
    return page
