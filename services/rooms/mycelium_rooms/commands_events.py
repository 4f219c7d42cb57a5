"""Decisions on events: what their metadata says, the status they are given, the end of their time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mycelium.rooms.v1 import events_pb2, states_pb2, status_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact
from mycelium_rooms.model import EXPIRED, RESOLVED, standing_status

OPEN = "open"
STATUSES = (OPEN, "in_progress", RESOLVED)
OPEN_KINDS = frozenset({"action", "concern"})
KIND = re.compile(r"[a-z0-9_-]{1,64}")
TTL_S = 10 * 365 * 86_400
PROVENANCE = 50
REFERENCE_CHARACTERS = 1_000


@dataclass(frozen=True)
class EventFields:
    """What a post's fact says of an event; all empty for a message."""

    kind: str = ""
    status: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True)
class EventRow:
    """An event as commands see it, and the entity of its status."""

    room_id: str
    message_id: str
    kind: str
    status: str
    expires_at: int
    entity: Entity[states_pb2.EventState]


def event_fields(message_type: str, metadata: dict[str, Any], now: datetime) -> EventFields:
    """What the metadata of an event gives. Refused when it lacks a kind, or says something that can't be."""
    if message_type != "event":
        return EventFields()
    kind, status, ttl_s = metadata.get("kind"), metadata.get("status"), metadata.get("ttl_seconds")
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        kinds = "source_event, action, concern, or a kind of your own in a-z 0-9 _ -"
        raise Refusal("request.invalid", f"an event needs metadata.kind: {kinds}")
    if status is not None and status not in STATUSES:
        raise _unknown_status("metadata.status", status)
    if ttl_s is not None and not (type(ttl_s) is int and 1 <= ttl_s <= TTL_S):
        raise Refusal(
            "request.invalid", f"metadata.ttl_seconds is {ttl_s!r:.40}: use whole seconds from 1 to {TTL_S:,}"
        )
    _check_provenance(metadata.get("provenance", []))
    expires_at = now + timedelta(seconds=ttl_s) if ttl_s else None
    return EventFields(kind, status or (OPEN if kind in OPEN_KINDS else ""), expires_at)


def _check_provenance(provenance: object) -> None:
    if not isinstance(provenance, list) or len(provenance) > PROVENANCE:
        raise Refusal("request.invalid", f"metadata.provenance is a list of at most {PROVENANCE} {{type, ref}}")
    for source in provenance:
        kind, ref = (source.get("type"), source.get("ref")) if isinstance(source, dict) else (None, None)
        if not isinstance(kind, str) or not KIND.fullmatch(kind):
            raise Refusal("request.invalid", "metadata.provenance needs a type: pr, commit, issue, page or message")
        if not isinstance(ref, str) or not 1 <= len(ref) <= REFERENCE_CHARACTERS:
            raise Refusal(
                "request.invalid", f"metadata.provenance needs a ref of 1 to {REFERENCE_CHARACTERS:,} characters"
            )


def _unknown_status(field: str, status: object) -> Refusal:
    return Refusal("request.invalid", f"{field} is {status!r:.40}: use {', '.join(STATUSES[:-1])} or {STATUSES[-1]}")


def set_status(loaded: EventRow, request: status_pb2.SetEventStatusRequest, context: Context) -> Fact | Done:
    """Refused for what is no event, and when its time is over."""
    handle, short = speaker(context), names.short_id(loaded.message_id)
    if request.status not in STATUSES:
        raise _unknown_status("status", request.status)
    if not loaded.kind:
        raise Refusal("event.not_an_event", f"message {short} is no event; only events have a status")
    now = clock.millis(context.now)
    if standing_status(loaded.status, loaded.expires_at, now) == request.status:
        return Done(status_pb2.SetEventStatusResponse(message_id=loaded.message_id, status=request.status))
    if 0 < loaded.expires_at <= now:
        raise Refusal("event.expired", f"event {short} expired at {clock.rfc3339(loaded.expires_at)}")
    return Fact(_status_set(loaded, request.status, handle, context), on=loaded.entity)


def answer_set(event: events_pb2.EventStatusSet, _sequence: int) -> status_pb2.SetEventStatusResponse:
    return status_pb2.SetEventStatusResponse(message_id=event.message_id, status=event.status)


def expire(loaded: EventRow | None, _request: status_pb2.ExpireEventRequest, context: Context) -> Fact | Done:
    """Says what is so already, so that streams hear of it; nothing when it is not so, or was said."""
    if loaded is None:
        return Done(status_pb2.ExpireEventResponse())
    now = clock.millis(context.now)
    if loaded.status == EXPIRED or standing_status(loaded.status, loaded.expires_at, now) != EXPIRED:
        return Done(status_pb2.ExpireEventResponse(status=loaded.status))
    return Fact(_status_set(loaded, EXPIRED, "", context), on=loaded.entity)


def answer_expire(event: events_pb2.EventStatusSet, _sequence: int) -> status_pb2.ExpireEventResponse:
    return status_pb2.ExpireEventResponse(status=event.status)


def _status_set(loaded: EventRow, status: str, handle: str, context: Context) -> events_pb2.EventStatusSet:
    return events_pb2.EventStatusSet(
        room_id=loaded.room_id,
        message_id=loaded.message_id,
        status=status,
        set_by=handle,
        set_at=clock.to_timestamp(context.now),
    )
