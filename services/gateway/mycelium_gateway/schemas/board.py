"""The board as HTTP has it: pages of rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Parameters, Shape, shown_as
from mycelium_gateway.schemas.tasks import TASK, Task

Filter = Literal["needs-you", "in-flight", "resolved", "all", "ready"]


class Rows(Parameters):
    """Which rows a page holds."""

    filter: Filter = Field(
        "needs-you",
        description="Open decisions, blocked work and reviews; claimed work; what was closed today; everything, with "
        "the runs of engines that are under way and the members that are active; or what somebody can begin with now.",
    )
    group: str = Field(
        "", description="A field: each row says under which of its values it stands.", examples=["priority"]
    )
    tz: str = Field("", description="The zone that today begins in, such as `Europe/Paris`; UTC without.")
    closed_since: str = Field(
        "",
        max_length=100,
        description="From when on what was closed is shown, in place of today: RFC 3339, an age (`90s 30m 2h 1d`), "
        "`today` or `yesterday`.",
        examples=["2026-09-03T16:40:00Z"],
    )
    limit: int = Field(500, ge=1, le=5000, description="How many at most.")
    cursor: str = Field("", description="`next` of the page before.")


class Board(Shape):
    """A page of rows: decisions, what is blocked, reviews, what else is open, what is closed; the last moved first."""

    model_config = shown_as(
        {"room": "demo", "items": [TASK], "next": None, "needs_you": 0, "in_flight": 1, "resolved": 0}
    )

    room: str
    items: list[Task]
    next: str | None = Field(description="Cursor of the next page; a page of `ready` may be empty and have one.")
    needs_you: int = Field(description="How many rows need a person.")
    in_flight: int = Field(description="How many are claimed.")
    resolved: int = Field(description="How many were closed today.")
