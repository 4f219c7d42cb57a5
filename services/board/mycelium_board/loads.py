"""Reads what decisions on tasks need."""

from __future__ import annotations

import json

from mycelium.board.v1 import service_pb2
from mycelium_board import lookup
from mycelium_board.commands_claims import Holding
from mycelium_board.commands_moves import Moving
from mycelium_board.model import State, Task, subject
from mycelium_board.projection import text_of
from mycelium_kernel import names, rooms_seen
from mycelium_kernel.callers import RoomRow, handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables


def for_claim(tables: Tables, request: service_pb2.ClaimTaskRequest, context: Context) -> Holding:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    holder = names.handle(request.to) if request.to else handle_of(context)
    entity = tables.entity(subject(room.id, task.document_id), State)
    return Holding(room, task, entity, rooms_seen.is_registered(tables, room, holder))


def for_holder(
    tables: Tables, request: service_pb2.RenewClaimRequest | service_pb2.ReleaseTaskRequest, context: Context
) -> Holding:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    return Holding(room, task, tables.entity(subject(room.id, task.document_id), State))


def for_move(tables: Tables, request: service_pb2.MoveTaskRequest, context: Context) -> Moving:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    row = tables.one(
        "SELECT blocked_by, fields FROM task WHERE room_id = ? AND document_id = ?", room.id, task.document_id
    )
    blocked_by, fields = row or ("", "{}")
    offered = json.loads(fields).get("options") or []
    options = tuple(map(text_of, offered)) if isinstance(offered, list) else ()
    entity = tables.entity(subject(room.id, task.document_id), State)
    return Moving(room, task, entity, blocked_by=blocked_by, options=options)


def for_expire(tables: Tables, request: service_pb2.ExpireClaimRequest, _context: Context) -> Holding:
    """The task by the claim alone: its document may be gone by now."""
    row = tables.one("SELECT room_id, name FROM room WHERE room_id = ? AND importing = 0", request.room_id)
    claim = tables.one("SELECT document_id FROM claim WHERE room_id = ? AND key = ?", request.room_id, request.key)
    if row is None or claim is None:
        raise Refusal("claim.none", f"nobody holds {request.key[:60]!r}")
    sql = f"SELECT {lookup.COLUMNS} FROM task WHERE room_id = ? AND document_id = ?"  # noqa: S608 - fixed text
    found = tables.one(sql, request.room_id, claim[0])
    task = Task(*found) if found else Task(claim[0], request.key, "", "", "")
    return Holding(RoomRow(*row), task, tables.entity(subject(request.room_id, claim[0]), State))
