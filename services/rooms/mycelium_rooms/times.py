"""Points in time as readers give them: RFC 3339, a message's cursor `timestamp~sequence`, or an age."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal

AGE = re.compile(r"(\d{1,9})([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
SEQUENCE_DIGITS = 18


@dataclass(frozen=True)
class Place:
    """A place in a room's history: before or from a message (`sequence`), else a moment in milliseconds."""

    sequence: int
    millis: int


def cursor(millis: int, sequence: int) -> str:
    """The cursor of a message. The time is for people; the sequence is what counts, since many share a millisecond."""
    return f"{clock.rfc3339(millis)}~{sequence}"


def place(field: str, text: str, now: datetime) -> Place:
    """The place that `text` gives. Refused when it is none of the three forms."""
    moment, separator, sequence = text.strip().partition("~")
    if separator:
        if not (sequence.isascii() and sequence.isdigit()) or len(sequence) > SEQUENCE_DIGITS:
            raise _unreadable(field, text)
        return Place(int(sequence), 0)
    parsed = _moment(moment, now)
    if parsed is None:
        raise _unreadable(field, text)
    return Place(0, round((parsed - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)))


def _moment(text: str, now: datetime) -> datetime | None:
    if text == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    age = AGE.fullmatch(text)
    try:
        if age:
            return now - timedelta(**{UNITS[age[2]]: int(age[1])})
        parsed = datetime.fromisoformat(text.upper())
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _unreadable(field: str, text: str) -> Refusal:
    forms = "a time such as 2026-09-03T16:40:00Z, a cursor as printed, or an age such as 90s, 30m, 2h, 1d or today"
    return Refusal("request.invalid", f"{field} is {text!r}: use {forms}")
