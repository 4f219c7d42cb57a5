"""Reads of the board: its rows, in the order in which people look at them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_board.model import CLOSED
from mycelium_kernel import clock, rooms_seen
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables

ROWS = """SELECT task.key, thread, title, iif(moved_status != '', moved_status, status), kind, assignee, blocked_by,
  coalesce(holder, ''), coalesce(expires_at, 0), fields, version, created_by, created_at, updated_by, updated_at
  FROM task LEFT JOIN claim ON claim.room_id = task.room_id AND claim.document_id = task.document_id
    AND claim.expires_at > ?2
  WHERE task.room_id = ?1"""
FIRST = {"decision": 0, "blocked": 1, "in_review": 2}


def list_tasks(
    tables: Tables, request: service_pb2.ListTasksRequest, context: Context
) -> service_pb2.ListTasksResponse:
    """The rows that a filter means, with the numbers of all filters."""
    room = rooms_seen.find_room(tables, request.room, context)
    rows = [_row(found) for found in tables.all(ROWS, room.id, _millis(context.now))]
    groups = {
        service_pb2.FILTER_UNSPECIFIED: [row for row in rows if needs_a_person(row)],
        service_pb2.FILTER_IN_FLIGHT: [row for row in rows if row.holder and row.status not in CLOSED],
        service_pb2.FILTER_RESOLVED: [row for row in rows if _closed_since(row, request.closed_since_ms)],
        service_pb2.FILTER_ALL: rows,
    }
    return service_pb2.ListTasksResponse(
        rows=sorted(groups[request.filter], key=_order),
        needs_you=len(groups[service_pb2.FILTER_UNSPECIFIED]),
        in_flight=len(groups[service_pb2.FILTER_IN_FLIGHT]),
        resolved=len(groups[service_pb2.FILTER_RESOLVED]),
        room=room.name,
    )


def row(tables: Tables, room: RoomRow, key: str, now: datetime) -> views_pb2.Row:
    """One row, which is there."""
    return _row(tables.all(f"{ROWS} AND task.key = ?3", room.id, _millis(now), key)[0])


def needs_a_person(row: views_pb2.Row) -> bool:
    """Open decisions, blocked work, and what waits for a review."""
    return row.status not in CLOSED and (row.kind == "decision" or row.status in ("blocked", "in_review"))


def _closed_since(row: views_pb2.Row, since_ms: int) -> bool:
    return row.status in CLOSED and clock.to_millis(row.updated_at) >= since_ms


def _order(row: views_pb2.Row) -> tuple[int, int, str]:
    """Decisions, what is blocked, reviews, the rest; the last moved first."""
    place = FIRST["decision"] if row.kind == "decision" else FIRST.get(row.status, len(FIRST))
    return place, -clock.to_millis(row.updated_at), row.key


def _row(found: tuple[Any, ...]) -> views_pb2.Row:
    key, thread, title, status, kind, assignee, blocked_by, holder, expires_at, fields, version, *written = found
    created_by, created_at, updated_by, updated_at = written
    return views_pb2.Row(
        key=key,
        thread=thread,
        title=title,
        status=status,
        kind=kind,
        assignee=assignee,
        blocked_by=blocked_by,
        holder=holder,
        expires_at=clock.from_millis(expires_at) if expires_at else None,
        fields_json=fields,
        version=version,
        created_by=created_by,
        created_at=clock.from_millis(created_at),
        updated_by=updated_by,
        updated_at=clock.from_millis(updated_at),
    )


def _millis(moment: datetime) -> int:
    return clock.to_millis(clock.to_timestamp(moment))
