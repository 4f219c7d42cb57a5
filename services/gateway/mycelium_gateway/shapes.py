"""What the services show, as the JSON that callers get. Plain functions, since history and live events are hot.

`schemas/` describes the same shapes for the OpenAPI document; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_kernel.clock import rfc3339, to_millis

Json = dict[str, Any]

MENTION_STATES = {
    number: name.removeprefix("MENTION_STATE_").lower() for name, number in views_pb2.MentionState.items()
}
MEMBER_KINDS = {number: name.removeprefix("MEMBER_KIND_").lower() for name, number in views_pb2.MemberKind.items()}
ENGINE_KINDS = {
    number: name.removeprefix("ENGINE_KIND_").lower() for name, number in views_pb2.EngineKind.items() if number
}
PRESENCES = {number: name.removeprefix("PRESENCE_").lower() for name, number in views_pb2.Presence.items()}
DELIVERY_STATES = {
    number: name.removeprefix("DELIVERY_STATE_").lower() for name, number in views_pb2.DeliveryState.items()
}
DELIVERY_REASONS = {
    number: name.removeprefix("DELIVERY_REASON_").lower() for name, number in views_pb2.DeliveryReason.items()
}
TOLD = frozenset({"notice", "change"})  # types of messages that are the hub's, and nobody's words

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


def encode(value: object) -> bytes:
    """JSON as compact UTF-8."""
    return _ENCODER.encode(value).encode()


def moment(timestamp: Timestamp) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return rfc3339(to_millis(timestamp))


def room(view: views_pb2.Room) -> Json:
    """A room."""
    return {
        "id": view.id,
        "name": view.name,
        "title": view.title,
        "private": view.private,
        "created_by": view.created_by,
        "created_at": moment(view.created_at),
        "members": view.members,
        "last_message_at": moment(view.last_message_at) if view.HasField("last_message_at") else None,
        "folder": view.folder,
    }


def member_record(view: views_pb2.Member) -> Json:
    """What a member's fact holds."""
    return {
        "handle": view.handle,
        "kind": MEMBER_KINDS[view.kind],
        "description": view.description,
        "cwd": view.cwd,
        "adapter": view.adapter,
        "owner": view.owner,
        "team": view.team,
        "allow_from": list(view.allow_from),
        "notes": view.notes,
        "paused": view.paused,
        "created_at": moment(view.created_at),
        "updated_at": moment(view.updated_at),
    }


def member(view: views_pb2.Member) -> Json:
    """A member: its record, and what is known of it now."""
    return {
        **member_record(view),
        "name": view.name,
        "last_seen": moment(view.last_seen) if view.HasField("last_seen") else None,
        "waiting": view.waiting,
        "unread": view.unread,
        "presence": PRESENCES[view.presence],
        "presence_note": view.presence_note,
    }


def engine(view: views_pb2.Member) -> Json:
    """An engine: what its member's record says of it."""
    return {
        "handle": view.handle,
        "kind": ENGINE_KINDS.get(view.engine_kind),
        "description": view.description,
        "paused": view.paused,
        "created_at": moment(view.created_at),
        "updated_at": moment(view.updated_at),
        "last_seen": moment(view.last_seen) if view.HasField("last_seen") else None,
        "unread": view.unread,
    }


def user(view: views_pb2.User) -> Json:
    """A user."""
    return {
        "handle": view.handle,
        "name": view.name,
        "team": view.team,
        "created_at": moment(view.created_at),
        "updated_at": moment(view.updated_at),
        "agents": [{"room": agent.room, "handle": agent.handle} for agent in view.agents],
    }


def mention(view: views_pb2.Mention) -> Json:
    """One mention and what became of it."""
    return {
        "handle": view.handle,
        "state": MENTION_STATES[view.state],
        "last_seen": moment(view.last_seen) if view.HasField("last_seen") else None,
    }


def message(view: views_pb2.Message) -> Json:
    """A message as readers see it now."""
    return {
        "id": view.id,
        "seq": view.sequence,
        "room": view.room,
        "sender_handle": view.sender_handle,
        "sender_name": view.sender_name,
        "content": view.content,
        "message_type": view.message_type,
        "thread": view.thread or None,
        "reply_to": view.reply_to or None,
        "metadata": json.loads(view.metadata_json) if view.metadata_json else {},
        "created_at": moment(view.created_at),
        "edited_at": moment(view.edited_at) if view.HasField("edited_at") else None,
        "mentions": [mention(item) for item in view.mentions],
        "status": view.status,
        "expires_at": moment(view.expires_at) if view.HasField("expires_at") else None,
    }


def texts(revisions: Sequence[views_pb2.Revision]) -> list[Json]:
    """The texts of a message, oldest first: the first was posted, the others are edits."""
    return [
        {"content": one.content, "edited_at" if place else "created_at": moment(one.at)}
        for place, one in enumerate(revisions)
    ]


def posted(fact: events_pb2.MessagePosted, sequence: int, room_name: str) -> Json:
    """A message as its fact has it: the same shape as `message`."""
    return {
        "id": fact.message_id,
        "seq": sequence,
        "room": room_name,
        "sender_handle": fact.sender_handle,
        "sender_name": fact.sender_name,
        "content": fact.content,
        "message_type": fact.message_type,
        "thread": fact.thread or None,
        "reply_to": fact.reply_to or None,
        "metadata": json.loads(fact.metadata_json) if fact.metadata_json else {},
        "created_at": moment(fact.created_at),
        "edited_at": None,
        "mentions": [mention(item) for item in fact.mentions],
        "status": fact.status,
        "expires_at": moment(fact.expires_at) if fact.HasField("expires_at") else None,
    }


def notice(fact: events_pb2.MessagePosted, room_name: str) -> Json:
    """What was done to a task, as `contracts/l9.json` has it. What a bundle brought may say less than the board."""
    told = json.loads(fact.metadata_json or "{}")
    return {
        "room": room_name,
        "kind": fact.kind,
        "task": str(told.get("task") or ""),
        "by": fact.sender_handle,
        "thread": str(told.get("thread") or "") or None,
        "created_at": moment(fact.created_at),
        "message_id": fact.message_id,
        "title": str(told.get("title") or ""),
        "row_kind": str(told.get("row_kind") or ""),
        "move": str(told.get("move") or ""),
        "on": str(told.get("on") or ""),
        "answer": str(told.get("answer") or ""),
        "holder": str(told.get("holder") or ""),
        "note": str(told.get("note") or ""),
    }


def amended(fact: events_pb2.MessageAmended, room_name: str) -> Json:
    """What an amendment changes."""
    return {
        "id": fact.message_id,
        "room": room_name,
        "content": fact.content,
        "edited_at": moment(fact.amended_at),
        "mentions": [mention(item) for item in fact.mentions],
    }


def ping(fact: events_pb2.MessagePosted, room_name: str) -> Json:
    """That a thread has a new message."""
    return {
        "room": room_name,
        "thread": fact.thread,
        "sender_handle": fact.sender_handle,
        "sender_name": fact.sender_name,
        "message_id": fact.message_id,
        "created_at": moment(fact.created_at),
    }


def event_status(fact: events_pb2.EventStatusSet, room_name: str) -> Json:
    """What becomes of an event; `set_by` is empty when its time was over."""
    return {
        "room": room_name,
        "id": fact.message_id,
        "status": fact.status,
        "set_by": fact.set_by,
        "set_at": moment(fact.set_at),
    }


def receipt(view: views_pb2.Receipt) -> Json:
    """What became of one mention: what stands in its way, or else how far its delivery has come."""
    ended = moment(view.ended_at) if view.HasField("ended_at") else None
    return {
        "handle": view.handle,
        "state": MENTION_STATES[view.mention] if view.mention else DELIVERY_STATES[view.state],
        "deliveries": view.attempts,
        "session": view.session or None,
        "delivered_at": moment(view.delivered_at) if view.HasField("delivered_at") else None,
        "acknowledged_at": ended,
    }


def page(items: list[Json], next_cursor: str = "") -> Json:
    """A list as every address answers it."""
    return {"items": items, "next": next_cursor or None}
