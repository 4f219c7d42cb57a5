"""The hub itself as HTTP has it: health and identity."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mycelium_gateway.schemas.members import Kind
from mycelium_gateway.schemas.shape import Shape, shown_as

HEALTH = {
    "status": "ok",
    "version": "0.1.0",
    "services": {"rooms": {"status": "ok", "detail": ""}},
    "auth": {"enabled": False},
    "nats": {"connected": True, "version": "2.15.1"},
    "search": {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "chosen": "it comes with the program; the files of BAAI/bge-small-en-v1.5 are not here",
        "state": "ready",
        "waiting": 0,
        "refused": 0,
        "next_model": None,
    },
    "warnings": [],
}
WHOAMI = {
    "handle": "avery",
    "registered": True,
    "kind": "user",
    "name": "Avery Quinn",
    "auth": {"enabled": True},
    "proven": True,
    "role": "user",
    "issuer": "https://sso.example.com/realms/mycelium",
    "expires_at": "2026-09-03T10:42:00.000Z",
}
PROBLEM = {
    "type": "about:blank#room.not_found",
    "title": "Room not found",
    "status": 404,
    "detail": "there is no room 'demo'",
    "slug": "room.not_found",
    "next": "mycelium room create demo",
}


class Auth(Shape):
    """Whether callers have to sign in."""

    enabled: bool
    issuers: list[str] = Field(default_factory=list, description="Whose tokens are believed; absent with sign-in off.")
    audience: str | None = Field(None, description="The `aud` that a token needs; absent with sign-in off.")
    localhost_bypass: bool = Field(
        False, description="Whether the hub's own machine needs no token; absent with sign-in off."
    )
    web: bool = Field(
        False, description="Whether people can sign in by a browser (`/api/auth/login`); absent with sign-in off."
    )
    warnings: list[str] = Field(default_factory=list, description="What should not stay so; absent with sign-in off.")


class SignIn(Shape):
    """Whether callers have to sign in."""

    enabled: bool


class ServiceHealth(Shape):
    """What one service says of itself."""

    status: Literal["ok", "starting", "degraded", "down"]
    detail: str


class Nats(Shape):
    """The gateway's connection to NATS."""

    connected: bool
    version: str


class SearchHealth(Shape):
    """The index by which memory is found by meaning."""

    model: str = Field(description="The model in force; empty before it is known.")
    chosen: str = Field(description="Why it is this one.")
    state: str = Field(description="`ready`, or why it does not answer at the moment.")
    waiting: int = Field(description="How many documents can't be found by it yet.")
    refused: int = Field(description="How many it could do nothing with.")
    next_model: str | None = Field(description="The model that takes over when it has indexed everything.")


class Health(Shape):
    """The hub's state, answered within a second and a half."""

    model_config = shown_as(HEALTH)

    status: Literal["ok", "degraded"]
    version: str
    services: dict[str, ServiceHealth]
    auth: Auth
    nats: Nats
    search: SearchHealth | None = Field(description="Null when no owner of the index answers.")
    warnings: list[str]


class WhoAmI(Shape):
    """Who the hub takes the caller for."""

    model_config = shown_as(WHOAMI)

    handle: str = Field(description="Empty when the caller names none.")
    registered: bool
    kind: Kind | None
    name: str
    auth: SignIn
    proven: bool = Field(description="Whether a token says so; else the caller names itself.")
    role: Literal["user", "agent"] | None = Field(description="What the token, or its issuer's table, says it is.")
    issuer: str | None = Field(description="Who made the token.")
    expires_at: str | None = Field(description="When the token runs out.")


class Problem(Shape):
    """RFC 9457: why a request failed. Further fields depend on the slug, such as `near`, `candidates`, `errors`."""

    model_config = shown_as(PROBLEM, extra="allow")

    type: str
    title: str = Field(description="A sentence for the slug.")
    status: int
    detail: str = Field(description="What, and where.")
    slug: str = Field(description="Stable name of the reason.")
    next: str = Field("", description="A command that gets further; absent when there is none.")
    key: str = Field("", description="Finds the fault in the hub's log; absent unless the slug is `internal`.")
    errors: list[dict[str, Any]] = Field(
        default_factory=list, description="Each field that is not valid; absent otherwise."
    )
