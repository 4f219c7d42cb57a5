"""Engines of a room: add, list, show, remove. They are members whose words come from the hub itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer, done
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import engines as schemas
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms/{room}/engines", tags=["engines"], route_class=PlainRoute)
KINDS = {"hello": views_pb2.ENGINE_KIND_HELLO}


@router.get(
    "", response_model=schemas.EnginePage, summary="List engines", responses=problems.responses("room.not_found")
)
async def list_engines(
    room: str, call: Caller, cursor: Annotated[str, Query(description="`next` of the page before.")] = ""
) -> Response:
    request = service_pb2.ListMembersRequest(room=room, kind=views_pb2.MEMBER_KIND_ENGINE, cursor=cursor)
    reply = (await call.ask(request, service_pb2.ListMembersResponse)).message
    return answer(shapes.page([shapes.engine(member) for member in reply.members], reply.next))


@router.post(
    "",
    status_code=201,
    response_model=schemas.Engine,
    summary="Add an engine, or change one that is there",
    responses={
        200: {"model": schemas.Engine, "description": "It was there; the given fields were changed."},
        **problems.responses("room.not_found", "handle.taken", "record.foreign", *problems.WRITING),
    },
)
async def add_engine(room: str, body: schemas.NewEngine, call: Caller) -> Response:
    request = service_pb2.SaveMemberRequest(
        room=room,
        handle=body.handle,
        kind=views_pb2.MEMBER_KIND_ENGINE,
        engine_kind=KINDS[body.kind],
        description=body.description,
    )
    reply = await call.ask(request, service_pb2.SaveMemberResponse)
    status = 201 if reply.message.joined else 200
    return answer(shapes.engine(await _find(call, room, body.handle)), status, sequence=reply.sequence)


@router.get(
    "/{handle}",
    response_model=schemas.Engine,
    summary="Show an engine",
    responses=problems.responses("room.not_found", "member.not_found", "engine.not_found"),
)
async def get_engine(room: str, handle: str, call: Caller) -> Response:
    return answer(shapes.engine(await _find(call, room, handle)))


@router.delete(
    "/{handle}",
    status_code=204,
    summary="Remove an engine",
    responses=problems.responses(
        "room.not_found", "member.not_found", "engine.not_found", "record.foreign", *problems.WRITING
    ),
)
async def remove_engine(room: str, handle: str, call: Caller) -> Response:
    await _find(call, room, handle)
    request = service_pb2.RemoveMemberRequest(room=room, handle=handle)
    return done((await call.ask(request, service_pb2.RemoveMemberResponse)).sequence)


async def _find(call: Call, room: str, handle: str) -> views_pb2.Member:
    """The member. Refused when it is no engine: an agent is not removed by mistake."""
    request = service_pb2.GetMemberRequest(room=room, handle=handle)
    try:
        member = (await call.ask(request, service_pb2.GetMemberResponse)).message.member
    except Refusal as refusal:
        refusal.next = refusal.next.replace("mycelium agent ls", "mycelium engine ls")
        raise
    if member.kind != views_pb2.MEMBER_KIND_ENGINE:
        raise Refusal("engine.not_found", f"@{member.handle} is no engine", next=f"mycelium agent show {member.handle}")
    return member
