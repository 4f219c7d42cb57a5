"""Signing in to the web app: out to the issuer, back from it, out of the hub."""

from __future__ import annotations

import html
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mycelium_gateway import problems
from mycelium_gateway.answers import answer
from mycelium_gateway.gateway import Gateway
from mycelium_gateway.schemas import web as schemas
from mycelium_kernel.errors import Refusal, Unavailable

router = APIRouter(prefix="/api/auth", tags=["hub"])
PAGE = """<!doctype html><meta charset="utf-8"><title>Mycelium</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:20vh auto;padding:0 1rem}}</style>
<h1>{title}</h1><p>{detail}</p>{again}
"""
AGAIN = '<p><a href="/api/auth/login">Sign in again</a></p>'
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
DESCRIBED: dict[int | str, dict[str, Any]] = {303: {"description": "On to the next page."}}
LONGEST = 4_000
Text = Annotated[str, Query(max_length=LONGEST)]


@router.get(
    "/login",
    status_code=303,
    response_class=Response,
    summary="Sign in by a browser",
    description="Sends the browser to the issuer. `next` is the page of the app that it comes back to.",
    responses={**problems.responses("sign_in.off"), **DESCRIBED},
)
async def begin_sign_in(
    request: Request, wanted: Annotated[str, Query(alias="next", max_length=LONGEST)] = "/"
) -> Response:
    gateway: Gateway = request.app.state.gateway
    try:
        return await gateway.web.begin(request.scope, wanted)
    except (Refusal, Unavailable) as error:
        return _page(request, error)


@router.get(
    "/callback",
    status_code=303,
    response_class=Response,
    summary="Come back from the issuer",
    description="The issuer sends the browser here with `code` and `state`; both are good once, in this browser.",
    responses={**problems.responses("sign_in.off", "sign_in.failed"), **DESCRIBED},
)
async def finish_sign_in(
    request: Request, state: Text = "", code: Text = "", error: Text = "", iss: Text | None = None
) -> Response:
    gateway: Gateway = request.app.state.gateway
    said = {"state": state, "code": "" if error else code} | ({} if iss is None else {"iss": iss})
    try:
        return await gateway.web.finish(request.scope, said)
    except Unavailable as failure:  # the code may still be good: the browser can load the page again
        return _page(request, failure)
    except Refusal as refusal:
        return _with(_page(request, refusal), gateway.web.abandon(request.scope, state))


@router.post(
    "/logout",
    response_model=schemas.SignedOut,
    summary="Sign out of the web app",
    description="Ends the session of this browser. `next` is where it signs out of the issuer, too.",
    responses=problems.responses("sign_in.off"),
)
async def sign_out(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    there, headers = await gateway.web.end(request.scope)
    return _with(answer({"next": there}), headers)


def _with(response: Response, headers: list[tuple[str, str]]) -> Response:
    for name, value in headers:
        response.headers.append(name, value)
    return response


def _page(request: Request, error: Refusal | Unavailable) -> Response:
    """What went wrong, for a person's browser, or as everywhere for a program."""
    document = problems.of_refusal(error) if isinstance(error, Refusal) else problems.of_unavailable(error)
    plain = problems.response(document)
    if "text/html" not in request.headers.get("accept", ""):
        return plain
    again = "" if document["slug"] == "sign_in.off" else AGAIN
    body = PAGE.format(
        title=html.escape(str(document["title"])), detail=html.escape(str(document["detail"])), again=again
    )
    retry = {name: value for name, value in plain.headers.items() if name == "retry-after"}
    return HTMLResponse(body, plain.status_code, {**HEADERS, **retry})
