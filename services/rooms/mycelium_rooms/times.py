"""Points in time as readers give them: RFC 3339, a message's cursor `timestamp~sequence`, or an age."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal

AGE = re.compile(r"(\d{1,9})([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
DAYS = {"today": 0, "yesterday": 1}
SEQUENCE_DIGITS = 18
UTC_ZONE = ZoneInfo("UTC")


@dataclass(frozen=True)
class Place:
    """A place in a room's history: before or from a message (`sequence`), else a moment in milliseconds."""

    sequence: int
    millis: int


def cursor(millis: int, sequence: int) -> str:
    """The cursor of a message. The time is for people; the sequence is what counts, since many share a millisecond."""
    return f"{clock.rfc3339(millis)}~{sequence}"


def zone(name: str) -> ZoneInfo:
    """The time zone of that name, UTC for an empty one. Refused when there is none."""
    try:
        return ZoneInfo(name.strip() or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name is a folder of zones, or too long
        raise Refusal("request.invalid", f"tz is {name[:40]!r}: use a name such as Europe/Paris or UTC") from None


def place(field: str, text: str, now: datetime, zone: ZoneInfo = UTC_ZONE) -> Place:
    """The place that `text` gives. Refused when it is none of the forms.

    Days begin, and times without an offset are meant, in `zone`. `1d` is 24 hours, whatever clocks do meanwhile.
    """
    moment, separator, sequence = text.strip().partition("~")
    if separator:
        if not (sequence.isascii() and sequence.isdigit()) or len(sequence) > SEQUENCE_DIGITS:
            raise _unreadable(field, text)
        return Place(int(sequence), 0)
    parsed = _moment(moment, now, zone)
    if parsed is None:
        raise _unreadable(field, text)
    return Place(0, round((parsed - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)))


def _moment(text: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    age = AGE.fullmatch(text)
    try:
        if text in DAYS:
            day = now.astimezone(zone).date() - timedelta(days=DAYS[text])
            return datetime.combine(day, time(), zone).astimezone(UTC)
        if age:
            return now - timedelta(**{UNITS[age[2]]: int(age[1])})
        parsed = datetime.fromisoformat(text.upper())
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _unreadable(field: str, text: str) -> Refusal:
    forms = "a time such as 2026-09-03T16:40:00Z, a cursor as printed, an age such as 90s, 30m, 2h or 1d, or today"
    return Refusal("request.invalid", f"{field} is {text!r}: use {forms}")
