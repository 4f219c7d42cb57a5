"""Facts on their way from one hub to another: which ones travel, and what is checked before one is let in.

A bundle may have been written by anybody, so whatever a command would have refused here is refused, and nothing may
come in that the tables could not take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycelium.rooms.v1 import events_pb2, transfer_pb2, views_pb2
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.errors import Refusal
from mycelium_rooms.commands_deliveries import MARKS
from mycelium_rooms.commands_events import KIND, STATUSES
from mycelium_rooms.commands_text import check_content, message_type, metadata
from mycelium_rooms.model import CHANGE, EXPIRED, NOTICE, ROOMS, RoomRow


@dataclass(frozen=True)
class Portable:
    """One kind of fact that travels: its entity and that entity's id, the field with its time, what is checked."""

    entity: str
    identifier: Callable[[Any], str]
    time: Callable[[Any], Any]
    check: Callable[[Any], None]


def _check_member(event: events_pb2.MemberSaved) -> None:
    member = event.member
    _need(member.kind in views_pb2.MemberKind.values() and member.kind != 0, "a member of no kind")
    names.new_handle(member.handle, engine=member.kind == views_pb2.MEMBER_KIND_ENGINE)
    _times(member.created_at, member.updated_at)


def _check_post(event: events_pb2.MessagePosted) -> None:
    if event.message_type not in {NOTICE, CHANGE}:
        message_type(event.message_type)
        names.handle(event.sender_handle)
    elif event.sender_handle:  # else its time was over
        names.handle(event.sender_handle)
    check_content(event.content)
    metadata(event.metadata_json)
    _ids(event.message_id, *filter(None, (event.thread, event.reply_to)))
    _need(not event.kind or KIND.fullmatch(event.kind) is not None, "an event of no kind")
    _need(event.status in {"", *STATUSES}, "an event of no status")
    _queues(*event.deliver_to, *(call.queue for call in event.engines))
    _need(len(event.reasons) in {0, len(event.deliver_to)}, "deliveries of which some have no reason")
    _need(set(event.reasons) <= set(views_pb2.DeliveryReason.values()), "a delivery for no reason")
    _mentions(event.mentions)
    _times(event.created_at, event.expires_at)


def _check_amendment(event: events_pb2.MessageAmended) -> None:
    check_content(event.content)
    _ids(event.message_id)
    _queues(*event.deliver_to, *(call.queue for call in event.engines))
    _mentions(event.mentions)


def _check_status(event: events_pb2.EventStatusSet) -> None:
    _ids(event.message_id)
    _need(event.status in {*STATUSES, EXPIRED}, "an event of no status")


def _check_offer(event: events_pb2.DeliveryOffered) -> None:
    _queues(event.queue)
    _ids(*event.acknowledged, *filter(None, (event.message_id,)))


def _check_mark(event: events_pb2.DeliveryMarked) -> None:
    _queues(event.queue)
    _ids(event.message_id)
    _need(event.state in MARKS, "a delivery of no state")


def _need(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise Refusal("room.import_refused", f"the bundle holds {otherwise}")


def _ids(*identifiers: str) -> None:
    _need(all(map(names.is_id, identifiers)), "an id that is none")


def _queues(*queues: str) -> None:
    for queue in queues:
        handle, _, seat = queue.partition("#")
        _need(names.queue(names.handle(handle), names.seat(seat)) == queue, "a queue that is none")


def _mentions(mentions: Any) -> None:
    for mention in mentions:
        _need(mention.state in views_pb2.MentionState.values(), "a mention of no state")
        _times(mention.last_seen)


def _times(*timestamps: Any) -> None:
    _need(all(0 <= clock.to_millis(stamp) <= clock.LATEST_MS for stamp in timestamps), "a time that is none")


PORTABLE: dict[str, tuple[type[Any], Portable]] = {
    kind.DESCRIPTOR.full_name: (kind, portable)
    for kind, portable in (
        (events_pb2.RoomChanged, Portable("room", lambda _e: "", lambda e: e.changed_at, lambda _e: None)),
        (
            events_pb2.MemberSaved,
            Portable("member", lambda e: e.member.handle, lambda e: e.member.updated_at, _check_member),
        ),
        (
            events_pb2.MemberRemoved,
            Portable("member", lambda e: e.handle, lambda e: e.removed_at, lambda e: _queues(e.handle)),
        ),
        (events_pb2.MessagePosted, Portable("message", lambda _e: "", lambda e: e.created_at, _check_post)),
        (events_pb2.MessageAmended, Portable("message", lambda _e: "", lambda e: e.amended_at, _check_amendment)),
        (events_pb2.EventStatusSet, Portable("event", lambda e: e.message_id, lambda e: e.set_at, _check_status)),
        (events_pb2.DeliveryOffered, Portable("queue", lambda e: e.queue, lambda e: e.offered_at, _check_offer)),
        (events_pb2.DeliveryMarked, Portable("queue", lambda e: e.queue, lambda e: e.marked_at, _check_mark)),
    )
}


def filters(room: RoomRow) -> tuple[str, ...]:
    """Where in the log a room's facts that travel stand."""
    entities = sorted({portable.entity for _kind, portable in PORTABLE.values()} - {"message"})
    return (subjects.posts(room.id), *(subjects.of_entities(ROOMS, room.id, entity) for entity in entities))


def packed(sequence: int, type_name: str, data: bytes) -> transfer_pb2.PortableFact | None:
    """A fact of the log as it travels; None for one that stays: a room's making, imports, anybody's folders."""
    if type_name not in PORTABLE:
        return None
    kind, portable = PORTABLE[type_name]
    event = kind.FromString(data)
    entity = ".".join(filter(None, (portable.entity, portable.identifier(event))))
    return transfer_pb2.PortableFact(
        sequence=sequence, type=type_name, entity=entity, data=data, at=portable.time(event)
    )


def unpacked(fact: transfer_pb2.PortableFact, room: RoomRow) -> tuple[str, Any]:
    """Subject and event of a fact that has arrived, as one of its new room. Refused when it is none that travels."""
    if fact.type not in PORTABLE:
        raise Refusal("room.import_refused", f"the bundle holds a fact of the type {fact.type[:80]!r}, unknown here")
    kind, portable = PORTABLE[fact.type]
    try:
        event = kind.FromString(fact.data)
        _times(portable.time(event))
        portable.check(event)
    except Refusal as refusal:
        raise Refusal("room.import_refused", f"fact {fact.sequence} of the bundle: {refusal.detail}") from None
    except Exception:  # protobuf's own error has no public place in its pure parts
        raise Refusal("room.import_refused", f"fact {fact.sequence} of the bundle can't be read") from None
    event.room_id = room.id
    if fact.type == events_pb2.RoomChanged.DESCRIPTOR.full_name:
        event.name = room.name
    elif "room" in kind.DESCRIPTOR.fields_by_name:
        event.room = room.name
    if portable.entity == "message":
        return subjects.posts(room.id), event
    return subjects.fact(ROOMS, room.id, portable.entity, portable.identifier(event) or room.id), event
