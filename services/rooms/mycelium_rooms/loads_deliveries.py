"""Reads what decisions on deliveries need. A queue may be long, so its deliveries are rows, not the entity's state."""

from __future__ import annotations

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.callers import speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import addressees, lookup
from mycelium_rooms.commands_deliveries import Delivery, Marking, Queue, Taking
from mycelium_rooms.model import ROOMS, RoomRow, session_of

NEXT, NEXT_OF_THREAD = (
    f"""SELECT message_id, state, attempts FROM delivery INDEXED BY {index}
        WHERE room_id = ?1 AND queue = ?2 AND ended_at = 0 AND {place} AND message_id != ?4
          AND NOT EXISTS (SELECT 1 FROM holding WHERE holding.room_id = ?1 AND holding.queue = ?2 AND received = 1
                          AND holding.message_id = delivery.message_id AND holding.session = ?5)
        ORDER BY sequence LIMIT 1"""  # noqa: S608 - fixed texts
    for index, place in (("delivery_open", "?3 = ''"), ("delivery_thread", "thread = ?3"))
)
RECEIVED = 500  # deliveries that one call can end; the next call ends more


def find_queue(tables: Tables, room: str, seat: str, context: Context) -> Queue:
    """The caller's own queue in a room. Refused when the caller is nobody there."""
    found, handle = lookup.find_room(tables, room, context), speaker(context)
    lookup.require_registered(tables, found, handle)
    name = names.queue(handle, names.seat(seat))
    subject = subjects.fact(ROOMS, found.id, "queue", name)
    return Queue(found, name, tables.entity(subject, events_pb2.QueueState))


def for_take(tables: Tables, request: service_pb2.TakeDeliveryRequest, context: Context) -> Taking:
    queue, session = find_queue(tables, request.room, request.seat, context), session_of(context)
    thread = lookup.find_thread(tables, queue.room, request.thread)
    named = find_delivery(tables, queue, request.acknowledge, session)
    rows = tables.all(
        """SELECT message_id FROM holding INDEXED BY holding_received
           WHERE room_id = ? AND handle = ? AND session = ? AND queue = ?
           AND received = 1 AND ended = 0 ORDER BY given LIMIT ?""",
        queue.room.id, speaker(context), session, queue.name, RECEIVED,
    )  # fmt: skip
    following = None
    if not addressees.is_paused(tables, queue.room, speaker(context)):
        following = _following(tables, queue, thread, session, named.message_id if named else "")
    return Taking(queue, tuple(row[0] for row in rows), named, following)


def _following(tables: Tables, queue: Queue, thread: str, session: str, named: str) -> Delivery | None:
    """The oldest delivery for the session, at the front of an index however many wait."""
    row = tables.one(NEXT_OF_THREAD if thread else NEXT, queue.room.id, queue.name, thread, named, session)
    return Delivery(row[0], row[1], row[2]) if row else None


def for_mark(tables: Tables, request: service_pb2.MarkDeliveryRequest, context: Context) -> Marking:
    queue = find_queue(tables, request.room, request.seat, context)
    return Marking(queue, find_delivery(tables, queue, request.message, session_of(context)))


def find_delivery(tables: Tables, queue: Queue, text: str, session: str) -> Delivery | None:
    """The delivery of the queue whose message `text` names, and what `session` has had of it; None without one."""
    message_id = _message(tables, queue.room, text)
    row = tables.one(
        """SELECT message_id, state, attempts, given IS NOT NULL, coalesce(received, 0) FROM delivery
           LEFT JOIN (SELECT message_id AS held, given, received FROM holding
                      WHERE room_id = ?1 AND queue = ?2 AND message_id = ?3 AND session = ?4) ON held = message_id
           WHERE room_id = ?1 AND queue = ?2 AND message_id = ?3""",
        queue.room.id, queue.name, message_id, session,
    )  # fmt: skip
    return Delivery(row[0], row[1], row[2], bool(row[3]), bool(row[4])) if row else None


def _message(tables: Tables, room: RoomRow, text: str) -> str:
    try:
        return lookup.find_message(tables, room, text) if text.strip() else ""
    except Refusal as refusal:
        if refusal.slug == "message.not_found":
            return ""  # then there is no delivery of it either
        raise
