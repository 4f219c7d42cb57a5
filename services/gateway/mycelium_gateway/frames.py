"""Facts as server-sent events: which facts watchers see, under which name, in which shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from mycelium.board.v1 import events_pb2 as board_events_pb2
from mycelium.board.v1 import reservations_pb2
from mycelium.engine.v1 import events_pb2 as engine_events_pb2
from mycelium.memory.v1 import changes_pb2
from mycelium.memory.v1 import events_pb2 as memory_events_pb2
from mycelium.rooms.v1 import events_pb2, join_pb2
from mycelium_gateway import shapes, shapes_memory
from mycelium_kernel import events

CONNECTED = b": connected\n\n"
PING = b": ping\n\n"
UNNUMBERED = ("ping", "presence", "reset")  # live events that are no facts, and so have no id
ROOM_DELETED = events.type_name(events_pb2.RoomDeleted)


@dataclass(frozen=True)
class LiveEvent:
    """How watchers see one kind of fact: the names it may have, which one it has, and its data."""

    names: tuple[str, ...]
    name: Callable[[Any], str]
    shape: Callable[[Any, int, str], shapes.Json]


def _settings(fact: events_pb2.RoomChanged, _sequence: int, room: str) -> shapes.Json:
    return {
        "room": room,
        "id": fact.room_id,
        "name": room,
        "title": fact.title,
        "private": fact.private,
        "created_by": fact.created_by,
        "created_at": shapes.moment(fact.created_at),
    }


def _member(fact: events_pb2.MemberSaved, _sequence: int, room: str) -> shapes.Json:
    return {"room": room, **shapes.member_record(fact.member)}


def _post_name(fact: events_pb2.MessagePosted) -> str:
    return "notice" if fact.message_type == "notice" else "message"


def _post(fact: events_pb2.MessagePosted, sequence: int, room: str) -> shapes.Json:
    return shapes.notice(fact, room) if fact.message_type == "notice" else shapes.posted(fact, sequence, room)


LIVE_EVENTS: dict[type[Message], LiveEvent] = {
    events_pb2.MessagePosted: LiveEvent(("message", "notice"), _post_name, _post),
    events_pb2.MessageAmended: LiveEvent(
        ("message_amended",), lambda _fact: "message_amended", lambda fact, _sequence, room: shapes.amended(fact, room)
    ),
    events_pb2.EventStatusSet: LiveEvent(
        ("event_status",), lambda _fact: "event_status", lambda fact, _sequence, room: shapes.event_status(fact, room)
    ),
    events_pb2.RoomChanged: LiveEvent(("room_changed",), lambda _fact: "room_changed", _settings),
    events_pb2.RoomDeleted: LiveEvent(
        ("room_deleted",), lambda _fact: "room_deleted", lambda _fact, _sequence, room: {"room": room}
    ),
    events_pb2.MemberSaved: LiveEvent(
        ("member_joined", "member_changed"),
        lambda fact: "member_joined" if fact.joined else "member_changed",
        _member,
    ),
    events_pb2.MemberRemoved: LiveEvent(
        ("member_left",),
        lambda _fact: "member_left",
        lambda fact, _sequence, room: {"room": room, "handle": fact.handle},
    ),
}
# Facts of documents, which are shown to those who ask for them, and to them alone.
MEMORY_EVENTS: dict[type[Message], LiveEvent] = {
    memory_events_pb2.DocumentWritten: LiveEvent(
        ("memory_written",),
        lambda _fact: "memory_written",
        lambda fact, sequence, room: shapes_memory.change(change_of(fact, sequence), room),
    ),
    memory_events_pb2.DocumentRemoved: LiveEvent(
        ("memory_removed",),
        lambda _fact: "memory_removed",
        lambda fact, sequence, room: shapes_memory.change(change_of(fact, sequence), room),
    ),
}
# Facts that are nobody's business but their queue's, or of no one room, or that a notice tells of.
UNSEEN: tuple[type[Message], ...] = (
    events_pb2.RoomCreated,
    events_pb2.UserSaved,
    events_pb2.DeliveryOffered,
    events_pb2.DeliveryMarked,
    events_pb2.FolderSet,
    events_pb2.FactsImported,
    events_pb2.RoomImported,
    join_pb2.JoinCodeMade,
    join_pb2.JoinCodeUsed,
    engine_events_pb2.SpendingSaved,
    engine_events_pb2.RunStarted,
    engine_events_pb2.RunEnded,
    board_events_pb2.TaskMoved,
    board_events_pb2.ClaimRenewed,
    reservations_pb2.PatternsReserved,
    reservations_pb2.ReservationsRenewed,
    reservations_pb2.ReservationsEnded,
    memory_events_pb2.DocumentsImported,
    memory_events_pb2.SubscriptionSet,
    memory_events_pb2.SubscriptionEnded,
)
_BY_TYPE = {events.type_name(kind): live for kind, live in (LIVE_EVENTS | MEMORY_EVENTS).items()}
_SHOWN = frozenset(map(events.type_name, LIVE_EVENTS))
_OF_MEMORY = frozenset(map(events.type_name, MEMORY_EVENTS))


def is_shown(type_name: str) -> bool:
    """Whether watchers see facts of this type."""
    return type_name in _SHOWN


def is_of_memory(type_name: str) -> bool:
    """Whether those who follow documents see facts of this type."""
    return type_name in _OF_MEMORY


def change_of(fact: Any, sequence: int) -> changes_pb2.Change:
    """The headline of a document's fact."""
    removed = isinstance(fact, memory_events_pb2.DocumentRemoved)
    return changes_pb2.Change(
        sequence=sequence,
        room_id=fact.room_id,
        key=fact.key,
        version=fact.version,
        removed=removed,
        updated_by=fact.removed_by if removed else fact.updated_by,
        updated_at=fact.removed_at if removed else fact.updated_at,
        origin=fact.origin,
        moved_from="" if removed else fact.moved_from,
    )


def changed(epoch: str, change: changes_pb2.Change, room: str) -> bytes:
    """The live event of a document's fact, from its headline."""
    name = "memory_removed" if change.removed else "memory_written"
    head = f"id: {identifier(epoch, change.sequence)}\nevent: {name}\ndata: ".encode()
    return head + shapes.encode(shapes_memory.change(change, room)) + b"\n\n"


def identifier(epoch: str, sequence: int) -> str:
    """The id of the live event of a fact."""
    return f"{epoch}-{sequence}"


def read_identifier(text: str, epoch: str) -> int | None:
    """The sequence that an id of this log names; None for an id of another log, or none at all."""
    before, separator, digits = text.strip().rpartition("-")
    if not separator or before != epoch or not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    return int(digits)


def frame(epoch: str, sequence: int, event: Message, room: str) -> bytes:
    """The live event of a fact, ready to be sent. `event` must be of a type that is shown."""
    live = _BY_TYPE[event.DESCRIPTOR.full_name]
    head = f"id: {epoch}-{sequence}\nevent: {live.name(event)}\ndata: ".encode()
    return head + shapes.encode(live.shape(event, sequence, room)) + b"\n\n"


def live(epoch: str, sequence: int, event: Message, room: str) -> bytes:
    """The live event of a fact, and the ping that goes with words in a thread; history has no pings."""
    made = frame(epoch, sequence, event, room)
    if isinstance(event, events_pb2.MessagePosted) and event.thread and event.message_type not in shapes.TOLD:
        return made + _unnumbered("ping", shapes.ping(event, room))
    return made


def gone(room: str) -> bytes:
    """Tells a watcher that there is no such room for it any more. It has no id: it is not the room's own fact."""
    return _unnumbered("room_deleted", {"room": room})


def presence(data: shapes.Json) -> bytes:
    """Tells watchers what a member does now."""
    return _unnumbered("presence", data)


def _unnumbered(name: str, data: shapes.Json) -> bytes:
    return f"event: {name}\ndata: ".encode() + shapes.encode(data) + b"\n\n"


def mark(epoch: str, sequence: int) -> bytes:
    """Tells a watcher its place without an event (an `id` alone sets the last id and dispatches nothing, HTML SSE)."""
    return f"id: {identifier(epoch, sequence)}\n\n".encode()


def reset(reason: str) -> bytes:
    """Tells a watcher that what it missed can't be told; it carries no id."""
    return _unnumbered("reset", {"reason": reason})
