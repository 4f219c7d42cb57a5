"""What travels between a mention, its workflow and its activities. Ids only: texts stay where they are stored."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Literal

PICO = 10**12  # parts of a dollar; a token of the cheapest model costs thousands of them
Outcome = Literal["reported", "unreported", "lost", "nothing"]
Ended = Literal["done", "failed", "capped", "stopped"]


@dataclass(frozen=True)
class Call:
    """One engine, named by one message of one room."""

    room_id: str
    message_id: str
    handle: str


@dataclass(frozen=True)
class Limits:
    """What engines may spend in each room, as the hub's settings say; 0: no limit."""

    turns: int = 0
    tokens: int = 0
    pico_usd: int = 0


@dataclass(frozen=True)
class Use:
    """What one question to a model took, told by the activity that asked to the one that records it.

    `outcome`: the provider `reported` the tokens, or left them `unreported`; the answer was `lost`, so that nobody
    knows; or the provider refused and took `nothing`. `pico_usd` is None when the price is not known.
    """

    step: int
    ask: int
    is_reserved: bool
    outcome: Outcome
    input_tokens: int = 0
    output_tokens: int = 0
    pico_usd: int | None = None


@dataclass(frozen=True)
class Answer:
    """What came of asking the model: a text, or what went wrong and what to type next.

    `gone` says that there is nobody left to answer, or to do it: the room, the message or the engine went meanwhile.
    `use` is what the model took, which is not recorded yet; None when none was asked.
    """

    text: str = ""
    slug: str = ""
    detail: str = ""
    next: str = ""
    gone: bool = False
    model: str = ""
    use: Use | None = None


@dataclass(frozen=True)
class Reply:
    """An answer, to be posted to a call."""

    call: Call
    answer: Answer
    run: str


@dataclass(frozen=True)
class Beginning:
    """That a run has begun: of which kind of engine, for which call. `run` is the workflow's id."""

    call: Call
    kind: str
    run: str


@dataclass(frozen=True)
class Ending:
    """That a run is over, and how."""

    call: Call
    run: str
    outcome: Ended
    reason: str = ""


def post_key(run: str) -> str:
    """The key under which a run posts its answer: however often it tries, the room has it once."""
    return uuid.uuid5(uuid.NAMESPACE_URL, run).hex
