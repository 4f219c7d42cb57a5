"""How each fact changes the tables. Only they are looked at, so a rebuild gives the same rows."""

from __future__ import annotations

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.lookalikes import skeleton
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables
from mycelium_rooms import joining, search
from mycelium_rooms.model import CHANGE, NOTICE

OFFERED, DELIVERED = views_pb2.DELIVERY_STATE_OFFERED, views_pb2.DELIVERY_STATE_DELIVERED
ACKNOWLEDGED = views_pb2.DELIVERY_STATE_ACKNOWLEDGED
QUEUED = views_pb2.DELIVERY_STATE_QUEUED
MENTION = views_pb2.DELIVERY_REASON_MENTION


def room_created(tables: Tables, event: events_pb2.RoomCreated, _stored: Stored) -> None:
    tables.execute(
        "INSERT INTO room VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
        event.room_id, event.name, names.fold_room_name(event.name), event.title, event.private, event.created_by,
        clock.to_millis(event.created_at), clock.to_millis(event.imported_at) if event.importing else 0,
    )  # fmt: skip


def room_changed(tables: Tables, event: events_pb2.RoomChanged, _stored: Stored) -> None:
    tables.execute(
        "UPDATE room SET title = ?, private = ? WHERE room_id = ?", event.title, event.private, event.room_id
    )


def room_deleted(tables: Tables, event: events_pb2.RoomDeleted, _stored: Stored) -> None:
    """The kernel takes the room out of the tables; this is what is left of it."""
    tables.execute("INSERT OR REPLACE INTO grave VALUES (?, ?)", event.room_id, clock.to_millis(event.deleted_at))


def facts_imported(tables: Tables, event: events_pb2.FactsImported, _stored: Stored) -> None:
    at = clock.to_millis(event.imported_at)
    tables.execute("UPDATE room SET importing = ? WHERE room_id = ? AND importing > 0", at, event.room_id)


def room_imported(tables: Tables, event: events_pb2.RoomImported, _stored: Stored) -> None:
    tables.execute("UPDATE room SET importing = 0 WHERE room_id = ?", event.room_id)


def folder_set(tables: Tables, event: events_pb2.FolderSet, _stored: Stored) -> None:
    tables.execute("DELETE FROM folder WHERE room_id = ? AND handle = ?", event.room_id, event.handle)
    if event.folder:
        tables.execute("INSERT INTO folder VALUES (?, ?, ?)", event.room_id, event.handle, event.folder)


def user_saved(tables: Tables, event: events_pb2.UserSaved, _stored: Stored) -> None:
    tables.execute(
        "INSERT OR REPLACE INTO user VALUES (?, ?, ?, ?, ?, ?, ?)",
        event.handle, event.name, event.team, clock.to_millis(event.created_at), clock.to_millis(event.updated_at),
        skeleton(event.handle), skeleton(event.name),
    )  # fmt: skip


def member_saved(tables: Tables, event: events_pb2.MemberSaved, _stored: Stored) -> None:
    member = event.member
    tables.execute(
        "INSERT OR REPLACE INTO member VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)",
        event.room_id, member.handle, member.kind, member.owner, member.team, member.paused, member.SerializeToString(),
        skeleton(member.handle),
    )  # fmt: skip
    joining.end_with_right(tables, event.room_id, member)


def member_removed(tables: Tables, event: events_pb2.MemberRemoved, _stored: Stored) -> None:
    """Its queue is kept, for when it joins again."""
    tables.execute("UPDATE member SET has_left = 1 WHERE room_id = ? AND handle = ?", event.room_id, event.handle)
    joining.forget(tables, event.room_id, event.handle)


def message_posted(tables: Tables, event: events_pb2.MessagePosted, stored: Stored) -> None:
    at = clock.to_millis(event.created_at)
    latest = "UPDATE room SET last_message_at = max(last_message_at, ?) WHERE room_id = ?"
    tables.execute(latest, at, event.room_id)
    row = tables.one("SELECT last_message_at FROM room WHERE room_id = ?", event.room_id)
    tables.execute(
        "INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)",
        stored.sequence, event.room_id, event.message_id, event.sender_handle, event.content, event.message_type,
        event.thread, event.reply_to, event.metadata_json, _mentions(event), at, row[0] if row else at,
        event.kind, event.status, clock.to_millis(event.expires_at), search.words(event.content),
    )  # fmt: skip
    if event.thread:
        tables.execute("INSERT OR IGNORE INTO thread VALUES (?, ?)", event.room_id, event.thread)
    for place, queue in enumerate(event.deliver_to):
        reason = event.reasons[place] if event.reasons else MENTION
        _queue(tables, event.room_id, queue, event.message_id, stored.sequence, event.thread, reason)
    if event.message_type in {NOTICE, CHANGE}:  # nobody has said it
        return
    _seen(tables, event.room_id, event.sender_handle, at)
    _answered(tables, event)
    _acknowledge_received(tables, event, at)


def _mentions(event: events_pb2.MessagePosted | events_pb2.MessageAmended) -> bytes:
    return views_pb2.Message(mentions=event.mentions).SerializeToString()


def _seen(tables: Tables, room_id: str, handle: str, at: int) -> None:
    upsert = "INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"
    tables.execute(upsert, room_id, handle, at)


def _queue(
    tables: Tables,
    room_id: str,
    queue: str,
    message_id: str,
    sequence: int,
    thread: str,
    reason: views_pb2.DeliveryReason.ValueType = MENTION,
) -> None:
    handle = queue.partition("#")[0]
    insert = "INSERT OR IGNORE INTO delivery VALUES (?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, ?)"
    if tables.execute(insert, room_id, queue, message_id, handle, sequence, thread, QUEUED, reason):
        upsert = "INSERT INTO unread VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET deliveries = deliveries + 1"
        tables.execute(upsert, room_id, handle)


def _answered(tables: Tables, event: events_pb2.MessagePosted) -> None:
    """A reply answers the deliveries of the message that it replies to, in every queue of the sender."""
    if not event.reply_to:
        return
    sql = "SELECT queue FROM delivery INDEXED BY delivery_message WHERE room_id = ? AND message_id = ? AND handle = ?"
    for row in tables.all(sql, event.room_id, event.reply_to, event.sender_handle):
        for table in ("delivery", "holding"):
            update = f"UPDATE {table} SET answered = 1 WHERE room_id = ? AND queue = ? AND message_id = ?"  # noqa: S608
            tables.execute(update, event.room_id, row[0], event.reply_to)


def _acknowledge_received(tables: Tables, event: events_pb2.MessagePosted, at: int) -> None:
    """Who speaks has dealt with what it received in this session."""
    received = tables.all(
        """SELECT queue, message_id FROM holding INDEXED BY holding_received
           WHERE room_id = ? AND handle = ? AND session = ? AND received = 1 AND ended = 0""",
        event.room_id, event.sender_handle, event.session,
    )  # fmt: skip
    for queue, message_id in received:
        _end(tables, event.room_id, queue, message_id, ACKNOWLEDGED, at)


def _end(
    tables: Tables, room_id: str, queue: str, message_id: str, state: views_pb2.DeliveryState.ValueType, at: int
) -> None:
    """The first end of a delivery stands, for every session that was given it."""
    of = "WHERE room_id = ? AND queue = ? AND message_id = ?"
    update = f"UPDATE delivery SET state = ?, ended_at = ? {of} AND ended_at = 0"  # noqa: S608 - fixed text
    if tables.execute(update, state, at, room_id, queue, message_id):
        counted = "UPDATE unread SET deliveries = deliveries - 1 WHERE room_id = ? AND handle = ?"
        tables.execute(counted, room_id, queue.partition("#")[0])
    tables.execute(f"UPDATE holding SET ended = 1 {of}", room_id, queue, message_id)  # noqa: S608 - fixed text


def message_amended(tables: Tables, event: events_pb2.MessageAmended, stored: Stored) -> None:
    at, of = clock.to_millis(event.amended_at), (event.room_id, event.message_id)
    tables.execute(
        """INSERT INTO revision SELECT room_id, message_id, ?, content, max(created_at, edited_at) FROM message
           WHERE room_id = ? AND message_id = ?""",
        stored.sequence, *of,
    )  # fmt: skip
    tables.execute(
        "UPDATE message SET content = ?, words = ?, mentions = ?, edited_at = ? WHERE room_id = ? AND message_id = ?",
        event.content, search.words(event.content), _mentions(event), at, *of,
    )  # fmt: skip
    sql = "SELECT thread FROM message WHERE room_id = ? AND message_id = ?"
    row = tables.one(sql, *of)
    for queue in event.deliver_to if row else ():
        _queue(tables, event.room_id, queue, event.message_id, stored.sequence, row[0] if row else "")


def event_status_set(tables: Tables, event: events_pb2.EventStatusSet, _stored: Stored) -> None:
    update = "UPDATE message SET status = ? WHERE room_id = ? AND message_id = ?"
    tables.execute(update, event.status, event.room_id, event.message_id)


def delivery_offered(tables: Tables, event: events_pb2.DeliveryOffered, stored: Stored) -> None:
    at, handle = clock.to_millis(event.offered_at), event.queue.partition("#")[0]
    _seen(tables, event.room_id, handle, at)
    for message_id in event.acknowledged:
        _end(tables, event.room_id, event.queue, message_id, ACKNOWLEDGED, at)
    if not event.message_id:
        return
    tables.execute(
        """UPDATE delivery SET state = max(state, ?), session = ?, attempts = ?, offered_at = ?
           WHERE room_id = ? AND queue = ? AND message_id = ?""",
        OFFERED, event.session, event.attempt, at, event.room_id, event.queue, event.message_id,
    )  # fmt: skip
    tables.execute(
        """INSERT INTO holding SELECT room_id, queue, message_id, ?, handle, ?, 0, answered, ended_at > 0 FROM delivery
           WHERE room_id = ? AND queue = ? AND message_id = ? ON CONFLICT DO UPDATE SET given = excluded.given""",
        event.session, stored.sequence, event.room_id, event.queue, event.message_id,
    )  # fmt: skip


def delivery_marked(tables: Tables, event: events_pb2.DeliveryMarked, _stored: Stored) -> None:
    if event.state != DELIVERED:
        _end(tables, event.room_id, event.queue, event.message_id, event.state, clock.to_millis(event.marked_at))
        return
    of = "WHERE room_id = ? AND queue = ? AND message_id = ?"
    tables.execute(
        f"UPDATE delivery SET state = max(state, ?) {of}",  # noqa: S608 - fixed text
        DELIVERED, event.room_id, event.queue, event.message_id,
    )  # fmt: skip
    tables.execute(
        f"UPDATE holding SET received = 1 {of} AND session = ?",  # noqa: S608 - fixed text
        event.room_id, event.queue, event.message_id, event.session,
    )  # fmt: skip
