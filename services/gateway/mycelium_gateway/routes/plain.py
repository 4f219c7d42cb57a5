"""Serves routes of the plain form, `(path parameters, body, call)`, without FastAPI's general machinery.

That machinery solves a graph of dependencies for every request: measured, 0.3 ms of a post that has just woken an idle
hub. Routes of the plain form need none of it; FastAPI still describes them, and serves all others itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from json import JSONDecodeError
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mycelium_gateway.actor import Call, read_acting, read_call
from mycelium_gateway.validation import SHOWN, InvalidError

Endpoint = Callable[..., Coroutine[Any, Any, Response]]


class PlainRoute(APIRoute):
    """The class of our routes: plain when its function is."""

    def __init__(self, path: str, endpoint: Endpoint, **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if _is_plain(self.dependant):
            read = read_acting if self.dependant.dependencies[0].call is read_acting else read_call
            self.app = _serve(endpoint, read, *_body(self.dependant))

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Bodies of other routes are read by the same parser, so that what is no JSON to one is none to any."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict


class StrictRequest(Request):
    """A request whose body is JSON in UTF-8 of whole characters, or none."""

    async def json(self) -> Any:
        """The body. Raises what FastAPI takes for a broken body."""
        raw = await self.body()
        try:
            return from_json(raw)
        except ValueError as error:
            raise JSONDecodeError(str(error), raw.decode(errors="replace"), 0) from None


def _is_plain(dependant: Dependant) -> bool:
    """Whether a function takes texts of the path, at most one body, and the call."""
    others = dependant.query_params or dependant.header_params or dependant.cookie_params
    calls = [dependency.call for dependency in dependant.dependencies]
    return not others and calls in ([read_call], [read_acting]) and len(dependant.body_params) <= 1


def _body(dependant: Dependant) -> tuple[str, type[BaseModel] | None]:
    """Name and model of the body."""
    for field in dependant.body_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            return field.name, model
        raise TypeError(f"the body {field.name!r} is no model")
    return "", None


def _serve(
    endpoint: Endpoint, read: Callable[[Request], Awaitable[Call]], name: str, model: type[BaseModel] | None
) -> ASGIApp:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        values = dict(scope["path_params"])
        if model is not None:
            values[name] = read_body(request, await request.body(), model)
        response = await endpoint(call=await read(request), **values)
        await response(scope, receive, send)

    return serve


def read_body(request: Request, raw: bytes, model: type[BaseModel]) -> BaseModel:
    """The body as its model. Raises `RequestValidationError`, which says where it does not fit."""
    if not raw:
        raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "", "input": None}])
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise RequestValidationError([{"type": "model_attributes_type", "loc": ("body",), "msg": "", "input": None}])
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        found, count = _some_errors(model, raw, error), error.error_count()
        raise InvalidError([{**item, "loc": ("body", *item["loc"])} for item in found], count) from None


def _some_errors(model: type[BaseModel], raw: bytes, error: ValidationError) -> list[dict[str, Any]]:
    """As many errors as are shown. Tens of thousands of unknown fields would hold up everybody while they are told."""
    if error.error_count() > len(model.model_fields) + SHOWN:
        known: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        for name, value in from_json(raw).items():
            if name in model.model_fields:
                known[name] = value
            elif len(unknown) < SHOWN:
                unknown[name] = value
        try:
            model.model_validate({**known, **unknown})
        except ValidationError as fewer:
            error = fewer
    return [dict(item) for item in error.errors(include_url=False, include_context=True, include_input=False)]
