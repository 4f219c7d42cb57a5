"""Days, weeks and streaks as a reader in some zone sees them. Pure: time and zone are given.

A day lasts from its first instant to that of the next one: 23, 24 or 25 hours, or none at all where a zone has jumped
over the date line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal

LAST_DAYS = 7
MOST_DAYS = 366
CALENDAR_WEEKS = 10
WEEK = timedelta(days=7)
EARLIEST, LATEST = date(1970, 1, 2), date(9999, 12, 29)  # in every zone later than 1970, and in the years there are
SINCE = re.compile(r"([1-9]\d{0,2})d")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Day(NamedTuple):
    """A day of a zone: its date, its first millisecond since 1970, and that of the next day."""

    date: date
    begins: int
    ends: int


class Wanted(NamedTuple):
    """A period as it is asked for: at most one of these is set."""

    since: str = ""
    week: bool = False
    last_week: bool = False
    day: str = ""


def period(wanted: Wanted, today: date) -> tuple[date, date]:
    """First and last date of a period. Refused when it is none, or more than one."""
    named = [name for name, value in wanted._asdict().items() if value]
    if len(named) > 1:
        raise Refusal("request.invalid", f"{named[0]} and {named[1]} are two periods: use one of them")
    monday = today - timedelta(days=today.weekday())
    if wanted.week:
        return monday, monday + WEEK - timedelta(days=1)
    if wanted.last_week:
        return monday - WEEK, monday - timedelta(days=1)
    if wanted.day:
        day = _date(wanted.day)
        return day, day
    return today - timedelta(days=_count(wanted.since) - 1), today


def _date(text: str) -> date:
    try:
        day = date.fromisoformat(text.strip()) if DATE.fullmatch(text.strip()) else None
    except ValueError:
        day = None
    if day is None or not EARLIEST <= day <= LATEST:
        raise Refusal("request.invalid", f"day is {text[:40]!r}: use a date such as 2026-08-19")
    return day


def _count(since: str) -> int:
    """How many days, with today."""
    text = since.strip()
    if text == "today":
        return 1
    found = SINCE.fullmatch(text) if text else None
    count = int(found[1]) if found else LAST_DAYS if not text else 0
    if not 0 < count <= MOST_DAYS:
        detail = f"since is {since[:40]!r}: use today, or a number of days such as 7d or 30d, at most {MOST_DAYS}d"
        raise Refusal("request.invalid", detail)
    return count


def today(now: datetime, zone: ZoneInfo) -> date:
    """The date that it is in a zone."""
    return now.astimezone(zone).date()


def between(first: date, last: date, zone: ZoneInfo) -> list[Day]:
    """The days from the first to the last date. A date that a zone has left out is none."""
    found = []
    begins = _begins(first, zone)
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        ends = max(begins, _begins(day + timedelta(days=1), zone))
        if ends > begins:
            found.append(Day(day, begins, ends))
        begins = ends
    return found


def _begins(day: date, zone: ZoneInfo) -> int:
    """The first millisecond of a day, the first of two midnights."""
    midnight = datetime.combine(day, time(), zone)
    found = midnight.astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == midnight.replace(tzinfo=None):
        return clock.millis(found)
    return _after_gap(day, clock.millis(found), zone)


def _after_gap(day: date, near: int, zone: ZoneInfo) -> int:
    """Where clocks are put forward over midnight, a day begins with whatever they show then."""
    before, after = near - 86_400_000, near + 86_400_000
    while after - before > 1:
        middle = (before + after) // 2
        if _at(middle, zone).date() < day:
            before = middle
        else:
            after = middle
    return after


def _at(millis: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(millis / 1000, zone)


def time_of_day(millis: int, zone: ZoneInfo) -> str:
    """A moment as a clock on the reader's wall shows it."""
    return _at(millis, zone).strftime("%H:%M")


def calendar(now_there: date) -> date:
    """The Monday with which the calendar of the last ten weeks begins."""
    return now_there - timedelta(days=now_there.weekday()) - WEEK * (CALENDAR_WEEKS - 1)


def streaks(totals: Sequence[int], target: int) -> tuple[int, int]:
    """The current and the longest row of days that met the target; the last total is today's, which may yet grow."""
    current = longest = before_today = 0
    for total in totals:
        before_today = current
        current = current + 1 if total >= target else 0
        longest = max(longest, current)
    return current or before_today, longest
