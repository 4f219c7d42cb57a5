"""Search of a room's memory as HTTP has it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from mycelium_gateway.schemas.shape import Parameters, Shape, shown_as

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
FOUND = {
    "key": "decisions/storage",
    "section": "why-folders",
    "title": "Why folders",
    "text": "## Why folders\n\nRooms are folders; memory is markdown files.",
    "cut": False,
    "found_by": ["words", "meaning"],
    "score": 0.0328,
    "version": 3,
    "tags": ["storage"],
    "updated_by": "engineer",
    "updated_at": "2026-09-04T09:12:30.000Z",
}
Tag = Annotated[str, StringConstraints(max_length=400)]


class Searched(Parameters):
    """What is looked for, and where."""

    q: str = Field(
        description="Words or whole sentences; what stands in quotes has to be there as it is.",
        examples=["how do we store things"],
    )
    prefix: str = Field("", max_length=2000, description="What keys begin with.")
    tag: list[Tag] = Field(
        default_factory=list, max_length=100, description="A tag that documents have; all, of several."
    )
    author: str = Field("", max_length=200, description="Who wrote the present version.")
    since: str = Field(
        "",
        max_length=100,
        description="Only versions from then on: RFC 3339, an age (`90s 30m 2h 1d`), `today` or `yesterday`.",
    )
    until: str = Field("", max_length=100, description="Only versions before then, written like `since`.")
    tz: str = Field("", description="Zone of days and of times without one, such as `Europe/Paris`; UTC without.")
    limit: int = Field(10, ge=1, le=50, description="How many sections at most.")


class FoundSection(Shape):
    """A section of a document, as it is now."""

    model_config = shown_as(FOUND)

    key: str
    section: str = Field(description="What `[[key#section]]` names it by; empty before the first heading.")
    title: str = Field(description="Its heading; empty before the first.")
    text: str = Field(description="The section with its heading, or the part of it that matches best.")
    cut: bool = Field(description="Whether `text` is only a part of the section.")
    found_by: list[Literal["words", "meaning"]]
    score: float = Field(description="Larger is better; comparable within one answer.")
    version: int
    tags: list[str]
    updated_by: str
    updated_at: str


class Meaning(Shape):
    """How far the search by meaning goes at the moment."""

    model_config = shown_as({"model": MODEL, "why_not": None, "waiting": 0})

    model: str | None = Field(description="By which model was searched; null when by none.")
    why_not: str | None = Field(description="Why nothing was found by meaning, where it could not be looked for.")
    waiting: int = Field(description="How many documents of the room can't be found by meaning yet.")


class SearchAnswer(Shape):
    """The best sections first."""

    items: list[FoundSection]
    meaning: Meaning


class Renewed(Shape):
    """What is being indexed again."""

    documents: int
    meaning: Meaning
