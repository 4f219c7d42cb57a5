"""Reads of the board: pages of its rows, in the order in which people look at them, and how many there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_board import readiness, rows, runs
from mycelium_kernel import clock, limits, rooms_seen, subjects, times
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import LAST_SEQUENCE, PAGE_BYTES, Tables

NAMES_BYTES = 400  # of a row's JSON that are names and marks
LIMIT, MOST = 500, 5_000
LOOKED_AT = 2_000  # rows, at most, for one page of those that are ready
CURSOR = re.compile(r"([0-9a-f]{8})~(-?[0-9]{1,2})~(-?[0-9]{1,18})~(.{1,1000})", re.ASCII | re.DOTALL)
FIRST = (-1, -LAST_SEQUENCE, "")
# Places of rows, as in schema.sql.
REVIEW, OPEN, CLOSED = 2, 3, 4

CLAIM = "claim.room_id = task.room_id AND claim.document_id = task.document_id AND claim.expires_at > ?2"
AFTER = "(place, lateness, task.key) > (?4, ?5, ?6) ORDER BY place, lateness, task.key"
# For ?1 the room, ?2 now, ?3 the last place; ?4 to ?6 the place in the order after which they begin.
BY_PLACE = f"""SELECT {rows.COLUMNS} FROM task INDEXED BY task_place LEFT JOIN claim ON {CLAIM}
  WHERE task.room_id = ?1 AND place <= ?3 AND {AFTER}"""  # noqa: S608 - fixed text
HELD = f"""SELECT {rows.COLUMNS} FROM claim CROSS JOIN task ON {CLAIM}
  WHERE claim.room_id = ?1 AND task.room_id = ?1 AND place <= ?3 AND {AFTER}"""  # noqa: S608 - fixed text
# The same, for ?3 the moment since when they are closed, and ?5 one by which they were.
LATELY = f"""SELECT {rows.COLUMNS} FROM task INDEXED BY task_closed LEFT JOIN claim ON {CLAIM}
  WHERE task.room_id = ?1 AND closed_at >= ?3
  AND closed_at <= -?5 AND (closed_at < -?5 OR task.key > ?6) ORDER BY closed_at DESC, task.key"""  # noqa: S608 - fixed text
COUNT_NEEDED = "SELECT count(*) FROM task INDEXED BY task_place WHERE room_id = ?1 AND place <= ?2"
COUNT_HELD = f"""SELECT count(*) FROM claim CROSS JOIN task ON {CLAIM}
  WHERE claim.room_id = ?1 AND task.room_id = ?1 AND place <= ?3"""  # noqa: S608 - fixed text
COUNT_LATELY = """SELECT count(*) FROM task INDEXED BY task_closed
  WHERE room_id = ?1 AND closed_at >= ?2"""


@dataclass(frozen=True)
class Wanted:
    """A request, read: whose rows, when, of which since when, after which place."""

    room: RoomRow
    now: int
    since: int
    group: str
    after: tuple[int, int, str]
    limit: int


def list_tasks(
    tables: Tables, request: service_pb2.ListTasksRequest, context: Context
) -> service_pb2.ListTasksResponse:
    """A page of the rows that a filter means, with the numbers of all filters."""
    wanted = _read(tables, request, context)
    page = _page(tables, request.filter, wanted)
    room_id, now = wanted.room.id, wanted.now
    page.room = wanted.room.name
    if request.filter == service_pb2.FILTER_ALL and not page.next:
        page.runs.extend(runs.running(tables, room_id))
    page.needs_you = _count(tables, COUNT_NEEDED, room_id, REVIEW)
    page.in_flight = _count(tables, COUNT_HELD, room_id, now, OPEN)
    page.resolved = _count(tables, COUNT_LATELY, room_id, wanted.since)
    return page


def row(tables: Tables, room: RoomRow, key: str, now: datetime) -> views_pb2.Row:
    """One row, which is there."""
    sql = f"""SELECT {rows.COLUMNS} FROM task LEFT JOIN claim ON {CLAIM}
      WHERE task.room_id = ?1 AND task.key = ?3"""  # noqa: S608 - fixed text
    return _build(readiness.Graph(tables, room.id), tables.all(sql, room.id, clock.millis(now), key)[0])


def _read(tables: Tables, request: service_pb2.ListTasksRequest, context: Context) -> Wanted:
    room = rooms_seen.find_room(tables, request.room, context)
    limit = limits.rows(request.limit, LIMIT, MOST)
    return Wanted(
        room=room,
        now=clock.millis(context.now),
        since=_since(request, context),
        group=rows.check_field(request.group),
        after=_place(request, room) if request.cursor else FIRST,
        limit=limit,
    )


def _since(request: service_pb2.ListTasksRequest, context: Context) -> int:
    if request.closed_since_ms and not request.closed_since:
        return max(request.closed_since_ms, 1)
    text = request.closed_since.strip()
    found = times.asked("closed_since", text or "today", context.now, times.zone(request.zone))
    if found < 0:
        raise times.refusal("closed_since", text)
    return max(found, 1)  # 0 is what is open


def _place(request: service_pb2.ListTasksRequest, room: RoomRow) -> tuple[int, int, str]:
    """Where a page begins. Refused when it is no place, or one of other rows: the answer would leave some out."""
    found = CURSOR.fullmatch(request.cursor)
    if found is None or found[1] != _mark(request.filter, room, request.cursor[len(found[1]) + 1 :]):
        detail = f"cursor is {request.cursor[:40]!r}: send `next` of the page before, of the same room and filter"
        raise Refusal("request.invalid", detail)
    return int(found[2]), int(found[3]), found[4]


def _mark(which: service_pb2.Filter.ValueType, room: RoomRow, place: str) -> str:
    """Tells a place from one of other rows, and from one that was damaged."""
    return subjects.digest(f"{room.id} {which} {place}")[:8]


def _page(tables: Tables, which: service_pb2.Filter.ValueType, wanted: Wanted) -> service_pb2.ListTasksResponse:
    page, size, last = service_pb2.ListTasksResponse(), 0, ""
    graph, only_ready = readiness.Graph(tables, wanted.room.id), which == service_pb2.FILTER_READY
    for number, found in enumerate(_found(tables, which, wanted)):
        shown = _build(graph, found, wanted.group)
        is_over = number > 0 and (graph.is_spent or (only_ready and number >= LOOKED_AT))
        if shown.ready or not only_ready:
            size += shown.ByteSize() + NAMES_BYTES
            is_over |= len(page.rows) >= wanted.limit or (size > PAGE_BYTES and bool(page.rows))
        if is_over:
            page.next = last
            break
        if shown.ready or not only_ready:
            page.rows.append(shown)
        last = _cursor(which, wanted.room, found)
    return page


def _build(graph: readiness.Graph, found: tuple[Any, ...], group: str = "") -> views_pb2.Row:
    shown = rows.build(found)
    readiness.fill(graph, shown)
    if group:
        shown.group.extend(rows.groups(shown, group))
    return shown


def _found(tables: Tables, which: service_pb2.Filter.ValueType, wanted: Wanted) -> Iterator[tuple[Any, ...]]:
    of = wanted.room.id, wanted.now
    if which == service_pb2.FILTER_RESOLVED:
        return tables.iterate(LATELY, *of, wanted.since, *wanted.after)
    if which == service_pb2.FILTER_IN_FLIGHT:
        return tables.iterate(HELD, *of, OPEN, *wanted.after)
    last = {service_pb2.FILTER_UNSPECIFIED: REVIEW, service_pb2.FILTER_READY: OPEN}.get(which, CLOSED)
    return tables.iterate(BY_PLACE, *of, last, *wanted.after)


def _cursor(which: service_pb2.Filter.ValueType, room: RoomRow, found: tuple[Any, ...]) -> str:
    """The place of a row in its order."""
    key, (place, lateness, closed_at) = found[1], found[-3:]
    begin = f"{place}~{-closed_at if which == service_pb2.FILTER_RESOLVED else lateness}~{key}"
    return f"{_mark(which, room, begin)}~{begin}"


def _count(tables: Tables, sql: str, *values: object) -> int:
    row = tables.one(sql, *values)
    return int(row[0]) if row else 0
