"""Reads the notices of one task, for who waits until it changes hands."""

from __future__ import annotations

from mycelium.rooms.v1 import leases_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import speaker
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, Tables
from mycelium_rooms import lookup, views

# Those after which somebody else may have the task, or nobody; `contracts/l9.json` has all kinds.
WAKING = ("claimed", "released", "resolved", "unblocked", "expired")
# What a notice of an imported room says of a place in the log is of another log; and a move comes before its notice.
NEXT = f"""SELECT sequence, json_extract(metadata_json, '$.sequence') FROM message INDEXED BY message_notice
  WHERE room_id = ?1 AND message_type = 'notice' AND json_valid(metadata_json)
    AND json_extract(metadata_json, '$.thread') = ?2 AND sequence > max(?3, ?4)
    AND typeof(json_extract(metadata_json, '$.sequence')) = 'integer'
    AND json_extract(metadata_json, '$.sequence') > ?3 AND json_extract(metadata_json, '$.sequence') < sequence
    AND kind IN ({", ".join(map(repr, WAKING))})
  ORDER BY sequence LIMIT 1"""  # noqa: S608 - fixed texts


def find_notice(
    tables: Tables, request: leases_pb2.FindNoticeRequest, context: Context
) -> leases_pb2.FindNoticeResponse:
    """Refused to who is nobody in the room, like any wait there."""
    room, handle = lookup.find_room(tables, request.room, context), speaker(context)
    lookup.require_registered(tables, room, handle)
    since, after = (min(place, LAST_SEQUENCE) for place in (request.since, request.after))
    found = tables.one(NEXT, room.id, request.thread, since, after)
    if found is None:
        return leases_pb2.FindNoticeResponse()
    row = tables.one(f"{views.MESSAGE} WHERE sequence = ?", found[0])
    assert row is not None
    return leases_pb2.FindNoticeResponse(message=views.message(row, clock.millis(context.now)), move=found[1])
