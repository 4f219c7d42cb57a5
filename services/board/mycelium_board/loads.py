"""Reads what decisions on tasks need."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta

from mycelium.board.v1 import service_pb2
from mycelium_board import lookup, options, readiness
from mycelium_board.commands_claims import Holding
from mycelium_board.commands_edits import LONG_AGO, Concern, Edited, Freed
from mycelium_board.commands_moves import Moving
from mycelium_board.model import State, Task, subject
from mycelium_kernel import names, rooms_seen
from mycelium_kernel.callers import handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables


def for_claim(tables: Tables, request: service_pb2.ClaimTaskRequest, context: Context) -> Holding:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    holder = names.handle(request.to) if request.to else handle_of(context)
    entity = tables.entity(subject(room.id, task.document_id), State)
    graph = readiness.Graph(tables, room.id)
    waits_for = graph.waiting(task)[0] if graph.needed(task) else ()
    return Holding(room, task, entity, rooms_seen.is_registered(tables, room, holder), waits_for)


def for_gated_claim(tables: Tables, request: service_pb2.ClaimTaskRequest, context: Context) -> Holding:
    """The same where nobody may claim what waits."""
    return dataclasses.replace(for_claim(tables, request, context), is_gated=True)


def for_holder(
    tables: Tables, request: service_pb2.RenewClaimRequest | service_pb2.ReleaseTaskRequest, context: Context
) -> Holding:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    return Holding(room, task, tables.entity(subject(room.id, task.document_id), State))


def for_move(tables: Tables, request: service_pb2.MoveTaskRequest, context: Context) -> Moving:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    row = tables.one("SELECT fields FROM task WHERE room_id = ? AND document_id = ?", room.id, task.document_id)
    fields = row[0] if row else ""
    return Moving(
        room,
        task,
        tables.entity(subject(room.id, task.document_id), State),
        options=tuple(options.of_json(fields)),
        is_promoted='"promoted"' in fields and "promoted" in json.loads(fields),
    )


def for_expire(tables: Tables, request: service_pb2.ExpireClaimRequest, _context: Context) -> Holding:
    """The task by the claim alone: its document may be gone by now."""
    room = rooms_seen.by_id(tables, request.room_id)
    claim = tables.one("SELECT document_id FROM claim WHERE room_id = ? AND key = ?", request.room_id, request.key)
    if room is None or claim is None:
        raise Refusal("claim.none", f"nobody holds {request.key[:60]!r}")
    task = lookup.by_document(tables, room.id, claim[0]) or Task(claim[0], request.key, "", "", "")
    return Holding(room, task, tables.entity(subject(room.id, claim[0]), State))


def for_edit(tables: Tables, request: service_pb2.RecordEditRequest, _context: Context) -> Edited | None:
    """None when it was told before, or the room is gone."""
    place = request.room_id, request.document_id
    room = rooms_seen.by_id(tables, request.room_id)
    sql = """SELECT key, thread, title, status, kind, assignee, blocked_by, by_handle, at FROM edit
      WHERE room_id = ? AND document_id = ? AND sequence = ? AND move = ?"""
    row = tables.one(sql, *place, request.edit, request.move)
    if room is None or row is None:
        return None
    now = lookup.by_document(tables, *place)
    return Edited(
        room,
        Task(request.document_id, *row[:7]),
        tables.entity(subject(*place), State),
        by=row[7],
        at=_moment(row[8]),
        is_over=now is None or now.is_closed,
    )


def for_unblock(tables: Tables, request: service_pb2.UnblockTaskRequest, context: Context) -> Freed | None:
    """None when there is no such task."""
    place = request.room_id, request.document_id
    room, task = rooms_seen.by_id(tables, request.room_id), lookup.by_document(tables, *place)
    row = tables.one("SELECT freed_by FROM task WHERE room_id = ? AND document_id = ?", *place)
    if room is None or task is None or row is None:
        return None
    why = readiness.why_not_ready(tables, room.id, task, context.now)
    entity = tables.entity(subject(*place), State)
    is_free = why.reason in {readiness.READY, readiness.HELD}
    is_gone = lookup.by_document(tables, room.id, lookup.document_of(request.cause)) is None
    return Freed(room, task, entity, is_free=is_free, freed_by=row[0], is_gone=is_gone)


def for_concern(tables: Tables, request: service_pb2.ExpireConcernRequest, _context: Context) -> Concern | None:
    """None when there is no such task."""
    place = request.room_id, request.document_id
    room, task = rooms_seen.by_id(tables, request.room_id), lookup.by_document(tables, *place)
    row = tables.one("SELECT touched_at FROM task WHERE room_id = ? AND document_id = ?", *place)
    if room is None or task is None or row is None:
        return None
    return Concern(room, task, tables.entity(subject(*place), State), touched_at=_moment(row[0]))


def _moment(millis: int) -> datetime:
    return LONG_AGO + timedelta(milliseconds=millis)
