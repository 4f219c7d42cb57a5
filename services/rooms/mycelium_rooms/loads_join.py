"""Reads what decisions on join codes need."""

from __future__ import annotations

from mycelium.rooms.v1 import join_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import loads_rooms, lookup
from mycelium_rooms.commands_join import Coming
from mycelium_rooms.model import ROOMS, RoomRow

JOINING = """SELECT room_id, handle, room.name, room.private, room.created_by
  FROM joining JOIN room USING (room_id)"""
BY_CODE = f"{JOINING} WHERE code = ?"
BY_MEMBER = f"{JOINING} WHERE room_id = ? AND handle = ?"


def for_make(tables: Tables, request: join_pb2.MakeJoinCodeRequest, context: Context) -> Coming:
    return _coming(tables, lookup.find_room(tables, request.room, context), names.handle(request.handle))


def for_use(tables: Tables, request: join_pb2.UseJoinCodeRequest, _context: Context) -> Coming | None:
    """Whoever has the code need not see the room. A code whose member has left is not found."""
    return _found(tables, tables.one(BY_CODE, request.code_digest))


def for_register(tables: Tables, request: join_pb2.RegisterJoinedRequest, _context: Context) -> Coming | None:
    return _found(tables, tables.one(BY_MEMBER, request.room_id, request.handle))


def _found(tables: Tables, row: tuple[str, str, str, int, str] | None) -> Coming | None:
    return _coming(tables, RoomRow(row[0], row[2], bool(row[3]), row[4]), row[1]) if row else None


def _coming(tables: Tables, room: RoomRow, handle: str) -> Coming:
    subject = subjects.fact(ROOMS, room.id, "join", handle)
    return Coming(loads_rooms.membership(tables, room, handle), handle, tables.entity(subject, join_pb2.JoinState))
