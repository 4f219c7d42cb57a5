"""Join codes as HTTP has them."""

from __future__ import annotations

from pydantic import Field

from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

CODE = {
    "code": "abcd-efgh-jkmn",
    "room": "demo",
    "room_id": "0199f2a0-4a51-7c3e-9d20-0c5b3a77e101",
    "handle": "engineer",
    "expires_at": "2026-09-03T16:50:01.000Z",
}
JOINED = {
    "room": "demo",
    "room_id": "0199f2a0-4a51-7c3e-9d20-0c5b3a77e101",
    "handle": "engineer",
    "token": None,
}


class NewJoinCode(Body):
    """For whom a code is wanted. The one that this agent had and has not used is worthless from then on."""

    handle: WrittenHandle = Field(description="The agent that joins with it.", examples=["engineer"])


class JoinCode(Shape):
    """A code, told this once: the hub keeps only its digest."""

    model_config = shown_as(CODE)

    code: str = Field(description="Twelve letters and digits in groups of four; blanks, dashes and case don't matter.")
    room: str = Field(description="Name of the room that it lets into.")
    room_id: str
    handle: str = Field(description="The agent that it makes of whoever uses it.")
    expires_at: str = Field(description="Until when it can be used, once.")


class Join(Body):
    """A code to use."""

    code: str = Field(max_length=200, description="The code.", examples=["abcd-efgh-jkmn"])
    room: str | None = Field(None, description="The only room that will do: with another's code nothing is done.")
    handle: WrittenHandle | None = Field(None, description="The only agent that will do.")


class Joined(Shape):
    """Which member of which room whoever asked is from now on."""

    model_config = shown_as(JOINED)

    room: str
    room_id: str
    handle: str
    token: str | None = Field(
        description="What it signs in with, in this room alone; null while nobody has to. Told this once."
    )
