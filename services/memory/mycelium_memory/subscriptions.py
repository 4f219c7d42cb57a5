"""Subscriptions as tables have them: what commands load, what queries read, whom a change is for."""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, subscriptions_pb2
from mycelium_kernel import clock, names, patterns, rooms_seen
from mycelium_kernel.callers import speaker
from mycelium_kernel.service import Context, Stored
from mycelium_kernel.tables import Tables
from mycelium_memory.commands_subscriptions import Subscribing
from mycelium_memory.model import subscription_subject

Request = subscriptions_pb2.SubscribeRequest | subscriptions_pb2.UnsubscribeRequest


def load(tables: Tables, request: Request, context: Context) -> Subscribing:
    room, handle = rooms_seen.find_room(tables, request.room, context), speaker(context)
    pattern = patterns.read(request.pattern)
    row = tables.one("SELECT count(*) FROM subscription WHERE room_id = ? AND handle = ?", room.id, handle)
    entity = tables.entity(subscription_subject(room.id, handle, pattern.folded), events_pb2.SubscriptionState)
    is_registered = rooms_seen.is_registered(tables, room, handle)
    return Subscribing(room, handle, is_registered, pattern, row[0] if row else 0, entity)


def set_(tables: Tables, event: events_pb2.SubscriptionSet, stored: Stored) -> None:
    tables.execute(
        "INSERT OR REPLACE INTO subscription VALUES (?, ?, ?, ?, ?, ?)",
        event.room_id, event.handle, names.fold_key(event.pattern), event.pattern, clock.to_millis(event.set_at),
        stored.sequence,
    )  # fmt: skip


def end(tables: Tables, event: events_pb2.SubscriptionEnded, _stored: Stored) -> None:
    tables.execute(
        "DELETE FROM subscription WHERE room_id = ? AND handle = ? AND folded = ?",
        event.room_id, event.handle, names.fold_key(event.pattern),
    )  # fmt: skip


def list_subscriptions(
    tables: Tables, request: subscriptions_pb2.ListSubscriptionsRequest, context: Context
) -> subscriptions_pb2.ListSubscriptionsResponse:
    """All of one handle: there are not many."""
    room = rooms_seen.find_room(tables, request.room, context)
    handle = names.handle(request.handle) if request.handle.strip() else speaker(context)
    sql = "SELECT handle, pattern, set_at FROM subscription WHERE room_id = ? AND handle = ? ORDER BY folded"
    return subscriptions_pb2.ListSubscriptionsResponse(
        subscriptions=[
            subscriptions_pb2.Subscription(handle=row[0], pattern=row[1], set_at=clock.from_millis(row[2]))
            for row in tables.all(sql, room.id, handle)
        ]
    )


def subscribers(tables: Tables, room_id: str, key: str, sequence: int, author: str) -> list[str]:
    """Whom the change of a document at that place of the log is for: who subscribed before it, and did not make it."""
    rows = tables.all(
        "SELECT handle, pattern, folded FROM subscription WHERE room_id = ? AND sequence < ?", room_id, sequence
    )
    if not rows:
        return []
    folded = names.fold_key(key)
    found = {handle for handle, text, pattern in rows if patterns.Pattern(text, pattern).fits(folded)}
    return sorted(found - {author})
