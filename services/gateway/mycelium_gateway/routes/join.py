"""Join codes: made for an agent of a room, used once by whoever is to be it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from mycelium.rooms.v1 import join_pb2
from mycelium_gateway import joined, peers, problems, shapes
from mycelium_gateway.actor import Caller, read_call
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import join as schemas
from mycelium_kernel.clock import new_id

router = APIRouter(prefix="/api", tags=["taking part"], route_class=PlainRoute)


@router.post(
    "/rooms/{room}/join-codes",
    status_code=201,
    response_model=schemas.JoinCode,
    summary="Make a code by which an agent joins",
    responses=problems.responses("room.not_found", "handle.taken", "acting.forbidden", *problems.WRITING),
)
async def make_join_code(room: str, body: schemas.NewJoinCode, call: Caller) -> Response:
    code = joined.new_code()
    digest = joined.code_digest(code)
    request = join_pb2.MakeJoinCodeRequest(room=room, handle=body.handle, code_digest=digest)
    # A repeat makes a code of its own: the first is known to nobody.
    reply = await call.ask(request, join_pb2.MakeJoinCodeResponse, step=digest)
    made = reply.message
    shown = {
        "code": code,
        "room": made.room,
        "room_id": made.room_id,
        "handle": made.handle,
        "expires_at": shapes.moment(made.expires_at),
    }
    return answer(shown, 201, sequence=reply.sequence)


@router.post(
    "/join",
    response_model=schemas.Joined,
    summary="Join by a code",
    responses=problems.responses("join.refused", "join.other_member", "conflict", "store.full"),
)
async def join(body: schemas.Join, request: Request) -> Response:
    call = await read_call(request)
    gateway = call.gateway
    gateway.tries.take(peers.peer_of(request.scope))
    token = joined.new_token() if gateway.settings.auth.enabled else ""
    wanted = join_pb2.UseJoinCodeRequest(
        code_digest=joined.code_digest(body.code),
        token_digest=joined.token_digest(token) if token else "",
        request_digest=joined.request_digest(call.key),
        room=body.room or "",
        handle=body.handle or "",
    )
    # A key of its own: a repeat is known by its digest, and gets a token of its own.
    reply = await gateway.bus.ask(wanted, join_pb2.UseJoinCodeResponse, actor=joined.NOBODY, key=new_id())
    known = reply.message
    shown = {"room": known.room, "room_id": known.room_id, "handle": known.handle, "token": token or None}
    return answer(shown, sequence=reply.sequence)
