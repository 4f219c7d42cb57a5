"""Reads of reservations: what is reserved, and which paths somebody else has."""

from __future__ import annotations

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium_board import globs
from mycelium_kernel import clock, rooms_seen
from mycelium_kernel.callers import RoomRow, handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables

MOST_PATHS = 1_000
MOST_PATH_CHARACTERS = 4_096
MOST_ALL_CHARACTERS = 100_000  # of all paths of a request
MOST_CONFLICTS = 1_000
LIVE = """SELECT pattern, holder, expires_at, ttl_s, task, thread FROM reservation
  WHERE room_id = ? AND expires_at > ? ORDER BY pattern"""


def list_reservations(
    tables: Tables, request: pb.ListReservationsRequest, context: Context
) -> pb.ListReservationsResponse:
    """All that stand in a room, without what proves them."""
    room = rooms_seen.find_room(tables, request.room, context)
    return pb.ListReservationsResponse(reservations=_live(tables, room, context), room=room.name)


def check_paths(tables: Tables, request: pb.CheckPathsRequest, context: Context) -> pb.CheckPathsResponse:
    """The paths that somebody else has reserved; who names no handle has reserved nothing."""
    room = rooms_seen.find_room(tables, request.room, context)
    _check(request)
    by = handle_of(context)
    others = [one for one in _live(tables, room, context) if one.holder != by]
    net, answer = globs.Net([globs.parse(one.pattern) for one in others]), pb.CheckPathsResponse()
    for path in request.paths:
        for number in net.meeting(_path(path)):
            if len(answer.conflicts) == MOST_CONFLICTS:
                answer.more = True
                return answer
            answer.conflicts.add(path=path, reservation=others[number])
    return answer


def _live(tables: Tables, room: RoomRow, context: Context) -> list[pb.Reservation]:
    rows = tables.all(LIVE, room.id, clock.millis(context.now))
    return [
        pb.Reservation(
            pattern=row[0],
            holder=row[1],
            expires_at=clock.from_millis(row[2]),
            ttl_s=row[3],
            task=row[4],
            thread=row[5],
        )
        for row in rows
    ]


def _check(request: pb.CheckPathsRequest) -> None:
    if len(request.paths) > MOST_PATHS:
        raise Refusal("request.invalid", f"{len(request.paths):,} paths at once, at most {MOST_PATHS:,} are allowed")
    if sum(map(len, request.paths)) > MOST_ALL_CHARACTERS:
        raise Refusal("request.invalid", f"more than {MOST_ALL_CHARACTERS:,} characters of paths; ask in parts")


def _path(text: str) -> globs.Glob:
    if len(text) > MOST_PATH_CHARACTERS:
        raise Refusal("request.invalid", f"path {text[:60]!r}… has more than {MOST_PATH_CHARACTERS:,} characters")
    try:
        return globs.path(text)
    except ValueError as error:
        raise Refusal("request.invalid", f"path {text[:60]!r} {error}") from None
