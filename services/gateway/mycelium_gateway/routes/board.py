"""The board of a room: its rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.board.v1 import service_pb2
from mycelium_gateway import problems, shapes_board
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import tasks as schemas

router = APIRouter(prefix="/api/rooms/{room}/board", tags=["board"], route_class=PlainRoute)
FILTERS = {
    "needs-you": service_pb2.FILTER_UNSPECIFIED,
    "in-flight": service_pb2.FILTER_IN_FLIGHT,
    "resolved": service_pb2.FILTER_RESOLVED,
    "all": service_pb2.FILTER_ALL,
}


@router.get(
    "",
    response_model=schemas.Board,
    summary="Show a room's board",
    responses=problems.responses("room.not_found"),
)
async def show_board(
    room: str,
    call: Caller,
    filter: Annotated[schemas.Filter, Query(description="Which rows.")] = "needs-you",
    closed_since_ms: Annotated[int, Query(ge=0, le=2**53, description="What counts as closed lately.")] = 0,
) -> Response:
    request = service_pb2.ListTasksRequest(room=room, filter=FILTERS[filter], closed_since_ms=closed_since_ms)
    found = (await call.ask(request, service_pb2.ListTasksResponse)).message
    return answer(
        {
            "room": found.room,
            "items": [shapes_board.row(row) for row in found.rows],
            "next": None,
            "needs_you": found.needs_you,
            "in_flight": found.in_flight,
            "resolved": found.resolved,
        }
    )
