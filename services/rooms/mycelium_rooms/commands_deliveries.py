"""Decisions on deliveries: which one a session gets, what its call ends, what it says of one."""

from __future__ import annotations

from dataclasses import dataclass

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact
from mycelium_rooms.model import ENDED, RoomRow, session_of

MARKS = frozenset({views_pb2.DELIVERY_STATE_DELIVERED, *ENDED})


@dataclass(frozen=True)
class Delivery:
    """One delivery of a queue. `given` and `received` say what the asking session has had of it."""

    message_id: str
    state: views_pb2.DeliveryState.ValueType
    attempts: int
    given: bool = False
    received: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether the queue is done with it."""
        return self.state in ENDED


@dataclass(frozen=True)
class Queue:
    """A queue: its room, its name, and its entity."""

    room: RoomRow
    name: str
    entity: Entity[events_pb2.QueueState]


@dataclass(frozen=True)
class Taking:
    """What a call is decided from: what the session has received, what the request names, and what comes next.

    `following` is the oldest delivery that has not ended, is of the wanted thread, was not received by the session, and
    is not the one named.
    """

    queue: Queue
    received: tuple[str, ...]
    named: Delivery | None
    following: Delivery | None


@dataclass(frozen=True)
class Marking:
    """What a mark is decided from."""

    queue: Queue
    delivery: Delivery | None


def take_delivery(loaded: Taking, request: service_pb2.TakeDeliveryRequest, context: Context) -> Fact | Done:
    """Refused when the delivery to be acknowledged was never given out by this queue.

    A new call ends what the session has received before, and nothing else but what it names: what another session
    has, or was offered and never came, is given out again.
    """
    acknowledged = list(loaded.received) if request.new_call else []
    if request.acknowledge.strip():
        if loaded.named is None or not loaded.named.attempts:
            raise _not_given(loaded.queue, request.acknowledge)
        if not loaded.named.has_ended and loaded.named.message_id not in acknowledged:
            acknowledged.append(loaded.named.message_id)
    if not acknowledged and loaded.following is None:
        return Done(service_pb2.TakeDeliveryResponse())
    event = events_pb2.DeliveryOffered(
        room_id=loaded.queue.room.id,
        queue=loaded.queue.name,
        session=session_of(context),
        acknowledged=acknowledged,
        message_id=loaded.following.message_id if loaded.following else "",
        attempt=loaded.following.attempts + 1 if loaded.following else 0,
        offered_at=clock.to_timestamp(context.now),
    )
    # A repeat of a call that got nothing must look again.
    return Fact(event, on=loaded.queue.entity, answers=loaded.following is not None)


def answer_take(event: events_pb2.DeliveryOffered, _sequence: int) -> service_pb2.TakeDeliveryResponse:
    return service_pb2.TakeDeliveryResponse(
        message_id=event.message_id, redelivered=event.attempt > 1, attempt=event.attempt
    )


def mark_delivery(loaded: Marking, request: service_pb2.MarkDeliveryRequest, context: Context) -> Fact | Done:
    """Refused when the delivery was not given out, for `DELIVERED` when it was not given to this session.

    Saying it again changes nothing; a delivery that has ended stays as it ended.
    """
    if request.state not in MARKS:
        raise Refusal("request.invalid", "a delivery is marked as delivered, acknowledged or parked")
    delivery = loaded.delivery
    if delivery is None or not delivery.attempts:
        raise _not_given(loaded.queue, request.message)
    if delivery.has_ended:
        return Done(service_pb2.MarkDeliveryResponse(state=delivery.state))
    if request.state == views_pb2.DELIVERY_STATE_DELIVERED:
        if not delivery.given:
            raise _not_given(loaded.queue, request.message, " to this session")
        if delivery.received:
            return Done(service_pb2.MarkDeliveryResponse(state=delivery.state))
    event = events_pb2.DeliveryMarked(
        room_id=loaded.queue.room.id,
        queue=loaded.queue.name,
        message_id=delivery.message_id,
        session=session_of(context),
        state=request.state,
        marked_at=clock.to_timestamp(context.now),
    )
    return Fact(event, on=loaded.queue.entity)


def answer_mark(event: events_pb2.DeliveryMarked, _sequence: int) -> service_pb2.MarkDeliveryResponse:
    return service_pb2.MarkDeliveryResponse(state=event.state)


def _not_given(queue: Queue, message: str, to: str = "") -> Refusal:
    detail = f"message {message[:36]!r} was not given out{to} by the queue of @{queue.name} in {queue.room.name!r}"
    return Refusal("delivery.not_found", detail)
