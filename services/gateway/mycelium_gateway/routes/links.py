"""Links between documents: the graph of a room, and the views of a document that are about links."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.memory.v1 import links_pb2
from mycelium_gateway import problems, shapes_links
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import links as schemas

router = APIRouter(prefix="/api/rooms/{room}", tags=["memory"], route_class=PlainRoute)


@router.get(
    "/graph",
    response_model=schemas.Graph,
    summary="Read the graph of a room's documents and the links between them",
    description="In pages by key: a page has some documents and every link that they have, wherever these lead.",
    responses=problems.responses("room.not_found"),
)
async def get_graph(room: str, wanted: Annotated[schemas.GraphWanted, Query()], call: Caller) -> Response:
    request = links_pb2.GetGraphRequest(room=room, cursor=wanted.cursor, limit=wanted.limit, problems=wanted.problems)
    return answer(shapes_links.graph((await call.ask(request, links_pb2.GetGraphResponse)).message))


async def links_of(room: str, key: str, cursor: str, limit: int, call: Call) -> Response:
    """`?view=links` of a document."""
    request = links_pb2.GetLinksRequest(room=room, key=key, cursor=cursor, limit=limit)
    return answer(shapes_links.document((await call.ask(request, links_pb2.GetLinksResponse)).message))


async def expanded(room: str, key: str, call: Call) -> Response:
    """`?expand=true` of a document. Without `ETag`: it changes with what it embeds, and the version does not."""
    request = links_pb2.ExpandDocumentRequest(room=room, key=key)
    return answer(shapes_links.expanded((await call.ask(request, links_pb2.ExpandDocumentResponse)).message))
