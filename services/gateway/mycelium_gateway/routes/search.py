"""Search of a room's memory, by words and by meaning together."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.memory.v1 import search_pb2
from mycelium_gateway import problems, shapes_search
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import search as schemas

router = APIRouter(prefix="/api/rooms/{room}/search", tags=["memory"], route_class=PlainRoute)


@router.get(
    "",
    response_model=schemas.SearchAnswer,
    summary="Find sections of memory by words and by meaning",
    description="What was written a moment ago is found by words at once, by meaning once `meaning.waiting` is 0.",
    responses=problems.responses("room.not_found"),
)
async def search_memory(room: str, wanted: Annotated[schemas.Searched, Query()], call: Caller) -> Response:
    request = search_pb2.SearchDocumentsRequest(
        room=room,
        query=wanted.q,
        prefix=wanted.prefix,
        tags=wanted.tag,
        author=wanted.author,
        since=wanted.since,
        until=wanted.until,
        zone=wanted.tz,
        limit=wanted.limit,
    )
    return answer(shapes_search.found((await call.ask(request, search_pb2.SearchDocumentsResponse)).message))


@router.post(
    "/reindex",
    status_code=202,
    response_model=schemas.Renewed,
    summary="Make the index of meaning anew, for a room",
    description="It answers meanwhile. Nothing is lost: the index is made from the documents.",
    responses=problems.responses("room.not_found", *problems.WRITING),
)
async def reindex_memory(room: str, call: Caller) -> Response:
    request = search_pb2.RenewVectorsRequest(room=room)
    return answer(shapes_search.renewed((await call.ask(request, search_pb2.RenewVectorsResponse)).message), 202)
