"""Decisions on what other services have said in a room: notices of the board, changes of documents.

They are stored with the messages, in the room's one order, and given to whom they are for. They are nobody's words:
they name nobody, answer nothing, and nobody is seen by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycelium.rooms.v1 import events_pb2, notices_pb2, views_pb2
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Fact
from mycelium_rooms.commands_events import KIND
from mycelium_rooms.commands_text import line, metadata
from mycelium_rooms.model import CHANGE, NOTICE, RoomRow

CONTENT_CHARACTERS = 1_000
RECIPIENTS = 1_000


@dataclass(frozen=True)
class Recipient:
    """A member that a notice is for, why, and which engine it is."""

    handle: str
    reason: views_pb2.DeliveryReason.ValueType
    engine: views_pb2.EngineKind.ValueType


@dataclass(frozen=True)
class Telling:
    """What a notice is decided from: the room, who did it, and the members that it is for, each once."""

    room: RoomRow
    sender_name: str
    recipients: tuple[Recipient, ...]
    by_engine: bool


def post_notice(loaded: Telling, request: notices_pb2.PostNoticeRequest, context: Context) -> Fact | Done:
    """Refused for what is no notice: the service that asks has a fault."""
    _check(request)
    recipients = [one for one in loaded.recipients if not (one.engine and request.message_type == CHANGE)]
    if not recipients and request.for_its_deliveries:
        return Done(notices_pb2.PostNoticeResponse())
    called = [one for one in recipients if one.engine and not loaded.by_engine]
    event = events_pb2.MessagePosted(
        room_id=loaded.room.id,
        message_id=context.new_id(),
        sender_handle=request.sender_handle,
        sender_name=loaded.sender_name,
        content=request.content,
        message_type=request.message_type,
        thread=request.thread,
        metadata_json=request.metadata_json,
        deliver_to=[one.handle for one in recipients],
        reasons=[one.reason for one in recipients],
        engines=[views_pb2.EngineCall(queue=one.handle, kind=one.engine) for one in called],
        created_at=clock.to_timestamp(context.now),
        room=loaded.room.name,
        kind=request.kind,
    )
    return Fact(event, subject=subjects.posts(loaded.room.id))


def answer_post(event: events_pb2.MessagePosted, _sequence: int) -> notices_pb2.PostNoticeResponse:
    return notices_pb2.PostNoticeResponse(message_id=event.message_id, delivered_to=event.deliver_to)


def _check(request: notices_pb2.PostNoticeRequest) -> None:
    if request.message_type not in {NOTICE, CHANGE}:
        raise Refusal("request.invalid", f"message_type is {request.message_type!r}: use {NOTICE!r} or {CHANGE!r}")
    if not KIND.fullmatch(request.kind):
        raise Refusal("request.invalid", f"kind is {request.kind!r:.70}: use 1 to 64 of a-z 0-9 _ -")
    if line("content", request.content, CONTENT_CHARACTERS) != request.content or not request.content:
        raise Refusal("request.invalid", "content is not one line")
    if request.thread and not names.is_id(request.thread):
        raise Refusal("request.invalid", f"thread is {request.thread[:40]!r}: use a full id")
    if len(request.deliveries) > RECIPIENTS:
        raise Refusal("request.invalid", f"{len(request.deliveries):,} deliveries, at most {RECIPIENTS:,} are allowed")
    metadata(request.metadata_json)
