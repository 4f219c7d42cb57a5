"""People as HTTP has them."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

USER = {
    "handle": "avery",
    "name": "Avery Quinn",
    "team": "core",
    "created_at": "2026-09-03T16:39:00.000Z",
    "updated_at": "2026-09-03T16:39:00.000Z",
    "agents": [{"room": "design-review", "handle": "engineer"}],
}


class NewUser(Body):
    """A person to add."""

    handle: WrittenHandle = Field(description="1 to 64 of a-z 0-9 . _ -.", examples=["avery"])
    name: str | None = Field(None, description="Name to show.", examples=["Avery Quinn"])
    team: str | None = Field(None, description="Team the person belongs to.", examples=["core"])


class UserChange(Body):
    """What the record is to hold; what is absent stays."""

    name: str | None = Field(None, description="Name to show.", examples=["Avery Quinn"])
    team: str | None = Field(None, description="Team the person belongs to.")


class OwnedAgent(Shape):
    """One agent that a user owns."""

    room: str
    handle: str


class User(Shape):
    """A person of the hub."""

    model_config = shown_as(USER)

    handle: str
    name: str = Field(description="Empty when none was set.")
    team: str
    created_at: str
    updated_at: str
    agents: list[OwnedAgent]


class UserPage(Shape):
    """A page of people by handle."""

    items: list[User]
    next: str | None
