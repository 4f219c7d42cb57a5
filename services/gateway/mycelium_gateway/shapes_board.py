"""Rows of the board as the JSON that callers get: tasks, runs of engines, and the members that are active."""

from __future__ import annotations

import json

from mycelium.board.v1 import views_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_pb2
from mycelium_gateway.shapes import PRESENCES, Json, moment

NONE = "-"
NO_TASK = "an active member, no task"
A_RUN = "a run of an engine, no task"
RUNNING = "running"
# Fields of such a row that it can be grouped by.
OWN = ("key", "title", "status", "kind", "reason", "created_by", "created_at", "updated_by", "updated_at")


def row(view: views_pb2.Row) -> Json:
    """A task."""
    return {
        "key": view.key,
        "thread": view.thread,
        "title": view.title,
        "status": view.status,
        "kind": view.kind,
        "assignee": view.assignee or None,
        "blocked_by": view.blocked_by or None,
        "holder": view.holder or None,
        "expires_at": moment(view.expires_at) if view.HasField("expires_at") else None,
        "meta": json.loads(view.fields_json or "{}"),
        "version": view.version,
        "created_by": view.created_by,
        "created_at": moment(view.created_at),
        "updated_by": view.updated_by,
        "updated_at": moment(view.updated_at),
        "ready": view.ready,
        "reason": view.reason,
        "waits_for": list(view.waits_for),
        "cycle": list(view.cycle),
        "cycle_more": view.cycle_more,
        "parent": view.parent or None,
        "parts": list(view.parts),
        "options": list(view.options),
        "source": {"kind": "memory", "ref": view.key},
        "group": list(view.group) or None,
    }


def active(view: rooms_pb2.Member, field: str) -> Json:
    """A member that is active, as a row: what it says it is doing. `field` is what is grouped by, or empty."""
    found = _no_document(f"members/{view.handle}", "member", view.handle, NO_TASK) | {
        "title": view.presence_note or view.description or f"@{view.handle}",
        "status": PRESENCES[view.presence],
        "kind": "agent",
        "created_by": view.handle,
        "created_at": moment(view.created_at),
        "updated_by": view.handle,
        "updated_at": moment(view.last_seen if view.HasField("last_seen") else view.updated_at),
    }
    return _grouped(found, view.handle, field)


def running(view: views_pb2.RunRow, field: str) -> Json:
    """A run of an engine that is under way, as a row: which engine, for whom, in which task, since when."""
    found = _no_document(f"runs/{view.run[-8:]}", "run", view.run, A_RUN) | {
        "thread": view.thread or None,
        "title": f"@{view.engine} answers @{view.asked_by}" + (f" in {view.task}" if view.task else ""),
        "status": RUNNING,
        "kind": view.kind,
        "meta": {
            "engine": view.engine,
            "asked_by": view.asked_by,
            "message": view.message_id,
            "task": view.task or None,
            "task_title": view.title or None,
        },
        "created_by": view.asked_by,
        "created_at": moment(view.started_at),
        "updated_by": view.engine,
        "updated_at": moment(view.started_at),
    }
    return _grouped(found, view.engine, field)


def _no_document(key: str, source: str, ref: str, reason: str) -> Json:
    """What all rows have that come from no document."""
    return {
        "key": key,
        "thread": None,
        "assignee": None,
        "blocked_by": None,
        "holder": None,
        "expires_at": None,
        "meta": {},
        "version": 0,
        "ready": False,
        "reason": reason,
        "waits_for": [],
        "cycle": [],
        "cycle_more": 0,
        "parent": None,
        "parts": [],
        "options": [],
        "source": {"kind": source, "ref": ref},
    }


def _grouped(found: Json, owner: str, field: str) -> Json:
    """The row with the value of the field that is grouped by; `owner` is whose it is."""
    fixed = {"owner": owner, "source": found["source"]["kind"], "version": "0", "ready": "false"}
    value = fixed.get(field) or (found[field] if field in OWN else found["meta"].get(field))
    return {**found, "group": [value or NONE] if field else None}
