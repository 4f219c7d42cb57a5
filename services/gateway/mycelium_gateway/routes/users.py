"""People of the hub: add, list, show, save."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import users as schemas

router = APIRouter(prefix="/api/users", tags=["users"], route_class=PlainRoute)


@router.get("", response_model=schemas.UserPage, summary="List people", responses=problems.responses())
async def list_users(call: Caller, cursor: str = "") -> Response:
    reply = await call.ask(service_pb2.ListUsersRequest(cursor=cursor), service_pb2.ListUsersResponse)
    return answer(shapes.page([shapes.user(user) for user in reply.message.users], reply.message.next))


@router.post(
    "",
    status_code=201,
    response_model=schemas.User,
    summary="Add a person",
    responses=problems.responses("handle.taken", "name.taken", "record.foreign", *problems.WRITING),
)
async def create_user(body: schemas.NewUser, call: Caller) -> Response:
    request = service_pb2.SaveUserRequest(handle=body.handle, name=body.name, team=body.team, create_only=True)
    reply = await call.ask(request, service_pb2.SaveUserResponse)
    return answer(shapes.user(reply.message.user), 201, sequence=reply.sequence)


@router.put(
    "/{handle}",
    response_model=schemas.User,
    summary="Add a person or change their record",
    responses={
        201: {"model": schemas.User, "description": "The record was made."},
        **problems.responses("handle.taken", "name.taken", "record.foreign", *problems.WRITING),
    },
)
async def save_user(handle: str, body: schemas.UserChange, call: Caller) -> Response:
    request = service_pb2.SaveUserRequest(handle=handle, name=body.name, team=body.team)
    reply = await call.ask(request, service_pb2.SaveUserResponse)
    status = 201 if reply.message.created else 200
    shown = await call.ask(service_pb2.GetUserRequest(handle=handle), service_pb2.GetUserResponse)
    return answer(shapes.user(shown.message.user), status, sequence=reply.sequence)


@router.get(
    "/{handle}",
    response_model=schemas.User,
    summary="Show a person and the agents they own",
    responses=problems.responses("user.not_found"),
)
async def get_user(handle: str, call: Caller) -> Response:
    reply = await call.ask(service_pb2.GetUserRequest(handle=handle), service_pb2.GetUserResponse)
    return answer(shapes.user(reply.message.user))
