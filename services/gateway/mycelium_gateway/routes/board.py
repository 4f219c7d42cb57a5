"""The board of a room: its rows, from its documents, from runs of engines and from who is active in it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.board.v1 import service_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_pb2
from mycelium.rooms.v1 import views_pb2
from mycelium_gateway import problems, shapes_board
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import board as schemas
from mycelium_gateway.shapes import Json

router = APIRouter(prefix="/api/rooms/{room}/board", tags=["board"], route_class=PlainRoute)
FILTERS = {
    "needs-you": service_pb2.FILTER_UNSPECIFIED,
    "in-flight": service_pb2.FILTER_IN_FLIGHT,
    "resolved": service_pb2.FILTER_RESOLVED,
    "all": service_pb2.FILTER_ALL,
    "ready": service_pb2.FILTER_READY,
}


@router.get(
    "",
    response_model=schemas.Board,
    summary="Show a room's board",
    description="A page ends at 512 KB. Rows that are no documents end the list of `all`: runs of engines that are "
    "under way, the 200 that began last, then active members.",
    responses=problems.responses("room.not_found"),
)
async def show_board(room: str, wanted: Annotated[schemas.Rows, Query()], call: Caller) -> Response:
    request = service_pb2.ListTasksRequest(
        room=room,
        filter=FILTERS[wanted.filter],
        group=wanted.group,
        zone=wanted.tz,
        closed_since=wanted.closed_since,
        limit=wanted.limit,
        cursor=wanted.cursor,
    )
    found = (await call.ask(request, service_pb2.ListTasksResponse)).message
    items = [shapes_board.row(row) for row in found.rows]
    if wanted.filter == "all" and not found.next:
        field = wanted.group.strip()
        items += [shapes_board.running(run, field) for run in found.runs] + await _active(call, room, field)
    return answer(
        {
            "room": found.room,
            "items": items,
            "next": found.next or None,
            "needs_you": found.needs_you,
            "in_flight": found.in_flight,
            "resolved": found.resolved,
        }
    )


async def _active(call: Call, room: str, field: str) -> list[Json]:
    """A row for each agent that does something in the room now."""
    request, found = rooms_pb2.ListMembersRequest(room=room, kind=views_pb2.MEMBER_KIND_AGENT), []
    while True:
        page = (await call.ask(request, rooms_pb2.ListMembersResponse)).message
        found += [member for member in page.members if member.presence != views_pb2.PRESENCE_OFFLINE]
        if not page.next:
            return [shapes_board.active(member, field) for member in found]
        request.cursor = page.next
