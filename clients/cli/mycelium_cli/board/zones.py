"""The reader's time zone: when their day began, and what their clock shows at a moment.

One rule for all of the board: `--tz`, else $TZ, else this machine's. What has no name there is UTC, and that is said.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from datetime import time as clock_time

from mycelium_cli.errors import usage
from mycelium_cli.output import clean_line
from mycelium_cli.periods import is_zone, zone

NEAR_S = 120  # minutes alone would say that it is now
_EXAMPLE = "--tz Europe/Paris"


def zone_name(typed: str | None, note: Callable[[str], None]) -> str:
    """The name of the reader's zone. `note` is told when UTC stands in for one."""
    wanted = (typed or "").strip()
    if wanted and not is_zone(wanted):
        raise usage(f'--tz is "{wanted}", which is no time zone', f"the same with {_EXAMPLE}")
    found = wanted or zone()
    if found:
        return found
    named = os.environ.get("TZ", "").strip()
    if named:
        note(f'TZ is "{named}", which is no time zone: days are those of UTC; say {_EXAMPLE}')
    elif time.localtime().tm_gmtoff:
        note(f"this machine's time zone has no name: days are those of UTC; say {_EXAMPLE}")
    return "UTC"


def reader_zone(typed: str | None, note: Callable[[str], None]) -> tzinfo:
    """The reader's zone."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = zone_name(typed, note)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # this machine knows no zones at all
        if name != "UTC":
            note(f"this machine doesn't know the time zone {name}: days are those of UTC")
        return UTC


def midnight(zone: tzinfo, now_s: float) -> str:
    """When the day of the reader began, as HTTP has it."""
    today = datetime.fromtimestamp(now_s, zone).date()
    began = datetime.combine(today, clock_time(), zone).astimezone(UTC)
    return began.strftime("%Y-%m-%dT%H:%M:%SZ")


def reader_clock(note: Callable[[str], None]) -> Callable[[object], str]:
    """What shows a moment on the clock of who reads it here and now."""
    zone, now_s = reader_zone(None, note), time.time()
    return lambda timestamp: clean_line(clock_at(timestamp, zone, now_s))


def clock_at(timestamp: object, zone: tzinfo, now_s: float) -> str:
    """A moment on the reader's clock: `17:11`, with seconds when it is near, with the date when that is not today's."""
    try:
        then = datetime.fromisoformat(str(timestamp)).astimezone(zone)
    except ValueError:
        return str(timestamp)
    if abs(then.timestamp() - now_s) < NEAR_S:
        return f"{then:%H:%M:%S}"
    is_today = then.date() == datetime.fromtimestamp(now_s, then.tzinfo).date()
    return f"{then:%H:%M}" if is_today else f"{then:%Y-%m-%d %H:%M}"
