"""Bringing an engine into a task, as HTTP has it."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, WrittenHandle


class Coordination(Body):
    """Which engine, and what it is to settle."""

    engine: WrittenHandle = Field(description="Handle of an engine of the room.", examples=["aligner"])
    text: str = Field(description="What is to be settled (markdown).", examples=["agree on token storage"])
    handle: WrittenHandle | None = Field(None, description="Who asks; must agree with `Mycelium-Handle`.")
