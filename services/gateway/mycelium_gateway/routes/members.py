"""Members of a room: add, list, show, change, remove."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer, done
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import members as schemas

router = APIRouter(prefix="/api/rooms/{room}/members", tags=["members"], route_class=PlainRoute)
KINDS = {
    None: views_pb2.MEMBER_KIND_UNSPECIFIED,
    "agent": views_pb2.MEMBER_KIND_AGENT,
    "user": views_pb2.MEMBER_KIND_USER,
    "engine": views_pb2.MEMBER_KIND_ENGINE,
}


@router.get(
    "", response_model=schemas.MemberPage, summary="List members", responses=problems.responses("room.not_found")
)
async def list_members(room: str, wanted: Annotated[schemas.MemberFilter, Query()], call: Caller) -> Response:
    request = service_pb2.ListMembersRequest(
        room=room, kind=KINDS[wanted.kind], owner=wanted.owner, team=wanted.team, cursor=wanted.cursor
    )
    reply = await call.ask(request, service_pb2.ListMembersResponse)
    return answer(shapes.page([shapes.member(member) for member in reply.message.members], reply.message.next))


@router.post(
    "",
    status_code=201,
    response_model=schemas.Member,
    summary="Add a member, or change one that is there",
    responses={
        200: {"model": schemas.Member, "description": "It was there; the given fields were changed."},
        **problems.responses("room.not_found", "handle.taken", "user.not_found", "record.foreign", *problems.WRITING),
    },
)
async def add_member(room: str, body: schemas.NewMember, call: Caller) -> Response:
    request = _save(room, body.handle, body)
    request.add_allow_from, request.set_allow_from = request.set_allow_from, False
    reply = await call.ask(request, service_pb2.SaveMemberResponse)
    status = 201 if reply.message.joined else 200
    return answer(await _shown(call, room, body.handle), status, sequence=reply.sequence)


@router.get(
    "/{handle}",
    response_model=schemas.Member,
    summary="Show a member",
    responses=problems.responses("room.not_found", "member.not_found"),
)
async def get_member(room: str, handle: str, call: Caller) -> Response:
    return answer(await _shown(call, room, handle))


@router.patch(
    "/{handle}",
    response_model=schemas.Member,
    summary="Change a member's record",
    responses=problems.responses("room.not_found", "member.not_found", "record.foreign", *problems.WRITING),
)
async def change_member(room: str, handle: str, body: schemas.MemberChange, call: Caller) -> Response:
    request = _save(room, handle, body)
    request.change_only = True
    reply = await call.ask(request, service_pb2.SaveMemberResponse)
    return answer(await _shown(call, room, handle), sequence=reply.sequence)


@router.delete(
    "/{handle}",
    status_code=204,
    summary="Remove a member",
    responses=problems.responses("room.not_found", "member.not_found", "record.foreign", *problems.WRITING),
)
async def remove_member(room: str, handle: str, call: Caller) -> Response:
    request = service_pb2.RemoveMemberRequest(room=room, handle=handle)
    reply = await call.ask(request, service_pb2.RemoveMemberResponse)
    return done(reply.sequence)


async def _shown(call: Call, room: str, handle: str) -> shapes.Json:
    """The member as it is now; what a write answers holds its record alone."""
    request = service_pb2.GetMemberRequest(room=room, handle=handle)
    return shapes.member((await call.ask(request, service_pb2.GetMemberResponse)).message.member)


def _save(room: str, handle: str, body: schemas.NewMember | schemas.MemberChange) -> service_pb2.SaveMemberRequest:
    return service_pb2.SaveMemberRequest(
        room=room,
        handle=handle,
        kind=KINDS[body.kind],
        description=body.description,
        cwd=body.cwd,
        adapter=body.adapter,
        owner=body.owner,
        team=body.team,
        allow_from=body.allow_from or [],
        set_allow_from=body.allow_from is not None,
        notes=body.notes,
        paused=body.paused,
    )
