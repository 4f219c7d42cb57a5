"""Live streams: one room, or several over one connection."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2
from mycelium_gateway import problems
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.stream import LiveStream
from mycelium_kernel import patterns
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api", tags=["live"])
ROOMS = 100  # over one connection
TEXT = (
    "Server-sent events: `message`, `notice` of the board, `message_amended`, `event_status`, `room_changed`, "
    "`room_deleted`, `member_joined`, `member_changed`, `member_left`, each with an id; live, and without one, `ping` "
    "for a post in a thread, `presence`, and `reset` when the last id is of another log. With `memory`, instead, "
    "`memory_written` and `memory_removed` of documents whose key matches, and `room_deleted`. "
    "Resume with `Last-Event-ID`; a stream ends when the caller's token has run out. "
    "contracts/asyncapi.yaml describes each event."
)
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, until the client leaves.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
LastId = Annotated[str, Header(alias="Last-Event-ID", description="The id of the last event that was received.")]
Memory = Annotated[
    list[str],
    Query(
        default_factory=list,
        description="Follow documents whose key matches, and nothing else: `decisions/*` is all under it, `work/` too.",
        examples=[["decisions/*"]],
    ),
]
LastIdQuery = Annotated[str, Query(description="The same, for clients that can't set headers.")]


@router.get(
    "/rooms/{room}/stream",
    summary="Watch a room",
    description=TEXT,
    response_class=Response,
    responses={**STREAMED, **problems.responses("room.not_found")},
)
async def watch_room(
    room: str, call: Caller, memory: Memory, last_id: LastId = "", last_event_id: LastIdQuery = ""
) -> Response:
    return await _watch(call, [room], last_id or last_event_id, memory)


@router.get(
    "/stream",
    summary="Watch several rooms",
    description=TEXT,
    response_class=Response,
    responses={**STREAMED, **problems.responses("room.not_found")},
)
async def watch_rooms(
    call: Caller,
    room: Annotated[list[str], Query()],
    memory: Memory,
    last_id: LastId = "",
    last_event_id: LastIdQuery = "",
) -> Response:
    if len(room) > ROOMS:
        raise Refusal("request.invalid", f"query.room: at most {ROOMS} rooms over one stream")
    return await _watch(call, room, last_id or last_event_id, memory)


async def _watch(call: Call, rooms: list[str], last_id: str, memory: list[str]) -> Response:
    wanted = patterns.read_all(memory)
    since, found = call.gateway.live.position, []
    for name in dict.fromkeys(rooms):
        reply = await call.ask(service_pb2.GetRoomRequest(room=name), service_pb2.GetRoomResponse)
        found.append(reply.message)
    return LiveStream(call, found, since, last_id, wanted)
