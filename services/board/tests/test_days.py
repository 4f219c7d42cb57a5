"""Days of zones: none is left out and none overlaps, also where clocks change; weeks, periods, streaks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_board import days
from mycelium_board.days import Wanted
from mycelium_kernel.errors import Refusal

ZONES = ["UTC", "Pacific/Kiritimati", "Asia/Kathmandu", "America/New_York", "Europe/Paris", "Australia/Lord_Howe"]
ZONES += ["Pacific/Apia", "Pacific/Chatham", "Atlantic/Azores", "America/Havana", "Africa/Cairo", "America/Nuuk"]
HOUR_MS = 3_600_000
WEDNESDAY = date(2026, 8, 19)


@settings(deadline=None)
@given(st.sampled_from(ZONES), st.dates(date(1972, 1, 2), date(2099, 1, 1)), st.integers(0, 400), st.data())
def test_every_moment_is_in_one_day_and_that_is_the_one_on_the_calendar(
    name: str, first: date, length: int, data: st.DataObject
) -> None:
    """Each day begins where the one before ends, and the clock on the wall agrees with it."""
    zone = ZoneInfo(name)
    found = days.between(first, first + timedelta(days=length), zone)
    assert all(one.ends == other.begins for one, other in pairwise(found))
    moment = data.draw(st.integers(found[0].begins, found[-1].ends - 1))
    (day,) = [day for day in found if day.begins <= moment < day.ends]
    assert day.date == datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone).date()


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("America/New_York", date(2026, 11, 2), 24),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("Asia/Beirut", date(2026, 3, 29), 23),  # midnight is left out
        ("America/Havana", date(2026, 11, 1), 25),  # the hour after midnight comes twice
        ("Asia/Kathmandu", date(2026, 3, 8), 24),
    ],
)
def test_a_day_has_as_many_hours_as_its_zone_gives_it(zone: str, day: date, hours: float) -> None:
    """Where clocks change, 23 or 25, or half of one less."""
    (found,) = days.between(day, day, ZoneInfo(zone))
    assert (found.ends - found.begins) / HOUR_MS == hours


def test_a_date_that_a_zone_has_left_out_is_no_day() -> None:
    """Samoa went from the 29th to the 31st of December 2011."""
    found = days.between(date(2011, 12, 29), date(2011, 12, 31), ZoneInfo("Pacific/Apia"))
    assert [day.date.day for day in found] == [29, 31]


def test_where_clocks_jump_over_midnight_the_day_begins_with_what_they_show_then() -> None:
    """Half past eleven became half past midnight."""
    found = days.between(date(1919, 3, 30), date(1919, 3, 31), ZoneInfo("America/Toronto"))
    assert [(day.ends - day.begins) / HOUR_MS for day in found] == [23.5, 23.5]


def test_one_moment_is_on_two_dates() -> None:
    """At ten in the morning in UTC the next day begins on Kiritimati."""
    moment = datetime(2026, 8, 19, 10, tzinfo=UTC)
    assert days.today(moment, ZoneInfo("Pacific/Kiritimati")) == date(2026, 8, 20)
    assert days.today(moment - timedelta(milliseconds=1), ZoneInfo("Pacific/Kiritimati")) == WEDNESDAY
    assert days.today(moment, ZoneInfo("UTC")) == WEDNESDAY


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        (Wanted(), date(2026, 8, 13), WEDNESDAY),
        (Wanted(since="today"), WEDNESDAY, WEDNESDAY),
        (Wanted(since="1d"), WEDNESDAY, WEDNESDAY),
        (Wanted(since="30d"), date(2026, 7, 21), WEDNESDAY),
        (Wanted(week=True), date(2026, 8, 17), date(2026, 8, 23)),
        (Wanted(last_week=True), date(2026, 8, 10), date(2026, 8, 16)),
        (Wanted(day="2026-02-28"), date(2026, 2, 28), date(2026, 2, 28)),
    ],
)
def test_a_period_is_whole_days(wanted: Wanted, first: date, last: date) -> None:
    """With today; weeks from Monday to Sunday."""
    assert days.period(wanted, WEDNESDAY) == (first, last)


@settings(deadline=None)
@given(st.dates(date(1980, 1, 1), date(2100, 1, 1)))
def test_weeks_begin_on_monday_and_follow_each_other(today: date) -> None:
    """On whatever day it is asked."""
    first, last = days.period(Wanted(week=True), today)
    before, until = days.period(Wanted(last_week=True), today)
    assert (first.weekday(), last.weekday(), (last - first).days) == (0, 6, 6)
    assert first <= today <= last
    assert (before, until) == (first - timedelta(days=7), first - timedelta(days=1))
    begins = days.calendar(today)
    assert begins.weekday() == 0
    assert (first - begins).days == 63


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(since="30d", week=True), "since and week are two periods: use one of them"),
        (Wanted(last_week=True, day="2026-08-19"), "last_week and day are two periods"),
        (Wanted(since="soon"), "since is 'soon': use today, or a number of days such as 7d or 30d, at most 366d"),
        (Wanted(since="0d"), "since is '0d'"),
        (Wanted(since="367d"), "since is '367d'"),
        (Wanted(since="7"), "since is '7'"),
        (Wanted(since="٧d"), "since is '٧d'"),
        (Wanted(day="19.8.2026"), "day is '19.8.2026': use a date such as 2026-08-19"),
        (Wanted(day="2026-02-30"), "day is '2026-02-30'"),
        (Wanted(day="20260819"), "day is '20260819'"),
        (Wanted(day="0001-01-01"), "day is '0001-01-01'"),
        (Wanted(day="9999-12-31"), "day is '9999-12-31'"),
    ],
)
def test_what_is_no_period_is_refused_in_a_line(wanted: Wanted, said: str) -> None:
    """Two of them, numbers that are none, days that there are not."""
    with pytest.raises(Refusal) as caught:
        days.period(wanted, WEDNESDAY)
    assert caught.value.slug == "request.invalid"
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        ([], (0, 0)),
        ([5, 9, 4], (2, 2)),  # today may yet meet it
        ([5, 9, 4, 6], (1, 2)),
        ([5, 9, 4, 4], (0, 2)),
        ([5, 5, 5, 0, 5, 5], (2, 3)),
        ([0, 0, 0], (0, 0)),
    ],
)
def test_a_streak_is_days_in_a_row_up_to_today(totals: list[int], expected: tuple[int, int]) -> None:
    """Current and longest; a day with less than the target ends it, but for today."""
    assert days.streaks(totals, 5) == expected
