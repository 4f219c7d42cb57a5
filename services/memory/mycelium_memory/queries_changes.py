"""Reads which documents have changed between two places of the log, for who followed them and missed some."""

from __future__ import annotations

import heapq

from mycelium.memory.v1 import changes_pb2
from mycelium_kernel import clock, patterns, rooms_seen
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, Tables

ROOMS = 100
CHANGES = 500  # a page
LOOKED_AT = 5_000  # versions that a page looks at, whether or not they match
VERSIONS = """SELECT version.sequence, version.room_id, key, folded, version.version, version.removed, author, at,
    origin, moved_from
  FROM version INDEXED BY version_sequence CROSS JOIN document USING (room_id, document_id)
  WHERE version.room_id = ? AND version.sequence > ? AND version.sequence <= ? ORDER BY version.sequence"""


def list_changes(
    tables: Tables, request: changes_pb2.ListChangesRequest, context: Context
) -> changes_pb2.ListChangesResponse:
    """In the log's order, page by page. Each room is walked down its own index, so that nothing is sorted."""
    if len(request.rooms) > ROOMS:
        raise Refusal("request.invalid", f"{len(request.rooms)} rooms are named, at most {ROOMS} are allowed")
    wanted = patterns.read_all(request.patterns)
    rooms = dict.fromkeys(rooms_seen.find_room(tables, text, context).id for text in request.rooms)
    after, until = (min(place, LAST_SEQUENCE) for place in (request.after, request.until or LAST_SEQUENCE))
    page = changes_pb2.ListChangesResponse(looked=after)
    looked_at = 0
    for row in heapq.merge(*(tables.iterate(VERSIONS, room, after, until) for room in rooms)):
        if looked_at >= LOOKED_AT or len(page.changes) >= CHANGES:
            page.more = True
            break
        looked_at, page.looked = looked_at + 1, row[0]
        if any(pattern.fits(row[3]) for pattern in wanted):
            page.changes.add(
                sequence=row[0], room_id=row[1], key=row[2], version=row[4], removed=bool(row[5]), updated_by=row[6],
                updated_at=clock.from_millis(row[7]), origin=row[8], moved_from=row[9],
            )  # fmt: skip
    return page
