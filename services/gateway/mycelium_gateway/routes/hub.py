"""The hub itself: health, metrics, who the caller is."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import prometheus_client
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.gateway import Gateway
from mycelium_gateway.identity import Identity
from mycelium_gateway.schemas import hub as schemas
from mycelium_kernel.clock import rfc3339
from mycelium_kernel.names import is_loopback

router = APIRouter(tags=["hub"])
ASK_S = 1.2  # what each service has to answer in; they are asked together


@router.get("/healthz", response_class=PlainTextResponse, summary="Whether the gateway answers")
async def healthz() -> Response:
    return PlainTextResponse("ok")


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Prometheus metrics of this process",
    responses=problems.responses(),
)
async def metrics() -> Response:
    return Response(prometheus_client.generate_latest(), media_type=prometheus_client.CONTENT_TYPE_LATEST)


@router.get("/health", response_model=schemas.Health, summary="How the hub and its services are")
async def health(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    client = gateway.connection.client
    said, search = await _ask_all(gateway)
    bad = {name: one for name, one in said.items() if one["status"] not in {"ok", "starting"}}
    faults = [f"{name} is {one['status']}: {one['detail']}" for name, one in bad.items()]
    faults[:0] = _own_faults(gateway)
    server = client.connected_server_version if client.is_connected else None
    body = {
        "status": "degraded" if faults else "ok",
        "version": gateway.version,
        "services": said,
        "auth": _auth(gateway),
        "nats": {
            "connected": client.is_connected,
            "version": f"{server.major}.{server.minor}.{server.patch}" if server else "",
        },
        "search": search,
        "warnings": [*faults, *_risks(gateway)],
    }
    return answer(body)


def _own_faults(gateway: Gateway) -> list[str]:
    """What is wrong in this process."""
    if not gateway.connection.client.is_connected:
        return ["the gateway has no connection to NATS"]
    said = gateway.health()
    faults = [] if said["status"] == "ok" else [f"gateway is {said['status']}: {said['detail']}"]
    return faults if gateway.live.is_live else [*faults, "live streams wait for the log"]


def _auth(gateway: Gateway) -> shapes.Json:
    """Whether callers have to sign in, and where; no more than a client needs, since anybody may ask."""
    auth = gateway.settings.auth
    if not auth.enabled:
        return {"enabled": False}
    return {
        "enabled": True,
        "issuers": [issuer.issuer for issuer in auth.issuers],
        "audience": auth.audience or None,
        "localhost_bypass": auth.localhost_bypass,
        "web": gateway.web.is_on,
        "warnings": _sign_in_warnings(gateway),
    }


def _sign_in_warnings(gateway: Gateway) -> list[str]:
    """What is set and should not stay so, and whose keys can't be had."""
    auth = gateway.settings.auth
    return [
        *auth.warnings(),
        *gateway.settings.web.warnings(auth),
        *gateway.tokens.troubles(),
        *gateway.namesakes.troubles(),
    ]


def _risks(gateway: Gateway) -> list[str]:
    """What the hub's owner has insisted on and should not forget."""
    if gateway.settings.auth.enabled:
        return [f"sign-in: {line}" for line in _sign_in_warnings(gateway)]
    if is_loopback(gateway.settings.host):
        return []
    return [f"nobody has to sign in, and other machines reach {gateway.settings.host} (auth.insecure)"]


async def _ask_all(gateway: Gateway) -> tuple[dict[str, shapes.Json], shapes.Json | None]:
    """What each service says, and what the owner of the search index says of that."""
    wanted = gateway.settings.services
    answers = await asyncio.gather(*(gateway.bus.health(name, ASK_S, count) for name, count in wanted.items()))
    together = {name: _together(said, wanted[name]) for name, said in zip(wanted, answers, strict=True)}
    for name, one in together.items():
        if one["status"] == "down" and gateway.is_late(name):
            one.update(status="starting", detail="it starts once the hub answers")
    tell = [one["search"] for said in answers for one in said if "search" in one]
    return together, {"refused": 0, "next_model": None, **tell[0]} if tell else None


def _together(said: list[dict[str, Any]], wanted: int) -> shapes.Json:
    """What the replicas of one service say, as one; a replica that says nothing makes it `degraded`."""
    details = [str(one["detail"]) for one in said if one.get("detail")]
    if wanted > 1:
        details.append(f"{len(said)} of {wanted} replicas answer")
    elif not said:
        details.append("no answer")
    whole = len(said) >= wanted and all(one.get("status") == "ok" for one in said)
    status = "ok" if whole else ("degraded" if said else "down")
    return {"status": status, "detail": "; ".join(dict.fromkeys(details))}


@router.get(
    "/api/whoami",
    response_model=schemas.WhoAmI,
    summary="Who the hub takes the caller for",
    responses=problems.responses(),
)
async def whoami(call: Caller) -> Response:
    handle, kind, name = call.actor.handle, views_pb2.MEMBER_KIND_UNSPECIFIED, ""
    if handle:
        request = service_pb2.DescribeHandleRequest(handle=handle)
        described = (await call.ask(request, service_pb2.DescribeHandleResponse)).message
        kind, name = described.kind, described.name
    registered = kind != views_pb2.MEMBER_KIND_UNSPECIFIED
    return answer(
        {
            "handle": handle,
            "registered": registered,
            "kind": shapes.MEMBER_KINDS[kind] if registered else None,
            "name": name,
            "auth": {"enabled": call.gateway.settings.auth.enabled},
            **_proof(call.identity, call.gateway.settings.auth.leeway_s),
        }
    )


def _proof(identity: Identity | None, leeway_s: float) -> shapes.Json:
    """What a token has proved, and when it says itself that it runs out."""
    if identity is None:
        return {"proven": False, "role": None, "issuer": None, "expires_at": None}
    lasts = 0 < identity.expires_at < math.inf
    ends = rfc3339(int((identity.expires_at - leeway_s) * 1000)) if lasts else None
    return {"proven": True, "role": identity.role or None, "issuer": identity.issuer or None, "expires_at": ends}
