"""Presence as HTTP has it."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, WrittenHandle


class Presence(Body):
    """What a member says that it is doing."""

    handle: WrittenHandle | None = Field(
        None, description="Who says it; must agree with `Mycelium-Handle`.", examples=["engineer"]
    )
    state: str = Field(description="`idle`, `working` or `blocked`.", examples=["working"])
    note: str | None = Field(None, description="One line for the others.", examples=["reviewing #48"])
    ttl_s: float = Field(60.0, description="How long it holds, 5 to 600 seconds.")
