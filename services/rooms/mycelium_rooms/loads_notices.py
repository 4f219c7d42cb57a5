"""Reads what decisions on notices need: who of those that they are for is there."""

from __future__ import annotations

from mycelium.rooms.v1 import notices_pb2
from mycelium_kernel import names
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import addressees, lookup
from mycelium_rooms.commands_messages import Standing
from mycelium_rooms.commands_notices import Recipient, Telling
from mycelium_rooms.model import RoomRow


def for_post(tables: Tables, request: notices_pb2.PostNoticeRequest, _context: Context) -> Telling:
    """The room by its id alone: what happened in it is told whoever did it."""
    sql = "SELECT room_id, name, private, created_by FROM room WHERE room_id = ? AND importing = 0"
    row = tables.one(sql, request.room_id)
    if row is None:
        raise Refusal("room.not_found", f"there is no room {request.room_id[:36]!r}")
    room = RoomRow(row[0], row[1], bool(row[2]), row[3])
    sender = names.handle(request.sender_handle) if request.sender_handle else ""
    found: dict[str, Recipient] = {}
    for delivery in request.deliveries:
        handle = names.handle(delivery.handle)
        if addressees.standing(tables, room, handle) is Standing.PRESENT:
            engine = addressees.engine_of(tables, room, handle)
            found.setdefault(handle, Recipient(handle, delivery.reason, engine))
    by_engine = bool(sender) and addressees.is_engine(tables, room, sender)
    return Telling(room, lookup.user_name(tables, sender), tuple(found.values()), by_engine)
