"""Reads the points in time that callers write: RFC 3339, a cursor, or an age such as `2h`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from mycelium_kernel.clock import rfc3339
from mycelium_kernel.errors import Refusal

AGE = re.compile(r"([0-9]{1,6})([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str, now: datetime, name: str) -> str:
    """What a room's history understands: an age becomes RFC 3339, anything else goes on as it is."""
    written = text.strip()
    if written == "today":
        return rfc3339(int(now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000))
    age = AGE.fullmatch(written)
    if age is None:
        return written
    try:
        then = now - timedelta(**{UNITS[age[2]]: int(age[1])})
    except OverflowError:
        raise Refusal("request.invalid", f"query.{name}: {written} lies before the calendar begins") from None
    return rfc3339(int(then.timestamp() * 1000))
