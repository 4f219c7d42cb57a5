"""Decisions on messages: post, respond, amend; and what became of each mention.

The loads beside them look up rooms, ids and handles; here is what follows from it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.callers import speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Fact
from mycelium_rooms.commands_events import event_fields
from mycelium_rooms.commands_text import check_content, message_type, metadata
from mycelium_rooms.model import RoomRow, session_of

DELIVERED = frozenset({views_pb2.MENTION_STATE_WOKEN, views_pb2.MENTION_STATE_QUEUED, views_pb2.MENTION_STATE_PAUSED})
RECIPIENTS = 1_000  # after teams have been expanded


class Standing(Enum):
    """What a handle is in a room."""

    PRESENT = "present"
    LEFT = "left"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Addressee:
    """One recipient that a text names: who it is, and how the room knows it."""

    handle: str
    seat: str
    silent: bool
    standing: Standing
    waiting: bool = False
    paused: bool = False
    last_seen: int = 0
    engine: views_pb2.EngineKind.ValueType = views_pb2.ENGINE_KIND_UNSPECIFIED

    @property
    def queue(self) -> str:
        """The queue that it is delivered to, which is also how the mention is shown."""
        return names.queue(self.handle, self.seat)


@dataclass(frozen=True)
class Posting:
    """What a post is decided from."""

    room: RoomRow
    sender_name: str
    thread: str
    reply_to: str
    addressees: tuple[Addressee, ...]
    near: list[str]
    by_engine: bool = False


@dataclass(frozen=True)
class Amending:
    """What an amendment is decided from: the message as it stands, and whom the new text names.

    `sender` is empty when it is nobody's words.
    """

    room: RoomRow
    message_id: str
    sender: str
    content: str
    mentions: tuple[views_pb2.Mention, ...]
    addressees: tuple[Addressee, ...]
    near: list[str]
    by_engine: bool = False


def post_message(loaded: Posting, request: service_pb2.PostMessageRequest, context: Context) -> Fact | Done:
    """Refused when nobody speaks, the text or metadata can't be taken, or it names someone unknown (unless allowed)."""
    sender = speaker(context)
    mentions = _mentions(loaded, sender, allow_unknown=request.allow_unknown)
    deliver_to = [mention.handle for mention in mentions if mention.state in DELIVERED]
    kind = message_type(request.message_type)
    fields = event_fields(kind, metadata(request.metadata_json), context.now)
    event = events_pb2.MessagePosted(
        room_id=loaded.room.id,
        message_id=context.new_id(),
        sender_handle=sender,
        sender_name=loaded.sender_name,
        session=session_of(context),
        content=check_content(request.content),
        message_type=kind,
        thread=loaded.thread,
        reply_to=loaded.reply_to,
        metadata_json=request.metadata_json,
        mentions=mentions,
        deliver_to=deliver_to,
        engines=_engines(loaded, deliver_to),
        created_at=clock.to_timestamp(context.now),
        room=loaded.room.name,
        kind=fields.kind,
        status=fields.status,
        expires_at=clock.to_timestamp(fields.expires_at) if fields.expires_at else None,
    )
    return Fact(event, subject=subjects.posts(loaded.room.id))


def is_plain_response(request: service_pb2.PostMessageRequest) -> bool:
    """Whether a post leaves it to the session's last delivery what it answers."""
    return request.respond and not request.reply_to.strip()


def answer_post(event: events_pb2.MessagePosted, sequence: int) -> service_pb2.PostMessageResponse:
    return service_pb2.PostMessageResponse(message=posted_message(event, sequence))


def posted_message(event: events_pb2.MessagePosted, sequence: int) -> views_pb2.Message:
    """A message as it was posted."""
    return views_pb2.Message(
        id=event.message_id,
        sequence=sequence,
        room_id=event.room_id,
        room=event.room,
        sender_handle=event.sender_handle,
        sender_name=event.sender_name,
        content=event.content,
        message_type=event.message_type,
        thread=event.thread,
        reply_to=event.reply_to,
        metadata_json=event.metadata_json,
        created_at=event.created_at,
        mentions=event.mentions,
        status=event.status,
        expires_at=event.expires_at if event.HasField("expires_at") else None,
    )


def amend_message(loaded: Amending, request: service_pb2.AmendMessageRequest, context: Context) -> Fact | Done:
    """Refused when the message is another's, or for what a post of the new text is refused for."""
    sender = speaker(context)
    short = names.short_id(loaded.message_id)
    if not loaded.sender:
        raise Refusal("message.not_yours", f"message {short} is the hub's; nobody can amend it")
    if loaded.sender != sender:
        raise Refusal(
            "message.not_yours", f"message {short} is by @{loaded.sender}; only @{loaded.sender} can amend it"
        )
    content = check_content(request.content)
    if content == loaded.content:
        return Done(service_pb2.AmendMessageResponse(message_id=loaded.message_id))
    mentions = _mentions(loaded, sender, allow_unknown=request.allow_unknown)
    before = {mention.handle: mention for mention in loaded.mentions if mention.state in DELIVERED}
    deliver_to = [m.handle for m in mentions if m.state in DELIVERED and m.handle not in before]
    event = events_pb2.MessageAmended(
        room_id=loaded.room.id,
        message_id=loaded.message_id,
        content=content,
        mentions=[before.get(mention.handle, mention) for mention in mentions],
        deliver_to=deliver_to,
        engines=_engines(loaded, deliver_to),
        amended_at=clock.to_timestamp(context.now),
        room=loaded.room.name,
    )
    return Fact(event, subject=subjects.posts(loaded.room.id))


def answer_amend(event: events_pb2.MessageAmended, _sequence: int) -> service_pb2.AmendMessageResponse:
    return service_pb2.AmendMessageResponse(message_id=event.message_id)


def strangers(addressees: Sequence[Addressee], sender: str) -> list[Addressee]:
    """The recipients that nobody knows; a sender always knows itself."""
    return [one for one in addressees if one.standing is Standing.UNKNOWN and one.queue != sender]


def _mentions(loaded: Posting | Amending, sender: str, *, allow_unknown: bool) -> list[views_pb2.Mention]:
    count = len(loaded.addressees)
    if count > RECIPIENTS:
        raise Refusal("content.invalid", f"the text names {count:,} recipients, at most {RECIPIENTS:,} are allowed")
    unknown = strangers(loaded.addressees, sender)
    if unknown and not allow_unknown:
        raise _unknown(loaded, unknown)
    return [_mention(addressee, sender, by_engine=loaded.by_engine) for addressee in loaded.addressees]


def _engines(loaded: Posting | Amending, deliver_to: Sequence[str]) -> list[views_pb2.EngineCall]:
    """The engines among those that get it."""
    called = (one for one in loaded.addressees if one.engine and one.queue in deliver_to)
    return [views_pb2.EngineCall(queue=one.queue, kind=one.engine) for one in called]


def _mention(addressee: Addressee, sender: str, *, by_engine: bool) -> views_pb2.Mention:
    """What becomes of a mention. An engine's words wake no engine, so that two can't keep each other talking."""
    state = _state(addressee, sender)
    if by_engine and addressee.engine and state in DELIVERED:
        state = views_pb2.MENTION_STATE_SILENT
    mention = views_pb2.Mention(handle=addressee.queue, state=state)
    if addressee.last_seen:
        mention.last_seen.CopyFrom(clock.from_millis(addressee.last_seen))
    return mention


def _state(addressee: Addressee, sender: str) -> views_pb2.MentionState.ValueType:
    if addressee.queue == sender:
        return views_pb2.MENTION_STATE_SELF
    if addressee.standing is Standing.UNKNOWN:
        return views_pb2.MENTION_STATE_UNKNOWN
    if addressee.standing is Standing.LEFT:
        return views_pb2.MENTION_STATE_LEFT
    if addressee.silent:
        return views_pb2.MENTION_STATE_SILENT
    if addressee.paused:
        return views_pb2.MENTION_STATE_PAUSED
    return views_pb2.MENTION_STATE_WOKEN if addressee.waiting else views_pb2.MENTION_STATE_QUEUED


def _unknown(loaded: Posting | Amending, unknown: list[Addressee]) -> Refusal:
    handle, where = unknown[0].handle, shlex.quote(loaded.room.name)
    hint = names.did_you_mean(f"@{name}" for name in loaded.near)
    return Refusal(
        "mention.unknown",
        f"@{handle} is not a member of {loaded.room.name!r}{hint}",
        next=f"mycelium agent ls --room {where}" if loaded.near else f"mycelium agent create {handle} --room {where}",
        near=loaded.near,
        unknown=[stranger.handle for stranger in unknown],
    )
