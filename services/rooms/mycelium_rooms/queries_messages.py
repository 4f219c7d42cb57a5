"""Reads of messages: one, a page of history, what became of its deliveries, a taken delivery, the feed."""

from __future__ import annotations

from collections.abc import Iterable

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import FeedRow, Tables
from mycelium_rooms import loads_deliveries, lookup, times, views
from mycelium_rooms.model import RoomRow, session_of, speaker

LIMIT, LIMIT_MOST = 50, 500
EARLIER, EARLIER_BYTES = 30, 256 * 1024
FEED, FEED_MOST, FEED_STEP = 500, 5_000, 50
ROOMS_MOST = 500
LAST_SEQUENCE = 2**63 - 1


def get_message(
    tables: Tables, request: service_pb2.GetMessageRequest, context: Context
) -> service_pb2.GetMessageResponse:
    room = lookup.find_room(tables, request.room, context)
    message_id = lookup.find_message(tables, room, request.message)
    return service_pb2.GetMessageResponse(message=_message(tables, room, message_id))


def _message(tables: Tables, room: RoomRow, message_id: str) -> views_pb2.Message:
    row = tables.one(f"{views.MESSAGE} WHERE message.room_id = ? AND message_id = ?", room.id, message_id)
    assert row is not None
    return views.message(row)


def list_messages(
    tables: Tables, request: service_pb2.ListMessagesRequest, context: Context
) -> service_pb2.ListMessagesResponse:
    """Newest first, in the room's one order. The cursor names the oldest message shown, if any is older."""
    if request.limit > LIMIT_MOST:
        raise Refusal("request.invalid", f"limit is {request.limit}: use 1 to {LIMIT_MOST}")
    room = lookup.find_room(tables, request.room, context)
    thread = lookup.find_thread(tables, room, request.thread)
    before = _sequence(tables, room, thread, "before", request.before, context) if request.before else LAST_SEQUENCE
    since = _sequence(tables, room, thread, "since", request.since, context) if request.since else 0
    sql = f"""{views.MESSAGE} WHERE message.room_id = ? AND thread = ? AND sequence < ? AND sequence >= ?
              ORDER BY sequence DESC"""
    page, size = service_pb2.ListMessagesResponse(), 0
    for row in tables.iterate(sql, room.id, thread, before, since):
        message = views.message(row)
        size += message.ByteSize()
        if page.messages and (size > views.PAGE_BYTES or len(page.messages) >= (request.limit or LIMIT)):
            oldest = page.messages[-1]
            page.older_before = times.cursor(clock.to_millis(oldest.created_at), oldest.sequence)
            break
        page.messages.append(message)
    return page


def _sequence(tables: Tables, room: RoomRow, thread: str, field: str, text: str, context: Context) -> int:
    """The place in the log that a time or cursor gives: of the first message at or after it."""
    place = times.place(field, text, context.now)
    if place.sequence:
        return place.sequence
    row = tables.one(
        """SELECT sequence FROM message WHERE room_id = ? AND thread = ? AND ordered_at >= ?
           ORDER BY ordered_at, sequence LIMIT 1""",
        room.id, thread, place.millis,
    )  # fmt: skip
    return int(row[0]) if row else LAST_SEQUENCE


def list_receipts(
    tables: Tables, request: service_pb2.ListReceiptsRequest, context: Context
) -> service_pb2.ListReceiptsResponse:
    room = lookup.find_room(tables, request.room, context)
    rows = tables.all(
        """SELECT queue, state, attempts, session, offered_at, ended_at FROM delivery INDEXED BY delivery_message
           WHERE room_id = ? AND message_id = ? ORDER BY queue""",
        room.id, lookup.find_message(tables, room, request.message),
    )  # fmt: skip
    return service_pb2.ListReceiptsResponse(receipts=[views.receipt(row) for row in rows])


def get_delivery(
    tables: Tables, request: service_pb2.GetDeliveryRequest, context: Context
) -> service_pb2.GetDeliveryResponse:
    """Refused when the caller's queue has no such delivery."""
    queue = loads_deliveries.find_queue(tables, request.room, request.seat, context)
    delivery = loads_deliveries.find_delivery(tables, queue, request.message, session_of(context))
    if delivery is None:
        raise Refusal("delivery.not_found", f"the queue of @{queue.name} has no message {request.message[:36]!r}")
    message = _message(tables, queue.room, delivery.message_id)
    earlier = _earlier(tables, queue.room, message, speaker(context))
    return service_pb2.GetDeliveryResponse(message=message, earlier=earlier)


def _earlier(tables: Tables, room: RoomRow, message: views_pb2.Message, handle: str) -> Iterable[views_pb2.Message]:
    """What was said in the same channel or thread before, since the receiver last spoke there; oldest first."""
    spoke = tables.one(
        """SELECT max(sequence) FROM message
           WHERE room_id = ? AND sender_handle = ? AND thread = ? AND sequence < ?""",
        room.id, handle, message.thread, message.sequence,
    )  # fmt: skip
    sql = f"""{views.MESSAGE} WHERE message.room_id = ? AND thread = ? AND sequence < ? AND sequence > ?
              ORDER BY sequence DESC LIMIT ?"""
    found: list[views_pb2.Message] = []
    size = 0
    after = (spoke[0] or 0) if spoke else 0
    for row in tables.iterate(sql, room.id, message.thread, message.sequence, after, EARLIER):
        before = views.message(row)
        size += before.ByteSize()
        if size > EARLIER_BYTES:
            break
        found.append(before)
    return reversed(found)


def read_feed(tables: Tables, request: service_pb2.ReadFeedRequest, context: Context) -> service_pb2.ReadFeedResponse:
    """Facts in the log's order, in pages: read in small steps, since one fact may be large."""
    if len(request.rooms) > ROOMS_MOST:
        raise Refusal("request.invalid", f"{len(request.rooms)} rooms are named, at most {ROOMS_MOST} are allowed")
    rooms = [lookup.find_room(tables, text, context).id for text in request.rooms]
    limit = min(request.limit or FEED, FEED_MOST)
    page, size, after = service_pb2.ReadFeedResponse(), 0, request.after
    while rows := tables.feed(rooms, after, request.until, FEED_STEP) if rooms else []:
        for row in rows:
            size += len(row.data)
            if page.facts and (size > views.PAGE_BYTES or len(page.facts) >= limit):
                page.more = True
                return page
            page.facts.append(_feed_fact(row))
        after = rows[-1].sequence
    return page


def _feed_fact(row: FeedRow) -> service_pb2.FeedFact:
    return service_pb2.FeedFact(sequence=row.sequence, type=row.type, data=row.data)
