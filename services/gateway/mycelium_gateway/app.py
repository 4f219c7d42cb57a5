"""The web application: its routers, its layers, and what answers when something goes wrong. All of it is in sight."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from mycelium_gateway import openapi, problems, validation
from mycelium_gateway.address import AddressMiddleware
from mycelium_gateway.gateway import Gateway
from mycelium_gateway.guard import GuardMiddleware
from mycelium_gateway.head import HeadMiddleware
from mycelium_gateway.joining import JoiningMiddleware
from mycelium_gateway.limits import BodyLimitMiddleware
from mycelium_gateway.load import LoadMiddleware
from mycelium_gateway.origin import Names, OriginMiddleware
from mycelium_gateway.routes import (
    board,
    board_log,
    budget,
    catchup,
    coordinate,
    delivery,
    docs,
    engines,
    hub,
    join,
    links,
    members,
    memory,
    messages,
    presence,
    reservations,
    rooms,
    search,
    stream,
    subscriptions,
    tasks,
    transfer,
    users,
    web,
)
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.signing_in import SigningInMiddleware
from mycelium_kernel.errors import Internal, Refusal, Unavailable

# The busiest first: an address is looked for in this order.
ROUTERS = (
    messages.router,
    delivery.router,
    presence.router,
    memory.router,
    tasks.router,
    coordinate.router,
    board.router,
    reservations.router,
    links.router,
    search.router,
    stream.router,
    subscriptions.router,
    members.router,
    engines.router,
    join.router,
    budget.router,
    board_log.router,
    catchup.router,
    transfer.router,
    rooms.router,
    users.router,
    web.router,
    hub.router,
    docs.router,
)
HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    Refusal: problems.answer_refusal,
    Unavailable: problems.answer_unavailable,
    Internal: problems.answer_internal,
    RequestValidationError: validation.answer_invalid,
    HTTPException: problems.answer_http,
}


def create(names: Names, version: str, gateway: Gateway | None = None) -> FastAPI:
    """The application of one gateway. Without `gateway` it can only describe itself."""
    app = FastAPI(
        title="Mycelium",
        version=version,
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # `guard.py` does it, once
        exception_handlers=HANDLERS,
        middleware=[
            Middleware(JoiningMiddleware),
            Middleware(GuardMiddleware),
            Middleware(OriginMiddleware, names=names),
            Middleware(AddressMiddleware),
            Middleware(SigningInMiddleware, gateway=gateway),
            Middleware(LoadMiddleware, settings=gateway.settings if gateway else GatewaySettings()),
            Middleware(BodyLimitMiddleware),
            Middleware(HeadMiddleware),
        ],
    )
    for router in ROUTERS:
        app.router.routes += router.routes  # `include_router` would match every address twice: 60 µs a request
    app.state.gateway = gateway
    openapi.attach(app)
    return app
