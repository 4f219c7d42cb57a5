"""Whole rooms: out as one bundle, in from one."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Query
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mycelium.memory.v1 import transfer_pb2 as documents_pb2
from mycelium.rooms.v1 import transfer_pb2
from mycelium_gateway import bundle, problems, shapes
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.operators import may_bring_rooms
from mycelium_gateway.schemas.rooms import Room
from mycelium_gateway.transfer import Export, Import
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms", tags=["rooms"])
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
BUNDLE: dict[str, Any] = {"application/gzip": BINARY, "application/x-ndjson": BINARY}


@router.get(
    "/{room}/export",
    summary="A room as one bundle, unread messages and all",
    description=(
        "Lines of JSON: what the room is, a line a fact, then `end` with their number and the SHA-256 of the lines "
        "before. Packed with gzip when `Accept` names it. A bundle without its end was cut."
    ),
    response_class=Response,
    responses={200: {"description": "The bundle.", "content": BUNDLE}, **problems.responses("room.not_found")},
)
async def export_room(
    room: str, call: Caller, accept: Annotated[str, Header(include_in_schema=False)] = ""
) -> Response:
    first = await call.ask(transfer_pb2.ExportRoomRequest(room=room), transfer_pb2.ExportRoomResponse)
    documents = await call.ask(documents_pb2.ExportDocumentsRequest(room=room), documents_pb2.ExportDocumentsResponse)
    return Export(call, first.message, documents.message, packed="gzip" in accept)


@router.post(
    "/import",
    status_code=201,
    response_model=Room,
    summary="Make a room from a bundle",
    description=(
        "Packed or not. Nobody sees the room before it is complete; a bundle that was cut or altered makes none. For "
        "who made the room or is a member of it, and for the hub's operator: whoever calls on its own machine. With "
        "sign-in on it is for operators alone (`auth.operators`), since a bundle says what others have said."
    ),
    openapi_extra={"requestBody": {"required": True, "content": BUNDLE}},
    responses=problems.responses(
        "room.import_refused", "room.name_taken", "name.invalid", "room.not_found", "content.too_large",
        "auth.refused",
        *problems.WRITING,
    ),
)  # fmt: skip
async def import_room(
    request: Request, call: Caller, name: Annotated[str, Query(description="Its name; without, as in the bundle.")] = ""
) -> Response:
    operator = may_bring_rooms(request.scope, call.identity, call.gateway.settings)
    if call.identity and not operator:
        detail = f"a bundle says what others have said, and @{call.identity.handle} is none of auth.operators"
        raise Refusal("auth.refused", detail)
    limit = call.gateway.settings.bundle_bytes
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise HTTPException(413, bundle.TOO_LARGE.format(limit=limit))
    bringing = Import(call, name, operator=operator, limit_bytes=limit)
    try:
        room, sequence = await bringing.run(request.stream())
    except ClientDisconnect:
        return Response(status_code=400)  # to nobody
    location = f"/api/rooms/{quote(room.name, safe='')}"
    return answer(shapes.room(room), 201, sequence=sequence, location=location)
