"""Reads of messages: one and its texts, what became of its mentions, a taken delivery, the feed."""

from __future__ import annotations

from collections.abc import Iterable

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, PAGE_BYTES, Tables
from mycelium_rooms import loads_deliveries, lookup, views
from mycelium_rooms.model import NOTICE, RoomRow, session_of

HISTORY_BYTES = 4 * 1024 * 1024
EARLIER, EARLIER_BYTES = 30, 256 * 1024
EARLIER_LOOKED_AT = 300  # messages, of which those that are notices are none to an agent
FEED, FEED_MOST = 500, 5_000
ROOMS_MOST = 500


def get_message(
    tables: Tables, request: service_pb2.GetMessageRequest, context: Context
) -> service_pb2.GetMessageResponse:
    room = lookup.find_room(tables, request.room, context)
    message_id = lookup.find_message(tables, room, request.message)
    message = _message(tables, room, message_id, context)
    history = _history(tables, room, message) if request.history else []
    return service_pb2.GetMessageResponse(message=message, history=history)


def _message(tables: Tables, room: RoomRow, message_id: str, context: Context) -> views_pb2.Message:
    row = tables.one(f"{views.MESSAGE} WHERE message.room_id = ? AND message_id = ?", room.id, message_id)
    assert row is not None
    return views.message(row, clock.millis(context.now))


def _history(tables: Tables, room: RoomRow, message: views_pb2.Message) -> Iterable[views_pb2.Revision]:
    """The texts of a message, oldest first; of very many, the original and the latest."""
    sql = "SELECT content, at FROM revision WHERE room_id = ? AND message_id = ? ORDER BY sequence"
    at = message.edited_at if message.HasField("edited_at") else message.created_at
    found = [
        *(
            views_pb2.Revision(content=row[0], at=clock.from_millis(row[1]))
            for row in tables.all(sql, room.id, message.id)
        ),
        views_pb2.Revision(content=message.content, at=at),
    ]
    size, first = 0, len(found)
    while first > 1 and size < HISTORY_BYTES:
        first -= 1
        size += found[first].ByteSize()
    return [found[0], *found[max(first, 1) :]]


def list_receipts(
    tables: Tables, request: service_pb2.ListReceiptsRequest, context: Context
) -> service_pb2.ListReceiptsResponse:
    """What became of every mention, also of those that were amended away, or for which nothing was queued."""
    room = lookup.find_room(tables, request.room, context)
    message = _message(tables, room, lookup.find_message(tables, room, request.message), context)
    rows = tables.all(
        """SELECT queue, state, attempts, session, offered_at, ended_at, coalesce(has_left, 0), coalesce(paused, 0)
           FROM delivery INDEXED BY delivery_message
           LEFT JOIN member ON member.room_id = delivery.room_id AND member.handle = delivery.handle
           WHERE delivery.room_id = ? AND message_id = ?""",
        room.id, message.id,
    )  # fmt: skip
    receipts = {row[0]: views.receipt(row) for row in rows}
    for mention in message.mentions:
        if mention.handle not in receipts:
            receipts[mention.handle] = views_pb2.Receipt(handle=mention.handle, mention=mention.state)
    return service_pb2.ListReceiptsResponse(receipts=[receipts[handle] for handle in sorted(receipts)])


def get_delivery(
    tables: Tables, request: service_pb2.GetDeliveryRequest, context: Context
) -> service_pb2.GetDeliveryResponse:
    """Refused when the caller's queue has no such delivery."""
    queue = loads_deliveries.find_queue(tables, request.room, request.seat, context)
    delivery = loads_deliveries.find_delivery(tables, queue, request.message, session_of(context))
    if delivery is None:
        raise Refusal("delivery.not_found", f"the queue of @{queue.name} has no message {request.message[:36]!r}")
    message = _message(tables, queue.room, delivery.message_id, context)
    earlier = _earlier(tables, queue.room, message, context)
    sql = "SELECT reason FROM delivery WHERE room_id = ? AND queue = ? AND message_id = ?"
    row = tables.one(sql, queue.room.id, queue.name, delivery.message_id)
    assert row is not None
    return service_pb2.GetDeliveryResponse(message=message, earlier=earlier, reason=row[0])


def _earlier(
    tables: Tables, room: RoomRow, message: views_pb2.Message, context: Context
) -> Iterable[views_pb2.Message]:
    """What was said in the same channel or thread before, since the receiver last spoke there; oldest first."""
    spoke = tables.one(
        """SELECT sequence FROM message WHERE room_id = ? AND sender_handle = ? AND thread = ? AND sequence < ?
           AND message_type NOT IN ('notice', 'change') ORDER BY sequence DESC LIMIT 1""",
        room.id, speaker(context), message.thread, message.sequence,
    )  # fmt: skip
    sql = f"""{views.MESSAGE} WHERE message.room_id = ? AND thread = ? AND sequence < ? AND sequence > ?
              ORDER BY sequence DESC LIMIT ?"""
    found: list[views_pb2.Message] = []
    size = 0
    after = spoke[0] if spoke else 0
    for row in tables.iterate(sql, room.id, message.thread, message.sequence, after, EARLIER_LOOKED_AT):
        before = views.message(row, clock.millis(context.now))
        if before.message_type == NOTICE:
            continue
        size += before.ByteSize()
        if size > EARLIER_BYTES or len(found) == EARLIER:
            break
        found.append(before)
    return reversed(found)


def read_feed(tables: Tables, request: service_pb2.ReadFeedRequest, context: Context) -> service_pb2.ReadFeedResponse:
    """Facts in the log's order, in pages."""
    if len(request.rooms) > ROOMS_MOST:
        raise Refusal("request.invalid", f"{len(request.rooms)} rooms are named, at most {ROOMS_MOST} are allowed")
    rooms = [lookup.find_room(tables, text, context).id for text in request.rooms]
    limit, size = min(request.limit or FEED, FEED_MOST), 0
    page = service_pb2.ReadFeedResponse(truncated=request.after < tables.kept_after)
    after, until = (min(place, LAST_SEQUENCE) for place in (request.after, request.until or LAST_SEQUENCE))
    for row in tables.feed(rooms, after, until):
        size += len(row.data)
        if page.facts and (size > PAGE_BYTES or len(page.facts) >= limit):
            page.more = True
            break
        page.facts.add(sequence=row.sequence, type=row.type, data=row.data)
    return page
