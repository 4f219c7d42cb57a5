"""What who starts to work in a room has to know, as HTTP has it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.members import MEMBER, Member
from mycelium_gateway.schemas.memory import MEMORY, Memory
from mycelium_gateway.schemas.messages import MESSAGE, Message
from mycelium_gateway.schemas.shape import Parameters, Shape, shown_as

CHANGE = {
    "key": "decisions/storage",
    "version": 3,
    "updated_by": "engineer",
    "updated_at": "2026-09-04T09:12:30.000Z",
    "removed": False,
    "summary": "Rooms are folders; memory is markdown files.",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
}
SYNTHESIS = {
    **MEMORY,
    "key": "context/synthesis",
    "value": "# Where we are\n\nRooms are folders.",
    "updated_at": "2026-09-03T16:00:00.000Z",
    "cut": False,
}
CATCHUP = {
    "room": "design-review",
    "since": "2026-09-03T16:00:00.000Z",
    "since_what": "synthesis",
    "synthesis": SYNTHESIS,
    "unread": 1,
    "here": {"items": [MEMBER], "more": False},
    "events": {"items": [], "more": False},
    "documents": {"items": [CHANGE], "more": False},
    "messages": {"items": [{**MESSAGE, "cut": False}], "more": False, "older_before": None},
}


class Wanted(Parameters):
    """How much is wanted, and from when on."""

    since: str = Field(
        "",
        description="From when on: RFC 3339, an age (`90s 30m 2h 1d`), `today` or `yesterday`. Without: since the "
        "synthesis, or for the last seven days when there is none.",
    )
    tz: str = Field("", description="Zone of days and of times without one, such as `Europe/Paris`; UTC without.")
    limit: int = Field(20, ge=1, le=100, description="How many of each at most.")


class Synthesis(Memory):
    """The document `context/synthesis`. Of a text of more than 16,000 characters the beginning."""

    model_config = shown_as(SYNTHESIS)

    cut: bool = Field(description="Whether this is the beginning only; a value is a text then.")


class Change(Shape):
    """A document that has changed, as it is now."""

    model_config = shown_as(CHANGE)

    key: str
    version: int
    updated_by: str = Field(description="Who wrote this version, or removed the document.")
    updated_at: str
    removed: bool
    summary: str = Field(description="The beginning of its text, as one line; its title where it has none.")
    thread: str


class ShortMessage(Message):
    """A message. Of a text of more than 2,000 characters the beginning."""

    model_config = shown_as({**MESSAGE, "cut": False})

    cut: bool = Field(description="Whether `content` is the beginning only.")


class Present(Shape):
    """Members that are here now, by handle."""

    items: list[Member]
    more: bool


class Events(Shape):
    """Events that are open or in progress, whenever they were posted; the newest first."""

    items: list[ShortMessage]
    more: bool


class Changes(Shape):
    """Documents that have changed, the last change first, each once and without the synthesis."""

    items: list[Change]
    more: bool


class Posts(Shape):
    """Messages of the channel, newest first."""

    items: list[ShortMessage]
    more: bool
    older_before: str | None = Field(description="`before` of the page of messages that goes on; null without more.")


class CatchUp(Shape):
    """What a room has come to, what has changed since, who is here, and what waits for the caller."""

    model_config = shown_as(CATCHUP)

    room: str
    since: str = Field(description="From when on documents and messages are shown.")
    since_what: Literal["asked", "synthesis", "last_days"] = Field(
        description="Why: it was asked for, it is when the synthesis was written, or there is none."
    )
    synthesis: Synthesis | None = Field(description="Null when there is none.")
    unread: int | None = Field(description="Deliveries that wait for the caller; null for who is no member.")
    here: Present
    events: Events
    documents: Changes
    messages: Posts
