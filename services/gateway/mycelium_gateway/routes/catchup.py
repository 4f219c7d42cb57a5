"""What who starts to work in a room has to know, composed of what rooms and memory answer to the caller."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.memory.v1 import catchup_pb2
from mycelium.rooms.v1 import service_pb2
from mycelium_gateway import problems, shapes_catchup
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import catchup as schemas
from mycelium_gateway.shapes import moment
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms/{room}/catchup", tags=["rooms"], route_class=PlainRoute)
UNSETTLED = ("open", "in_progress")


@router.get(
    "",
    response_model=schemas.CatchUp,
    summary="Catch up: the synthesis, what changed since, who is here, what waits",
    description="No model is asked. Each part is cut where it would be long, and says so.",
    responses=problems.responses("room.not_found"),
)
async def catch_up(room: str, wanted: Annotated[schemas.Wanted, Query()], call: Caller) -> Response:
    asked = catchup_pb2.CatchUpRequest(room=room, since=wanted.since, zone=wanted.tz, limit=wanted.limit)
    memory = (await call.ask(asked, catchup_pb2.CatchUpResponse)).message
    listed = service_pb2.ListMessagesRequest
    wishes = [listed(room=room, limit=wanted.limit, since=moment(memory.since))]
    wishes += [listed(room=room, limit=wanted.limit, status=status) for status in UNSETTLED]
    (shown, unread), (messages, *events) = await asyncio.gather(
        asyncio.gather(
            call.ask(service_pb2.GetRoomRequest(room=room), service_pb2.GetRoomResponse), _unread(call, room)
        ),
        asyncio.gather(*(call.ask(wish, service_pb2.ListMessagesResponse) for wish in wishes)),
    )
    parts = {
        "room": shown.message.room.name,
        "unread": unread,
        "here": shapes_catchup.here(shown.message, wanted.limit),
        "events": shapes_catchup.events([page.message for page in events], wanted.limit),
        "messages": shapes_catchup.messages(messages.message),
    }
    return answer({**parts, **shapes_catchup.memory(memory)})


async def _unread(call: Call, room: str) -> int | None:
    """How much waits for the caller; None for who is no member."""
    if not call.actor.handle:
        return None
    request = service_pb2.GetMemberRequest(room=room, handle=call.actor.handle)
    try:
        return (await call.ask(request, service_pb2.GetMemberResponse)).message.member.unread
    except Refusal as refusal:
        if refusal.slug != "member.not_found":
            raise
        return None
