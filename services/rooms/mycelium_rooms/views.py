"""Rows of the tables as the nouns that queries answer with. Names of people are looked up as they are now."""

from __future__ import annotations

from typing import Any

from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import clock
from mycelium_rooms.model import standing_status

MESSAGE = """SELECT sequence, message.room_id, message_id, sender_handle, content, message_type, thread, reply_to,
  metadata_json, mentions, message.created_at, edited_at, room.name, coalesce(user.name, ''), status, expires_at
  FROM message JOIN room ON room.room_id = message.room_id LEFT JOIN user ON user.handle = sender_handle"""

USER = "SELECT handle, name, team, created_at, updated_at FROM user"
ROOM = """SELECT room.room_id, room.name, title, private, created_by, room.created_at, last_message_at,
  (SELECT count(*) FROM member WHERE member.room_id = room.room_id AND has_left = 0), coalesce(folder, '')
  FROM room LEFT JOIN folder ON folder.room_id = room.room_id AND folder.handle = ?1"""  # for ?1, the handle that asks
GIVEN = (views_pb2.DELIVERY_STATE_OFFERED, views_pb2.DELIVERY_STATE_DELIVERED)
# For ?1, the handle that asks: a room is seen by all, unless it is private; then by its creator and its members. A room
# that is being imported is seen by nobody.
VISIBLE = """(NOT room.importing AND (NOT room.private OR (?1 != '' AND (room.created_by = ?1 OR
  EXISTS (SELECT 1 FROM member AS own WHERE own.room_id = room.room_id AND own.handle = ?1 AND own.has_left = 0)))))"""
# For ?1 as above, the kind of the handle ?2.
KIND = f"""SELECT min(kind) FROM member JOIN room USING (room_id)
  WHERE handle = ?2 AND has_left = 0 AND {VISIBLE}"""  # noqa: S608 - fixed text
# For ?1 as above, the agents of the user ?2.
OWNED = f"""SELECT room.name, member.handle FROM member JOIN room USING (room_id)
  WHERE owner = ?2 AND has_left = 0 AND {VISIBLE} ORDER BY folded, member.handle LIMIT 1000"""  # noqa: S608 - fixed text

MEMBER = """SELECT record, coalesce(user.name, ''), coalesce(seen.at, 0), coalesce(deliveries, 0),
  (SELECT coalesce(max(offered_at), 0) FROM delivery INDEXED BY delivery_given
   WHERE delivery.room_id = member.room_id AND delivery.handle = member.handle
     AND ended_at = 0 AND attempts > 0 AND answered = 0)
  FROM member LEFT JOIN user ON user.handle = member.handle
  LEFT JOIN unread ON unread.room_id = member.room_id AND unread.handle = member.handle
  LEFT JOIN seen ON seen.room_id = member.room_id AND seen.handle = member.handle"""


def message(row: tuple[Any, ...], now: int) -> views_pb2.Message:
    """A row of `MESSAGE`, as it is at a moment (milliseconds)."""
    shown = views_pb2.Message(
        sequence=row[0],
        room_id=row[1],
        id=row[2],
        sender_handle=row[3],
        content=row[4],
        message_type=row[5],
        thread=row[6],
        reply_to=row[7],
        metadata_json=row[8],
        mentions=views_pb2.Message.FromString(row[9]).mentions,
        created_at=clock.from_millis(row[10]),
        room=row[12],
        sender_name=row[13],
        status=standing_status(row[14], row[15], now),
    )
    if row[15]:
        shown.expires_at.CopyFrom(clock.from_millis(row[15]))
    if row[11]:
        shown.edited_at.CopyFrom(clock.from_millis(row[11]))
    return shown


def room(row: tuple[Any, ...]) -> views_pb2.Room:
    """A row of `ROOM`."""
    shown = views_pb2.Room(
        id=row[0],
        name=row[1],
        title=row[2],
        private=bool(row[3]),
        created_by=row[4],
        created_at=clock.from_millis(row[5]),
        members=row[7],
        folder=row[8],
    )
    if row[6]:
        shown.last_message_at.CopyFrom(clock.from_millis(row[6]))
    return shown


def member(row: tuple[Any, ...]) -> views_pb2.Member:
    """A row of `MEMBER`, but for what the member is doing."""
    shown = views_pb2.Member.FromString(row[0])
    shown.name, shown.unread = row[1], row[3]
    if row[2]:
        shown.last_seen.CopyFrom(clock.from_millis(row[2]))
    return shown


def user(row: tuple[Any, ...]) -> views_pb2.User:
    """A row of `USER`."""
    handle, name, team, created_at, updated_at = row
    return views_pb2.User(
        handle=handle,
        name=name,
        team=team,
        created_at=clock.from_millis(created_at),
        updated_at=clock.from_millis(updated_at),
    )


def receipt(row: tuple[Any, ...]) -> views_pb2.Receipt:
    """Queue, state, attempts, session, time given out, time ended, and whether the member has left or is paused."""
    shown = views_pb2.Receipt(handle=row[0], state=row[1], attempts=row[2], session=row[3])
    if row[1] in GIVEN and row[2] > 1:
        shown.state = views_pb2.DELIVERY_STATE_REDELIVERED
    if row[1] == views_pb2.DELIVERY_STATE_QUEUED and (row[6] or row[7]):
        shown.mention = views_pb2.MENTION_STATE_LEFT if row[6] else views_pb2.MENTION_STATE_PAUSED
    if row[4]:
        shown.delivered_at.CopyFrom(clock.from_millis(row[4]))
    if row[5]:
        shown.ended_at.CopyFrom(clock.from_millis(row[5]))
    return shown
