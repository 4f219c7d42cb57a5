"""What the memory service shows, as the JSON that callers get; `shapes.py` does the same for rooms."""

from __future__ import annotations

import json
from typing import Any

from mycelium.memory.v1 import changes_pb2, files_pb2, service_pb2, subscriptions_pb2, views_pb2
from mycelium_gateway.shapes import Json, moment, page

ORIGINS = {number: name.removeprefix("ORIGIN_").lower() for name, number in views_pb2.Origin.items()}


def memory(view: views_pb2.Document) -> Json:
    """A document."""
    content = view.content
    return {
        "key": view.key,
        "value": value(content),
        "meta": json.loads(content.fields_json) if content.fields_json else {},
        "tags": list(content.tags),
        "version": view.version,
        "created_by": view.created_by,
        "updated_by": view.updated_by,
        "created_at": moment(view.created_at),
        "updated_at": moment(view.updated_at),
        "thread": view.thread,
        "expandable": content.expandable,
        "embed": not content.unsearched,
    }


def value(content: views_pb2.Content) -> Any:
    """The text, or the value that was written in its place."""
    return json.loads(content.value_json) if content.value_json else content.body


def written(view: views_pb2.Document) -> Json:
    """A document as it was just written."""
    replaced = None
    if view.HasField("replaced"):
        before = view.replaced
        replaced = {
            "version": before.version,
            "updated_by": before.updated_by,
            "updated_at": moment(before.updated_at),
        }
    return {**memory(view), "replaced": replaced}


def listed(reply: service_pb2.ListDocumentsResponse, *, brief: bool) -> Json:
    """A page of documents."""
    items = [
        {**memory(view), "summary": view.summary, **({"value": None} if brief else {})} for view in reply.documents
    ]
    return {**page(items, reply.next), "at": moment(reply.at) if reply.HasField("at") else None}


def problems(reply: files_pb2.ListProblemsResponse) -> Json:
    """What is wrong in a room's folder."""
    return page([{"path": problem.path, "reason": problem.reason} for problem in reply.problems], "")


def change(view: changes_pb2.Change, room: str) -> Json:
    """That a document has changed: its headline, and never its text."""
    return {
        "room": room,
        "key": view.key,
        "version": view.version,
        "removed": view.removed,
        "updated_by": view.updated_by,
        "updated_at": moment(view.updated_at),
        "origin": ORIGINS[view.origin],
        "moved_from": view.moved_from or None,
    }


def subscription(view: subscriptions_pb2.Subscription) -> Json:
    """One pattern of one handle."""
    return {"handle": view.handle, "pattern": view.pattern, "created_at": moment(view.set_at)}


def versions(reply: service_pb2.ListVersionsResponse) -> Json:
    """A page of versions."""
    items = [_version(view) for view in reply.versions]
    return {**page(items, str(reply.next) if reply.next else ""), "key": reply.key, "thread": reply.thread}


def _version(view: views_pb2.Version) -> Json:
    return {
        "version": view.version,
        "updated_by": view.updated_by,
        "updated_at": moment(view.updated_at),
        "removed": view.removed,
        "summary": view.summary,
        "bytes": view.bytes,
        "origin": ORIGINS[view.origin],
        "moved_from": view.moved_from or None,
        "conflicted": view.conflicted,
    }
