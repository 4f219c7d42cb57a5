"""Rooms: make, list, show, change, delete."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from mycelium.rooms.v1 import folders_pb2, service_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer, done
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import rooms as schemas
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms", tags=["rooms"], route_class=PlainRoute)


@router.post(
    "",
    status_code=201,
    response_model=schemas.Room,
    summary="Make a room",
    responses=problems.responses("name.invalid", "room.name_taken", "handle.mismatch", *problems.WRITING),
)
async def create_room(body: schemas.NewRoom, call: Caller) -> Response:
    request = service_pb2.CreateRoomRequest(name=body.name, title=body.title, private=body.private)
    reply = await call.by(body.handle).ask(request, service_pb2.CreateRoomResponse)
    room = reply.message.room
    location = f"/api/rooms/{quote(room.name, safe='')}"
    return answer(shapes.room(room), 201, sequence=reply.sequence, location=location)


@router.get("", response_model=schemas.RoomPage, summary="List rooms", responses=problems.responses())
async def list_rooms(call: Caller, cursor: str = "") -> Response:
    reply = await call.ask(service_pb2.ListRoomsRequest(cursor=cursor), service_pb2.ListRoomsResponse)
    return answer(shapes.page([shapes.room(room) for room in reply.message.rooms], reply.message.next))


@router.get(
    "/{room}",
    response_model=schemas.RoomWithMembers,
    summary="Show a room and its members",
    responses=problems.responses("room.not_found"),
)
async def get_room(room: str, call: Caller) -> Response:
    reply = await call.ask(service_pb2.GetRoomRequest(room=room), service_pb2.GetRoomResponse)
    members = [shapes.member(member) for member in reply.message.members]
    listed = {"members_list": members, "members_next": reply.message.next or None}
    return answer({**shapes.room(reply.message.room), **listed})


@router.patch(
    "/{room}",
    response_model=schemas.Room,
    summary="Set a room's title or privacy, or the caller's own folder for it",
    responses=problems.responses(
        "room.not_found", "handle.mismatch", "handle.unregistered", "record.foreign", *problems.WRITING
    ),
)
async def change_room(room: str, body: schemas.RoomChange, call: Caller) -> Response:
    caller, sequence = call.by(body.handle), 0
    if body.title is None and body.private is None and body.folder is None:
        raise Refusal("request.invalid", "body: nothing to change; send title, private or folder")
    if body.folder is not None:
        caller = call.named(body.handle)
    if body.title is not None or body.private is not None:
        request = service_pb2.ChangeRoomRequest(room=room, title=body.title, private=body.private)
        sequence = (await caller.ask(request, service_pb2.ChangeRoomResponse)).sequence
    if body.folder is not None:
        filing = folders_pb2.FileRoomRequest(room=room, folder=body.folder)
        filed = await caller.ask(filing, folders_pb2.FileRoomResponse, step="folder")
        sequence = filed.sequence or sequence
    shown = await caller.ask(service_pb2.GetRoomRequest(room=room), service_pb2.GetRoomResponse)
    return answer(shapes.room(shown.message.room), sequence=sequence)


@router.delete(
    "/{room}",
    status_code=204,
    summary="Delete a room and everything in it",
    responses=problems.responses("room.not_found", "record.foreign", *problems.WRITING),
)
async def delete_room(room: str, call: Caller) -> Response:
    reply = await call.ask(service_pb2.DeleteRoomRequest(room=room), service_pb2.DeleteRoomResponse)
    return done(reply.sequence)
