"""Decisions on subscriptions: who is woken by changes of which documents. The loads beside them read what they need."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from mycelium.memory.v1 import events_pb2, subscriptions_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import RoomRow, unregistered
from mycelium_kernel.errors import Refusal
from mycelium_kernel.patterns import Pattern
from mycelium_kernel.service import Context, Done, Entity, Fact

MOST = 100  # of one handle in a room


@dataclass(frozen=True)
class Subscribing:
    """The room, the caller and what it is there, the pattern, and the subscription's entity."""

    room: RoomRow
    handle: str
    is_registered: bool
    pattern: Pattern
    count: int
    entity: Entity[events_pb2.SubscriptionState]

    @property
    def stands(self) -> events_pb2.SubscriptionState | None:
        """The subscription, if there is one."""
        state = self.entity.state
        return state if state is not None and state.stands else None


def subscribe(loaded: Subscribing, _request: subscriptions_pb2.SubscribeRequest, context: Context) -> Fact | Done:
    """Refused for who is nobody here, as a wait is, and for more than anybody needs."""
    if not loaded.is_registered:
        raise unregistered(loaded.room.name, loaded.handle)
    there = loaded.stands
    if there:
        shown = subscriptions_pb2.Subscription(handle=loaded.handle, pattern=there.pattern, set_at=there.set_at)
        return Done(subscriptions_pb2.SubscribeResponse(subscription=shown, stood=True))
    if loaded.count >= MOST:
        detail = f"@{loaded.handle} has {loaded.count} subscriptions in {loaded.room.name!r}, at most {MOST} are kept"
        raise Refusal("request.invalid", detail, next="mycelium memory subscribe --ls")
    event = events_pb2.SubscriptionSet(
        room_id=loaded.room.id,
        handle=loaded.handle,
        pattern=loaded.pattern.text,
        set_at=clock.to_timestamp(context.now),
    )
    return Fact(event, on=loaded.entity)


def answer_subscribe(event: events_pb2.SubscriptionSet, _sequence: int) -> subscriptions_pb2.SubscribeResponse:
    shown = subscriptions_pb2.Subscription(handle=event.handle, pattern=event.pattern, set_at=event.set_at)
    return subscriptions_pb2.SubscribeResponse(subscription=shown)


def unsubscribe(loaded: Subscribing, _request: subscriptions_pb2.UnsubscribeRequest, context: Context) -> Fact:
    """Refused when there is none."""
    there = loaded.stands
    if there is None:
        detail = f"@{loaded.handle} has no subscription to {loaded.pattern.text!r} in {loaded.room.name!r}"
        next_command = f"mycelium memory subscribe --ls --room {shlex.quote(loaded.room.name)}"
        raise Refusal("subscription.not_found", detail, next=next_command)
    event = events_pb2.SubscriptionEnded(
        room_id=loaded.room.id, handle=loaded.handle, pattern=there.pattern, ended_at=clock.to_timestamp(context.now)
    )
    return Fact(event, on=loaded.entity)


def answer_unsubscribe(_event: events_pb2.SubscriptionEnded, _sequence: int) -> subscriptions_pb2.UnsubscribeResponse:
    return subscriptions_pb2.UnsubscribeResponse()
