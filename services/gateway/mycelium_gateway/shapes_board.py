"""Rows of the board as the JSON that callers get: tasks, and the members that are active."""

from __future__ import annotations

import json

from mycelium.board.v1 import views_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_pb2
from mycelium_gateway.shapes import PRESENCES, Json, moment

NONE = "-"
NO_TASK = "an active member, no task"
ITSELF = ("owner", "created_by", "updated_by")  # fields in which a member's row has its handle
OWN = ("key", "title", "status", "kind")  # others that it can be grouped by


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
    doing = PRESENCES[view.presence]
    found: Json = {
        "key": f"members/{view.handle}",
        "thread": None,
        "title": view.presence_note or view.description or f"@{view.handle}",
        "status": doing,
        "kind": "agent",
        "assignee": None,
        "blocked_by": None,
        "holder": None,
        "expires_at": None,
        "meta": {},
        "version": 0,
        "created_by": view.handle,
        "created_at": moment(view.created_at),
        "updated_by": view.handle,
        "updated_at": moment(view.last_seen if view.HasField("last_seen") else view.updated_at),
        "ready": False,
        "reason": NO_TASK,
        "waits_for": [],
        "cycle": [],
        "cycle_more": 0,
        "parent": None,
        "parts": [],
        "options": [],
        "source": {"kind": "member", "ref": view.handle},
    }
    fixed = {**dict.fromkeys(ITSELF, view.handle), "source": "member", "version": "0", "ready": "false"}
    value = fixed.get(field) or (found[field] if field in OWN else NONE)
    return {**found, "group": [value] if field else None}
