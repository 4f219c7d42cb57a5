"""Reads what decisions on messages need: the room, the thread, whom the text names, and what a reply is to."""

from __future__ import annotations

from collections.abc import Callable

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel.callers import speaker
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables
from mycelium_rooms import addressees, lookup
from mycelium_rooms.commands_messages import Addressee, Amending, Posting, strangers
from mycelium_rooms.commands_text import check_content
from mycelium_rooms.model import CHANGE, NOTICE, RoomRow, session_of
from mycelium_rooms.waits import Waits


def for_post(waits: Waits) -> Callable[[Tables, service_pb2.PostMessageRequest, Context], Posting]:
    """The load of PostMessage, with the waits that it looks at."""

    def load(tables: Tables, request: service_pb2.PostMessageRequest, context: Context) -> Posting:
        room, sender = lookup.find_room(tables, request.room, context), speaker(context)
        if request.respond:
            lookup.require_registered(tables, room, sender)
        thread, reply_to = _place(tables, room, request, context)
        named = addressees.find(tables, waits, room, sender, check_content(request.content), thread)
        near = _near(tables, room, named, sender)
        by_engine = _by_engine(tables, room, named, sender)
        return Posting(room, lookup.user_name(tables, sender), thread, reply_to, named, near, by_engine)

    return load


def _by_engine(tables: Tables, room: RoomRow, named: tuple[Addressee, ...], sender: str) -> bool:
    """Whether an engine speaks; looked up only where it makes a difference."""
    return any(one.engine for one in named) and addressees.is_engine(tables, room, sender)


def _near(tables: Tables, room: RoomRow, named: tuple[Addressee, ...], sender: str) -> list[str]:
    unknown = strangers(named, sender)
    return addressees.near(tables, room, unknown[0].handle) if unknown else []


def _place(tables: Tables, room: RoomRow, request: service_pb2.PostMessageRequest, context: Context) -> tuple[str, str]:
    """Thread and message replied to: what the request says, and for a response what it leaves open.

    A response goes to the thread of the message it answers; by default that is the one which the session was given
    last and has not answered, in the thread if the request names one.
    """
    thread = lookup.find_thread(tables, room, request.thread)
    reply_to = lookup.find_message(tables, room, request.reply_to) if request.reply_to.strip() else ""
    if not request.respond:
        return thread, reply_to
    if reply_to:
        row = tables.one("SELECT thread FROM message WHERE room_id = ? AND message_id = ?", room.id, reply_to)
        return thread or (str(row[0]) if row else ""), reply_to
    row = tables.one(
        """SELECT delivery.thread, message_id FROM holding INDEXED BY holding_unanswered
           JOIN delivery USING (room_id, queue, message_id)
           WHERE room_id = ?1 AND holding.handle = ?2 AND holding.session = ?3 AND holding.answered = 0
             AND (?4 = '' OR delivery.thread = ?4) ORDER BY given DESC LIMIT 1""",
        room.id, speaker(context), session_of(context), thread,
    )  # fmt: skip
    return (str(row[0]), str(row[1])) if row else (thread, "")


def for_amend(waits: Waits) -> Callable[[Tables, service_pb2.AmendMessageRequest, Context], Amending]:
    """The load of AmendMessage, with the waits that it looks at."""

    def load(tables: Tables, request: service_pb2.AmendMessageRequest, context: Context) -> Amending:
        room, sender = lookup.find_room(tables, request.room, context), speaker(context)
        message_id = lookup.find_message(tables, room, request.message)
        sql = """SELECT sender_handle, content, mentions, message_type, thread FROM message
                 WHERE room_id = ? AND message_id = ?"""
        row = tables.one(sql, room.id, message_id)
        assert row is not None
        named = addressees.find(tables, waits, room, sender, check_content(request.content), row[4])
        near = _near(tables, room, named, sender)
        mentions = tuple(views_pb2.Message.FromString(row[2]).mentions)
        by_engine = _by_engine(tables, room, named, sender)
        author = "" if row[3] in {NOTICE, CHANGE} else row[0]
        return Amending(room, message_id, author, row[1], mentions, named, near, by_engine)

    return load
