"""Reads a room's history in pages: the newest first, filtered, from a window of time.

Each combination of filters walks one index from the newest message back and stops when the page is full, or when it
has looked at so many that the caller is better told to ask again from there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import clock, limits, names
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, PAGE_BYTES, Tables
from mycelium_rooms import lookup, search, times, views
from mycelium_rooms.commands_events import KIND, STATUSES
from mycelium_rooms.model import EXPIRED, RoomRow

LIMIT, LIMIT_MOST = 50, 500
LOOKED_AT = 20_000  # messages that one page looks at, about 50 ms
NAMED = re.compile(r":([a-z]+)")  # a parameter of the SQL below

STANDING = """CASE WHEN expires_at > 0 AND expires_at <= :now AND status != 'resolved' THEN 'expired' ELSE status END"""
FITS = f"""(:everywhere OR thread = :thread) AND (:sender = '' OR sender_handle = :sender)
  AND (:kind = '' OR kind = :kind) AND (:status = '' OR {STANDING} = :status)"""
WINDOW = "message.sequence < :before AND message.sequence >= :since ORDER BY message.sequence DESC"
# Which index each walk takes, and what narrows it.
WALKS = {
    "place": "message INDEXED BY message_place WHERE room_id = :room AND thread = :thread",
    "room": "message INDEXED BY message_room WHERE room_id = :room",
    "sender": """message INDEXED BY message_sender
      WHERE room_id = :room AND sender_handle = :sender AND thread = :thread""",
    "kind": "message INDEXED BY message_kind WHERE room_id = :room AND kind = :kind AND kind != ''",
    "status": "message INDEXED BY message_status WHERE room_id = :room AND status = :status AND status != ''",
    "expired": "message INDEXED BY message_expiring WHERE room_id = :room AND expires_at > 0",
}
WORDS = f"""SELECT message.sequence, created_at, {FITS} FROM message_words CROSS JOIN message
  ON message.sequence = message_words.rowid WHERE message_words MATCH :question
  AND message_words.rowid < :before AND message_words.rowid >= :since ORDER BY message_words.rowid DESC"""  # noqa: S608


@dataclass(frozen=True)
class Wanted:
    """What a page is to hold. `thread` counts unless `everywhere`; empty filters take all."""

    room: RoomRow
    thread: str
    everywhere: bool
    sender: str
    kind: str
    status: str
    phrases: list[str]

    @property
    def walk(self) -> str:
        """The name of the index that is walked: the narrowest."""
        if self.phrases or (self.sender and self.everywhere):
            return "words"
        if self.status:
            return "expired" if self.status == EXPIRED else "status"
        if self.kind:
            return "kind"
        if self.everywhere:
            return "room"
        return "sender" if self.sender else "place"

    @property
    def question(self) -> str:
        """What the index of words is asked."""
        room_id = self.room.id
        places = [search.of_room(room_id) if self.everywhere else search.of_thread(room_id, self.thread)]
        places += [search.of_sender(room_id, self.sender)] if self.sender else []
        places += [search.of_kind(room_id, self.kind)] if self.kind else []
        return search.question(places, self.phrases)


def list_messages(
    tables: Tables, request: service_pb2.ListMessagesRequest, context: Context
) -> service_pb2.ListMessagesResponse:
    """Newest first, in the room's one order. The cursor names the place from which the next page goes on."""
    limit = limits.rows(request.limit, LIMIT, LIMIT_MOST)
    wanted, zone = _wanted(tables, request, context), times.zone(request.zone)
    room = wanted.room
    before = _sequence(tables, room, times.place("before", request.before, context.now, zone)) if request.before else 0
    since = _sequence(tables, room, times.place("since", request.since, context.now, zone)) if request.since else 0
    now, page, size, looked_at = clock.millis(context.now), service_pb2.ListMessagesResponse(), 0, 0
    sql, values = statement(wanted, before or LAST_SEQUENCE, since, now)
    for sequence, created_at, fits in tables.iterate(sql, *values):
        looked_at += 1
        if not fits:
            if looked_at >= LOOKED_AT:
                page.older_before = times.cursor(created_at, sequence)
                break
            continue
        message = _message(tables, sequence, now)
        size += message.ByteSize()
        if page.messages and (size > PAGE_BYTES or len(page.messages) >= limit):
            oldest = page.messages[-1]
            page.older_before = times.cursor(clock.to_millis(oldest.created_at), oldest.sequence)
            break
        page.messages.append(message)
    return page


def _wanted(tables: Tables, request: service_pb2.ListMessagesRequest, context: Context) -> Wanted:
    room = lookup.find_room(tables, request.room, context)
    thread = lookup.find_thread(tables, room, request.thread)
    kind, status = request.kind.strip(), request.status.strip()
    if kind and not KIND.fullmatch(kind):
        raise Refusal("request.invalid", f"kind is {kind[:64]!r}: use 1 to 64 of a-z 0-9 _ -")
    if status and status not in {*STATUSES, EXPIRED}:
        raise Refusal("request.invalid", f"status is {status[:64]!r}: use {', '.join(STATUSES)} or {EXPIRED}")
    return Wanted(
        room=room,
        thread=thread,
        everywhere=not thread and (request.all or bool(kind or status)),
        sender=names.handle(request.sender) if request.sender.strip() else "",
        kind=kind,
        status=status,
        phrases=search.phrases(request.query) if request.query else [],
    )


def statement(wanted: Wanted, before: int, since: int, now: int) -> tuple[str, list[object]]:
    """The SQL of a walk, newest first, and its parameters: sequence, time, and whether the message is wanted."""
    walk = wanted.walk
    # Fixed texts all of them.
    sql = WORDS if walk == "words" else f"SELECT sequence, created_at, {FITS} FROM {WALKS[walk]} AND {WINDOW}"  # noqa: S608
    values: dict[str, object] = {
        "room": wanted.room.id,
        "thread": wanted.thread,
        "everywhere": wanted.everywhere,
        "sender": wanted.sender,
        "kind": wanted.kind,
        "status": wanted.status,
        "question": wanted.question if walk == "words" else "",
        "before": before,
        "since": since,
        "now": now,
    }
    used = list(dict.fromkeys(NAMED.findall(sql)))
    return NAMED.sub(lambda match: f"?{used.index(match[1]) + 1}", sql), [values[name] for name in used]


def _message(tables: Tables, sequence: int, now: int) -> views_pb2.Message:
    row = tables.one(f"{views.MESSAGE} WHERE sequence = ?", sequence)
    assert row is not None
    return views.message(row, now)


def _sequence(tables: Tables, room: RoomRow, place: times.Place) -> int:
    """The place in the log that a time or cursor gives: of the room's first message at or after it.

    Times go up with sequences within a room (`ordered_at`), so it is found by halving.
    """
    if place.sequence:
        return place.sequence
    ends = "SELECT sequence FROM message INDEXED BY message_room WHERE room_id = ? ORDER BY sequence"
    first, last = tables.one(f"{ends} LIMIT 1", room.id), tables.one(f"{ends} DESC LIMIT 1", room.id)
    low, high = (first[0], last[0] + 1) if first and last else (1, 1)
    sql = """SELECT sequence, ordered_at FROM message INDEXED BY message_room
             WHERE room_id = ? AND sequence >= ? ORDER BY sequence LIMIT 1"""
    while low < high:
        middle = (low + high) // 2
        found = tables.one(sql, room.id, middle)
        if found is None or found[1] >= place.millis:
            high = middle
        else:
            low = found[0] + 1
    return low
