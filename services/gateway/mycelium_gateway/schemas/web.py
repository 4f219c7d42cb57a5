"""Signing in to the web app as HTTP has it."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Shape, shown_as

SIGNED_OUT = {"next": "https://sso.example.com/realms/mycelium/protocol/openid-connect/logout?client_id=mycelium-web"}


class SignedOut(Shape):
    """The session of this browser has ended."""

    model_config = shown_as(SIGNED_OUT)

    next: str = Field(description="Where the browser signs out of the issuer too; `/` when that has no such page.")
