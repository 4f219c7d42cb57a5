"""Moments as people write them: RFC 3339, an age such as `2h`, `today`; and the zone that days begin in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mycelium_kernel.errors import Refusal

AGE = re.compile(r"(\d{1,9})([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
DAYS = {"today": 0, "yesterday": 1}
UTC_ZONE = ZoneInfo("UTC")
FORMS = "a time such as 2026-09-03T16:40:00Z, an age such as 90s, 30m, 2h or 1d, today or yesterday"


def zone(name: str) -> ZoneInfo:
    """The time zone of that name, UTC for an empty one. Refused when there is none."""
    try:
        return ZoneInfo(name.strip() or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name is a folder of zones, or too long
        raise Refusal("request.invalid", f"tz is {name[:40]!r}: use a name such as Europe/Paris or UTC") from None


def millis(text: str, now: datetime, zone: ZoneInfo = UTC_ZONE) -> int | None:
    """The moment that `text` gives, in milliseconds since 1970; None when it is none of the forms.

    Days begin, and times without an offset are meant, in `zone`. `1d` is 24 hours, whatever clocks do meanwhile.
    """
    found = _moment(text.strip(), now, zone)
    return None if found is None else round((found - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


def asked(field: str, text: str, now: datetime, zone: ZoneInfo = UTC_ZONE) -> int:
    """The same, of what a request has in a field. Refused, with the forms, when it is none of them."""
    found = millis(text, now, zone)
    if found is None:
        raise refusal(field, text)
    return found


def refusal(field: str, text: str) -> Refusal:
    """Of a moment that a field can't have."""
    return Refusal("request.invalid", f"{field} is {text[:40]!r}: use {FORMS}")


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
