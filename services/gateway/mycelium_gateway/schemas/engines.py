"""Engines as HTTP has them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

EngineKind = Literal["hello"]
ENGINE = {
    "handle": "greeter",
    "kind": "hello",
    "description": "",
    "paused": False,
    "created_at": "2026-09-03T16:40:01.000Z",
    "updated_at": "2026-09-03T16:40:01.000Z",
    "last_seen": None,
    "unread": 0,
}


class NewEngine(Body):
    """An engine to add to a room."""

    handle: WrittenHandle = Field(description="1 to 64 of a-z 0-9 . _ -.", examples=["greeter"])
    kind: EngineKind = Field(description="Which engine it is.")
    description: str | None = Field(None, description="What it is for.")


class Engine(Shape):
    """An engine of a room. It is a member like any other; as one it is listed there, too."""

    model_config = shown_as(ENGINE)

    handle: str
    kind: EngineKind | None = Field(description="Which engine it is; null for one that the hub does not run.")
    description: str
    paused: bool = Field(description="Whether mentions of it wait until it is resumed.")
    created_at: str
    updated_at: str
    last_seen: str | None = Field(description="When it last took a mention or posted; null when never.")
    unread: int = Field(description="Mentions that it has not taken yet.")


class EnginePage(Shape):
    """Engines by handle."""

    items: list[Engine]
    next: str | None = Field(description="Cursor of the next page, or null.")
