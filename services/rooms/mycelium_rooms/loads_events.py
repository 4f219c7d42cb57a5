"""Reads what decisions on events need."""

from __future__ import annotations

from mycelium.rooms.v1 import states_pb2, status_pb2
from mycelium_kernel import subjects
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import lookup
from mycelium_rooms.commands_events import EventRow
from mycelium_rooms.model import ROOMS


def for_set(tables: Tables, request: status_pb2.SetEventStatusRequest, context: Context) -> EventRow:
    room = lookup.find_room(tables, request.room, context)
    found = _event(tables, room.id, lookup.find_message(tables, room, request.message))
    assert found is not None
    return found


def for_expire(tables: Tables, request: status_pb2.ExpireEventRequest, _context: Context) -> EventRow | None:
    """The service's own request, so whoever may see the room does not matter."""
    return _event(tables, request.room_id, request.message_id)


def _event(tables: Tables, room_id: str, message_id: str) -> EventRow | None:
    sql = "SELECT kind, status, expires_at FROM message WHERE room_id = ? AND message_id = ?"
    row = tables.one(sql, room_id, message_id)
    if row is None:
        return None
    subject = subjects.fact(ROOMS, room_id, "event", message_id)
    return EventRow(room_id, message_id, row[0], row[1], row[2], tables.entity(subject, states_pb2.EventState))
