"""The reader's time zone: when their day began, and what their clock shows at a moment."""

import time
from datetime import datetime, tzinfo
from datetime import time as clock_time

from mycelium_cli.errors import usage
from mycelium_cli.periods import zone as zone_of_machine


def reader_zone(named: str | None) -> tzinfo | None:
    """The zone of `--tz`, else of this machine; None where that has no name, and its own clock counts."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    wanted = (named or "").strip() or zone_of_machine()
    try:
        return ZoneInfo(wanted) if wanted else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if not named:
            return None
        raise usage(f'--tz is "{named}", which is no time zone', "mycelium board --tz Europe/Paris") from None


def midnight_ms(zone: tzinfo | None, now_s: float) -> int:
    """When the day of the reader began, in milliseconds since 1970."""
    if zone is None:
        today = time.localtime(now_s)
        began_s = time.mktime((today.tm_year, today.tm_mon, today.tm_mday, 0, 0, 0, 0, 0, -1))
    else:
        began_s = datetime.combine(datetime.fromtimestamp(now_s, zone).date(), clock_time(), zone).timestamp()
    return int(began_s * 1000)


def clock_at(timestamp: object, zone: tzinfo | None, now_s: float) -> str:
    """A moment on the reader's clock: `17:11`, with the date when that is not today's."""
    try:
        then = datetime.fromisoformat(str(timestamp)).astimezone(zone)
    except ValueError:
        return str(timestamp)
    is_today = then.date() == datetime.fromtimestamp(now_s, then.tzinfo).date()
    return f"{then:%H:%M}" if is_today else f"{then:%Y-%m-%d %H:%M}"
