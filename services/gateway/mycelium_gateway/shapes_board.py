"""Rows of the board as the JSON that callers get."""

from __future__ import annotations

import json

from mycelium.board.v1 import views_pb2
from mycelium_gateway.shapes import Json, moment


def row(view: views_pb2.Row) -> Json:
    """A row of the board."""
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
    }
