"""Reads what has changed in a room's memory since its last synthesis, for who starts to work there."""

from __future__ import annotations

from mycelium.memory.v1 import catchup_pb2
from mycelium_kernel import clock, limits, rooms_seen, times
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, Tables
from mycelium_memory import keys, views

SYNTHESIS = keys.fold("context/synthesis")  # the document that sums a room up, whoever writes it
LAST_DAYS = "7d"  # without a synthesis: a week, so that who comes on Monday sees Thursday
CHANGES, CHANGES_MOST = 20, 100
TEXT_CHARACTERS = 16_000  # of the synthesis that are shown
NEWEST = """SELECT key, version, updated_by, updated_at, removed, summary, thread FROM document
  INDEXED BY document_changed WHERE room_id = ? AND updated_at >= ? AND folded != ?
  ORDER BY updated_at DESC, sequence DESC LIMIT ?"""


def catch_up(tables: Tables, request: catchup_pb2.CatchUpRequest, context: Context) -> catchup_pb2.CatchUpResponse:
    """Each document once, as it is now: who starts to work needs what stands, not how it came about."""
    room = rooms_seen.find_room(tables, request.room, context)
    limit = limits.rows(request.limit, CHANGES, CHANGES_MOST)
    answer = _synthesis(tables, room)
    since, answer.since_what = _since(request, answer, context)
    answer.since.CopyFrom(clock.from_millis(since))
    rows = tables.all(NEWEST, room.id, since, SYNTHESIS, limit + 1)
    for key, version, author, at, removed, summary, thread in rows[:limit]:
        answer.documents.add(
            key=key, version=version, updated_by=author, updated_at=clock.from_millis(at), removed=bool(removed),
            summary=summary, thread=thread,
        )  # fmt: skip
    answer.more = len(rows) > limit
    return answer


def _synthesis(tables: Tables, room: RoomRow) -> catchup_pb2.CatchUpResponse:
    """An answer that holds the synthesis and nothing else yet."""
    answer = catchup_pb2.CatchUpResponse()
    sql = f"{views.DOCUMENT} INDEXED BY document_folded WHERE room_id = ? AND folded = ? AND removed = 0"
    row = tables.one(sql, room.id, SYNTHESIS)
    if row is not None:
        answer.synthesis.CopyFrom(views.document(row, room))
        content = answer.synthesis.content
        del content.links[:], content.headings[:]  # of the whole text
        field = "value_json" if content.value_json else "body"
        text = getattr(content, field)
        answer.cut = len(text) > TEXT_CHARACTERS
        if answer.cut:
            content.ClearField("value_json")  # half a value is none; it is shown as the text that it was
            content.body = text[:TEXT_CHARACTERS]
    return answer


def _since(
    request: catchup_pb2.CatchUpRequest, answer: catchup_pb2.CatchUpResponse, context: Context
) -> tuple[int, catchup_pb2.SinceWhat.ValueType]:
    """From when on, in milliseconds, and why."""
    if request.since.strip():
        found = times.asked("since", request.since, context.now, times.zone(request.zone))
        return min(max(found, 0), LAST_SEQUENCE), catchup_pb2.SINCE_WHAT_ASKED
    if answer.HasField("synthesis"):
        return clock.to_millis(answer.synthesis.updated_at), catchup_pb2.SINCE_WHAT_SYNTHESIS
    return times.millis(LAST_DAYS, context.now) or 0, catchup_pb2.SINCE_WHAT_LAST_DAYS
