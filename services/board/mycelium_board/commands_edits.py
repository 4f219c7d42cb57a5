"""Decisions of the board's own: what an edit of a document did, that a task waits no longer, that a concern is over.

Reactions and due times ask for them, as often as they like; each is told once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_board.commands_claims import Holding, moved
from mycelium_board.model import LAST_MOVES, latest, live, unblocked
from mycelium_kernel.service import Context, Done, Fact

CONCERN = "concern"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
CONCERN_LASTS = timedelta(days=7)
REMOVED = "removed"
DISMISSED = {"status": "dismissed"}


@dataclass(frozen=True)
class Edited(Holding):
    """A task as an edit left it, who edited it and when; `is_over`: by now nothing is left to do in it."""

    by: str = ""
    at: datetime = LONG_AGO
    is_over: bool = False


@dataclass(frozen=True)
class Freed(Holding):
    """A task that waited: whether it can be begun now, the last fact that told so (0: none), if the other is gone."""

    is_free: bool = False
    freed_by: int = 0
    is_gone: bool = False


@dataclass(frozen=True)
class Concern(Holding):
    """A task with the time when something was last done to it."""

    touched_at: datetime = LONG_AGO


def record_edit(loaded: Edited | None, request: service_pb2.RecordEditRequest, _context: Context) -> Fact | Done:
    """A claim that was there before ends with its task; one that somebody made after it was opened again stands."""
    if loaded is None:
        return Done(service_pb2.RecordEditResponse())
    lease = latest(loaded.entity)
    if lease and request.move in LAST_MOVES and (loaded.is_over or lease.token < request.edit):
        lease = None
    says_more = request.move in {views_pb2.MOVE_BLOCKED, views_pb2.MOVE_REMOVED}
    note = loaded.task.blocked_by if says_more else ""
    event = moved(loaded, request.move, loaded.by, loaded.at, lease=lease, note=note)
    event.edit = request.edit
    return Fact(event, on=loaded.entity)


def answer_edit(_event: events_pb2.TaskMoved, _sequence: int) -> service_pb2.RecordEditResponse:
    return service_pb2.RecordEditResponse(recorded=True)


def unblock_task(loaded: Freed | None, request: service_pb2.UnblockTaskRequest, context: Context) -> Fact | Done:
    """Nothing while it waits still. What was told after the other one was closed was told of that, too."""
    if loaded is None or not loaded.is_free or loaded.freed_by > request.closed:
        return Done(service_pb2.UnblockTaskResponse())
    note = REMOVED if loaded.is_gone else ""
    event = moved(loaded, views_pb2.MOVE_UNBLOCKED, request.by, context.now, lease=latest(loaded.entity), note=note)
    event.cause = request.cause
    return Fact(event, on=loaded.entity)


def answer_unblock(_event: events_pb2.TaskMoved, _sequence: int) -> service_pb2.UnblockTaskResponse:
    return service_pb2.UnblockTaskResponse(unblocked=True)


def expire_concern(loaded: Concern | None, _request: service_pb2.ExpireConcernRequest, context: Context) -> Fact | Done:
    """Nothing when somebody took it up, or did anything to it, within its time."""
    if loaded is None or loaded.task.is_closed or loaded.task.kind != CONCERN:
        return Done(service_pb2.ExpireConcernResponse())
    if context.now < loaded.touched_at + CONCERN_LASTS or live(loaded.entity, context.now):
        return Done(service_pb2.ExpireConcernResponse())
    changes = json.dumps({**DISMISSED, **unblocked(loaded.task)})
    event = moved(loaded, views_pb2.MOVE_EXPIRED, "", context.now, fields_json=changes)
    return Fact(event, on=loaded.entity)


def answer_concern(_event: events_pb2.TaskMoved, _sequence: int) -> service_pb2.ExpireConcernResponse:
    return service_pb2.ExpireConcernResponse(expired=True)
