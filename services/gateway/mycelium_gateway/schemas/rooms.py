"""Rooms as HTTP has them."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.members import MEMBER, Member
from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

ROOM = {
    "id": "0199f2a0-4a51-7c3e-9d20-0c5b3a77e101",
    "name": "design-review",
    "title": "Design review",
    "private": False,
    "created_by": "avery",
    "created_at": "2026-09-03T16:40:00.000Z",
    "members": 2,
    "last_message_at": "2026-09-03T16:41:07.250Z",
    "folder": "",
}


class NewRoom(Body):
    """A room to make."""

    name: str = Field(
        description="Up to 100 characters; can't be blank, `.`, `..`, or hold slashes.", examples=["design-review"]
    )
    title: str = Field("", description="Display title.", examples=["Design review"])
    private: bool = Field(False, description="Whether it is listed for its members only.")
    handle: WrittenHandle | None = Field(
        None, description="Who makes it; must agree with `Mycelium-Handle`.", examples=["avery"]
    )


class RoomChange(Body):
    """What to change; what is absent stays."""

    title: str | None = Field(None, description="New display title.", examples=["Design review, autumn"])
    private: bool | None = Field(None, description="New privacy: for its members alone, or for everybody.")
    folder: str | None = Field(None, description="Folder of the caller's own list; empty takes the room out.")
    handle: WrittenHandle | None = Field(None, description="Who changes it; must agree with `Mycelium-Handle`.")


class Room(Shape):
    """A room."""

    model_config = shown_as(ROOM)

    id: str = Field(description="Never changes and is never used again.")
    name: str = Field(description="As its creator wrote it, in NFC.")
    title: str = Field(description="Empty when none was set.")
    private: bool
    created_by: str = Field(description="Empty when its creator gave no handle.")
    created_at: str
    members: int = Field(description="How many members it has.")
    last_message_at: str | None = Field(description="Null in an empty room.")
    folder: str = Field(description="Where the caller has put it in their own list; empty when nowhere.")


class RoomWithMembers(Room):
    """A room and who is in it."""

    model_config = shown_as({**ROOM, "members_list": [MEMBER], "members_next": None})

    members_list: list[Member] = Field(description="By handle, as many as one page of the members holds.")
    members_next: str | None = Field(description="`cursor` of the members that follow, or null.")


class RoomPage(Shape):
    """A page of rooms by name."""

    items: list[Room]
    next: str | None = Field(description="Cursor of the next page, or null.")
