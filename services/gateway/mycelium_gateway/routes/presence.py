"""Presence: a member says what it is doing. Kept in memory, never in the log."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import problems
from mycelium_gateway.actor import Acting, Call
from mycelium_gateway.answers import done
from mycelium_gateway.doing import STATES
from mycelium_gateway.keys import Said
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import presence as schemas
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms/{room}", tags=["taking part"], route_class=PlainRoute)
TTL_S = (5, 600)
NOTE_CHARACTERS = 500


@router.post(
    "/presence",
    status_code=204,
    summary="Say what one is doing",
    description="Without it, a wait shows as idle and a delivery taken as working. Say it again before `ttl_s` ends.",
    responses=problems.responses(
        "room.not_found",
        "handle.missing",
        "handle.mismatch",
        "handle.unregistered",
        "acting.forbidden",
        "presence.invalid",
    ),
)
async def say_presence(room: str, body: schemas.Presence, call: Acting) -> Response:
    caller = await call.acting(room, body.handle)
    _check(body)
    room_id, presence = await _find(caller, room), call.gateway.presence
    now, ttl_ms = presence.now(), int(body.ttl_s * 1000)
    await presence.say(Said(room_id, caller.actor.handle, body.state, body.note or "", now, now + ttl_ms))
    return done()


def _check(body: schemas.Presence) -> None:
    if body.state not in STATES:
        raise Refusal("presence.invalid", f"body.state is {body.state[:40]!r}: use {', '.join(STATES)}")
    if not TTL_S[0] <= body.ttl_s <= TTL_S[1]:
        raise Refusal("presence.invalid", f"body.ttl_s is {body.ttl_s:g}: use {TTL_S[0]} to {TTL_S[1]} seconds")
    note = body.note or ""
    if len(note) > NOTE_CHARACTERS or any(ord(character) < 32 for character in note):
        raise Refusal("presence.invalid", f"body.note: use one line of at most {NOTE_CHARACTERS} characters")


async def _find(caller: Call, room: str) -> str:
    """The room's id. Refused when the caller is nobody there; every user of the hub is somebody in a shared room."""
    found = (await caller.ask(service_pb2.GetRoomRequest(room=room), service_pb2.GetRoomResponse)).message.room
    handle = caller.actor.handle
    try:
        member = service_pb2.GetMemberRequest(room=found.id, handle=handle)
        await caller.ask(member, service_pb2.GetMemberResponse)
    except Refusal as refusal:
        if refusal.slug != "member.not_found":
            raise
        if not await _is_somebody(caller, found):
            detail = f"@{handle} is not a registered agent or user"
            raise Refusal("handle.unregistered", detail, f"mycelium agent create {handle}") from None
    return found.id


async def _is_somebody(caller: Call, room: views_pb2.Room) -> bool:
    """Whether a handle without a record of its own in the room takes part there."""
    if room.private:
        return caller.actor.handle == room.created_by
    describe = service_pb2.DescribeHandleRequest(handle=caller.actor.handle)
    described = await caller.ask(describe, service_pb2.DescribeHandleResponse)
    return described.message.kind == views_pb2.MEMBER_KIND_USER
