"""Memory as HTTP has it: documents, their versions."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Parameters, Shape, WrittenHandle, shown_as

MEMORY = {
    "key": "decisions/storage",
    "value": "Rooms are folders; memory is markdown files.",
    "meta": {"status": "open", "owner": "@julia"},
    "tags": ["storage"],
    "version": 3,
    "created_by": "avery",
    "updated_by": "engineer",
    "created_at": "2026-09-03T16:41:07.250Z",
    "updated_at": "2026-09-04T09:12:30.000Z",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
    "expandable": False,
    "embed": True,
}
REPLACED = {"version": 2, "updated_by": "avery", "updated_at": "2026-09-03T16:42:00.000Z"}
VERSION = {
    "version": 3,
    "updated_by": "engineer",
    "updated_at": "2026-09-04T09:12:30.000Z",
    "removed": False,
    "summary": "Rooms are folders; memory is markdown files.",
    "bytes": 44,
    "origin": "call",
    "moved_from": None,
    "conflicted": False,
}


class MemoryChange(Body):
    """What of a document is to change; what is absent stays."""

    value: Any = Field(
        None,
        description="The text (markdown), or any other JSON value; at most 512 KiB in UTF-8.",
        examples=["Postgres"],
    )
    meta: dict[str, Any] = Field(
        default_factory=dict, description="Fields of one's own to set; null removes one. Others stay."
    )
    tags: list[str] | None = Field(None, description="The tags, all of them.", examples=[["storage"]])
    expandable: bool | None = Field(None, description="Whether other documents may embed it.")
    embed: bool | None = Field(None, description="Whether it is found by meaning.")
    expect: int | None = Field(
        None, ge=0, le=2**63 - 1, description="The version that there has to be; 0: none. Like `If-Match`."
    )
    handle: WrittenHandle | None = Field(
        None, description="Who writes; must agree with `Mycelium-Handle`.", examples=["avery"]
    )


class Listed(Parameters):
    """Which documents a page holds."""

    prefix: str = Field("", description="What their keys begin with.")
    tag: str = Field("", description="A tag that they have.")
    at: str = Field(
        "", description="As the room was then: RFC 3339, an age (`90s 30m 2h 1d`), `today` or `yesterday`; headlines."
    )
    tz: str = Field("", description="Zone of days and of times without one, such as `Europe/Paris`; UTC without.")
    brief: bool = Field(False, description="Only headlines: `value` is null.")
    view: Literal["documents", "problems"] = Field(
        "documents", description="The documents; or the files in the room's folder that are left alone, and why."
    )
    limit: int = Field(500, ge=1, le=5000, description="How many at most.")
    cursor: str = Field("", description="`next` of the page before.")


class Viewed(Parameters):
    """What of a document is shown."""

    view: Literal["document", "versions", "links", "raw"] = Field(
        "document",
        description="The document, its versions (the newest first), links of and to it, or the text of its file.",
    )
    expand: bool = Field(False, description="With the texts that it embeds in their places, as they are now.")
    version: int | None = Field(None, ge=1, le=2**63 - 1, description="As it was at this version.")
    at: str = Field("", description="As it was then, written like `at` of the list.")
    tz: str = Field("", description="Zone of days and of times without one; UTC without.")
    limit: int = Field(100, ge=1, le=1000, description="How many versions, or links to it, at most.")
    cursor: str = Field("", description="`next` of the page of versions, or of links to it, before.")


class Expected(Parameters):
    """What a removal expects."""

    expect: int | None = Field(None, ge=0, le=2**63 - 1, description="The version that there has to be.")


class Memory(Shape):
    """A document at one version."""

    model_config = shown_as(MEMORY)

    key: str
    value: Any = Field(description="A text, or the JSON value that was written.")
    meta: dict[str, Any] = Field(description="The fields that are its writers' own.")
    tags: list[str]
    version: int = Field(description="Goes up by one with each write and each removal. Also the `ETag`.")
    created_by: str
    updated_by: str
    created_at: str
    updated_at: str
    thread: str = Field(description="Id of the thread in which it is discussed.")
    expandable: bool
    embed: bool = Field(description="Whether it is found by meaning.")


class Replaced(Shape):
    """The version that a write has replaced."""

    version: int
    updated_by: str
    updated_at: str


class WrittenMemory(Memory):
    """A document as it was just written."""

    model_config = shown_as({**MEMORY, "replaced": REPLACED})

    replaced: Replaced | None = Field(description="Null for the first version, and after a removal.")


class ListedMemory(Memory):
    """A document in a list."""

    model_config = shown_as({**MEMORY, "summary": "Rooms are folders; memory is markdown files."})

    summary: str = Field(description="The beginning of its text, as one line; its title where it has none.")


class MemoryPage(Shape):
    """Documents by key."""

    items: list[ListedMemory]
    next: str | None = Field(description="Cursor of the next page, or null.")
    at: str | None = Field(description="The moment of which it is; null when that is now.")


class FileProblem(Shape):
    """A file in the room's folder that is left alone, or an edit of one that met a write."""

    path: str = Field(description="Under the room's folder; empty for that folder itself.")
    reason: str


class FileProblems(Shape):
    """What is wrong in the room's folder, by path; a thousand at most."""

    items: list[FileProblem]
    next: str | None


class Version(Shape):
    """The headline of one version."""

    model_config = shown_as(VERSION)

    version: int
    updated_by: str = Field(description="Who wrote it, or removed the document.")
    updated_at: str
    removed: bool = Field(description="Whether it is a removal: then there is nothing to read.")
    summary: str = Field(description="The beginning of its text, as one line; its title where it has none.")
    bytes: int
    origin: Literal["call", "file", "import"]
    moved_from: str | None = Field(description="The key that it had before its file was renamed.")
    conflicted: bool = Field(description="Whether it is an edit of the file that met a write: both are kept.")


class VersionPage(Shape):
    """The versions of a document, the newest first."""

    items: list[Version]
    next: str | None = Field(description="Cursor of the next page, or null.")
    key: str
    thread: str
