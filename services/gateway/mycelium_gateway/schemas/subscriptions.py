"""Subscriptions as HTTP has them."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

SUBSCRIPTION = {"handle": "engineer", "pattern": "decisions/*", "created_at": "2026-09-03T16:41:07.250Z"}


class NewSubscription(Body):
    """Which documents' changes wake the caller."""

    pattern: str = Field(
        description="What keys match: `*` is anything, slashes too, `?` one character, `[ab]` one of these; "
        "`work/` is all that is under it.",
        examples=["decisions/*"],
    )
    handle: WrittenHandle | None = Field(
        None, description="Who is woken; must agree with `Mycelium-Handle`.", examples=["engineer"]
    )


class Subscription(Shape):
    """One pattern of one handle."""

    model_config = shown_as(SUBSCRIPTION)

    handle: str
    pattern: str = Field(description="As it was given.")
    created_at: str


class SubscriptionPage(Shape):
    """All of one handle in a room."""

    items: list[Subscription]
    next: str | None
