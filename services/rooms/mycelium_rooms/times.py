"""Points in time as readers give them: RFC 3339, a message's cursor `timestamp~sequence`, or an age."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal
from mycelium_kernel.times import UTC_ZONE, millis, zone

__all__ = ["Place", "cursor", "place", "zone"]
SEQUENCE_DIGITS = 18


@dataclass(frozen=True)
class Place:
    """A place in a room's history: before or from a message (`sequence`), else a moment in milliseconds."""

    sequence: int
    millis: int


def cursor(millis: int, sequence: int) -> str:
    """The cursor of a message. The time is for people; the sequence is what counts, since many share a millisecond."""
    return f"{clock.rfc3339(millis)}~{sequence}"


def place(field: str, text: str, now: datetime, zone: ZoneInfo = UTC_ZONE) -> Place:
    """The place that `text` gives, as `mycelium_kernel.times` reads it. Refused when it is none of the forms."""
    moment, separator, sequence = text.strip().partition("~")
    if separator:
        if not (sequence.isascii() and sequence.isdigit()) or len(sequence) > SEQUENCE_DIGITS:
            raise _unreadable(field, text)
        return Place(int(sequence), 0)
    found = millis(moment, now, zone)
    if found is None:
        raise _unreadable(field, text)
    return Place(0, found)


def _unreadable(field: str, text: str) -> Refusal:
    forms = "a time such as 2026-09-03T16:40:00Z, a cursor as printed, an age such as 90s, 30m, 2h or 1d"
    return Refusal("request.invalid", f"{field} is {text!r}: use {forms}, today or yesterday")
