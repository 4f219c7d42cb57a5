"""Waiting, acknowledging, responding as HTTP has them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.messages import MESSAGE, Message
from mycelium_gateway.schemas.shape import Body, Shape, WrittenHandle, shown_as

HANDLE = Field(None, description="Who calls; must agree with `Mycelium-Handle`.", examples=["engineer"])
SEAT = Field("", description="Seat of the caller, without `#`; each seat has a queue of its own.")
TASK = Field("", description="Only this thread, by id, full or short, or by a memory's key.")
DELIVERY = {
    "message": MESSAGE,
    "earlier": [],
    "redelivered": False,
    "reason": "mention",
    "ack": MESSAGE["id"],
    "attempt": 1,
    "sequence": None,
}


class Await(Body):
    """What to wait for."""

    handle: WrittenHandle | None = HANDLE
    timeout_s: float = Field(300.0, ge=0, le=3600, description="How long to wait at most, in seconds.")
    task: str = TASK
    seat: WrittenHandle = SEAT
    lease: str = Field("", description="Wait until this task changes hands, and for nothing else.")
    since: int | None = Field(
        None,
        ge=0,
        le=2**63 - 1,
        description="With `lease`: only what was done after this `sequence`; absent: from now on.",
    )
    after: int = Field(
        0, ge=0, le=2**63 - 1, description="With `lease`: only notices after this `seq`, of the one before."
    )
    ack: str = Field("", description="Token of a delivery that is acknowledged first.")
    confirm: bool = Field(False, description="The delivery counts as received only when `ack` says so.")


class Acknowledgement(Body):
    """What became of a delivery."""

    handle: WrittenHandle | None = HANDLE
    ack: str = Field(description="The token that await has answered with.", examples=[MESSAGE["id"]])
    outcome: Literal["received", "acknowledged", "parked"] = Field(examples=["acknowledged"])
    seat: WrittenHandle = SEAT


class Reply(Body):
    """A reply. Without `task` it goes to the thread of the session's last delivered, unanswered message."""

    handle: WrittenHandle | None = HANDLE
    content: str = Field(description="Markdown, at most 256 KiB in UTF-8.", examples=["moving toward 30 %"])
    task: str = Field("", description="The thread: an id, full or short, or a memory's key.")
    reply_to: str = Field("", description="Id of the message that it answers, full or short.")
    allow_unknown: bool = Field(False, description="Post it although it mentions unknown handles.")


class Delivery(Shape):
    """A message for the caller."""

    model_config = shown_as(DELIVERY)

    message: Message
    earlier: list[Message] = Field(
        description="Up to 30 messages before it since the receiver last spoke, oldest first."
    )
    redelivered: bool = Field(description="Whether it was given out before.")
    reason: Literal["mention", "changed", "turn", "assigned", "lease"] = Field(
        description="`changed`: a document that the caller subscribes to has changed; `assigned`: a task was given to "
        "it; `lease`: others ended its claim, or the task of `lease` changed hands. Then the message is a headline."
    )
    ack: str = Field(description="Names this delivery in `ack`.")
    attempt: int = Field(description="How often it was given out, with this time.")
    sequence: int | None = Field(description="Of a wait with `lease`: the place of what was done; the next `since`.")
