"""Members as HTTP has them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Parameters, Shape, WrittenHandle, shown_as

Kind = Literal["agent", "user", "engine"]
Presence = Literal["idle", "working", "blocked", "offline"]
MEMBER = {
    "handle": "engineer",
    "kind": "agent",
    "name": "",
    "description": "Builds and tests",
    "cwd": "/repo",
    "adapter": "claude_code",
    "owner": "avery",
    "team": "core",
    "allow_from": [],
    "notes": "",
    "paused": False,
    "created_at": "2026-09-03T16:40:01.000Z",
    "updated_at": "2026-09-03T16:40:01.000Z",
    "last_seen": "2026-09-03T16:41:07.250Z",
    "waiting": True,
    "unread": 0,
    "presence": "idle",
    "presence_note": "",
}


class NewMember(Body):
    """A member to add. One that is there already is changed: what is absent stays."""

    handle: WrittenHandle = Field(description="1 to 64 of a-z 0-9 . _ -.", examples=["engineer"])
    kind: Kind | None = Field(
        None, description="What stands behind it; a new member is an agent unless this says else."
    )
    description: str | None = Field(None, description="What it does.", examples=["Builds and tests"])
    cwd: str | None = Field(None, description="The folder in which its session works.")
    adapter: str | None = Field(None, description="How it connects, such as `claude_code` or `cursor`.")
    owner: WrittenHandle | None = Field(None, description="Handle of the user it belongs to.", examples=["avery"])
    team: str | None = Field(None, description="Team it belongs to.")
    allow_from: list[WrittenHandle] | None = Field(
        None, fail_fast=True, description="Handles that may act for it; they come to those of the record."
    )
    notes: str | None = Field(None, description="Notes for the agent itself.")
    paused: bool | None = Field(None, description="Whether its deliveries wait until it is resumed.")


class MemberChange(Body):
    """What to change; what is absent stays."""

    kind: Kind | None = None
    description: str | None = None
    cwd: str | None = None
    adapter: str | None = None
    owner: WrittenHandle | None = None
    team: str | None = None
    allow_from: list[WrittenHandle] | None = Field(
        None, fail_fast=True, description="Handles that may act for it; replaces the list."
    )
    notes: str | None = None
    paused: bool | None = Field(None, description="Whether its deliveries wait until it is resumed.")


class MemberFilter(Parameters):
    """Which members a list holds; all of them without."""

    kind: Kind | None = Field(None, description="Only this kind.")
    owner: str = Field("", description="Only of this owner.")
    team: str = Field("", description="Only of this team.")
    cursor: str = Field("", description="`next` of the page before.")


class MemberRecord(Shape):
    """What is stored of a member; live events hold this."""

    handle: str
    kind: Kind
    description: str
    cwd: str
    adapter: str
    owner: str
    team: str
    allow_from: list[str]
    notes: str
    paused: bool = Field(description="Whether its deliveries wait until it is resumed.")
    created_at: str
    updated_at: str


class Member(MemberRecord):
    """One handle in one room."""

    model_config = shown_as(MEMBER)

    name: str = Field(description="Name to show; empty when none is known.")
    last_seen: str | None = Field(description="When it last posted or waited; null when never.")
    waiting: bool = Field(description="Whether a wait of it is open now.")
    unread: int = Field(description="Deliveries that nobody has acknowledged yet.")
    presence: Presence
    presence_note: str = Field(description="What it says of that; empty when nothing.")


class MemberPage(Shape):
    """Members by handle."""

    items: list[Member]
    next: str | None = Field(description="Cursor of the next page, or null.")
