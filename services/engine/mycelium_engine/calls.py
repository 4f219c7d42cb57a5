"""What travels between a mention, its workflow and its activities. Ids only: texts stay where they are stored."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """One engine, named by one message of one room."""

    room_id: str
    message_id: str
    handle: str


@dataclass(frozen=True)
class Answer:
    """What came of asking the model: a text, or what went wrong and what to type next.

    `gone` says that there is nobody left to answer: the room or the message was deleted meanwhile.
    """

    text: str = ""
    slug: str = ""
    detail: str = ""
    next: str = ""
    gone: bool = False


@dataclass(frozen=True)
class Reply:
    """An answer, to be posted to a call."""

    call: Call
    answer: Answer
    run: str


def post_key(run: str) -> str:
    """The key under which a run posts its answer: however often it tries, the room has it once."""
    return uuid.uuid5(uuid.NAMESPACE_URL, run).hex
