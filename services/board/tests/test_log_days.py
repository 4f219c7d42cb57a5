"""The daily log's days: which moment is on which, in every zone and where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.board.tests.hub import START
from services.board.tests.logged import Logged

ZONES = ["UTC", "Pacific/Kiritimati", "Asia/Kathmandu", "America/New_York", "America/St_Johns", "Australia/Lord_Howe"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("now", [datetime(2026, 3, 9, 3, 59, tzinfo=UTC), datetime(2026, 11, 2, 4, 59, tzinfo=UTC)])
def test_what_is_beside_midnight_is_on_its_own_day(zone: str, now: datetime) -> None:
    """The first and the last moment of a day, of messages and of documents; clocks change on one of these days."""
    board = Logged(now=now)
    empty = board.read(since="6d", zone=zone).days
    for day in empty[1:]:
        for moment in (day.begins_at.ToDatetime(UTC), day.ends_at.ToDatetime(UTC) - timedelta(milliseconds=1)):
            board.now = moment
            board.post()
            board.write(f"context/{moment:%d-%H}")
    board.now = now
    found = board.read(since="6d", zone=zone).days
    assert [day.counts.total for day in found] == [0, 4, 4, 4, 4, 4]
    assert [day.total for day in board.read(since="6d", zone=zone).calendar][-6:] == [4, 4, 4, 4, 4, 0]


# Quarters of a day in UTC that are beside a midnight of one of the zones, at either of its offsets.
MIDNIGHTS = (0, 10, 14, 16, 20, 40, 52, 54, 73)
QUARTERS = st.sampled_from([quarter % 96 for midnight in MIDNIGHTS for quarter in (midnight - 1, midnight)])
MOMENTS = st.tuples(st.integers(2, 39), QUARTERS, st.integers(0, 14)).map(
    lambda drawn: timedelta(minutes=15 * drawn[1] + drawn[2]) - timedelta(days=drawn[0])
)
HANDLES = st.sampled_from(["sec", "builder", "avery"])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(MOMENTS, HANDLES, st.booleans()), max_size=40),
    st.sampled_from(ZONES),
    st.sampled_from([datetime(2026, 3, 9, 3, 59, tzinfo=UTC), datetime(2026, 11, 2, 4, 59, tzinfo=UTC), START]),
)
def test_everything_is_on_one_day_and_sums_agree_in_every_zone(
    done: list[tuple[timedelta, str, bool]], zone: str, now: datetime
) -> None:
    """Also where clocks change: the total of the days is what happened, for each of the members too."""
    board = Logged(now=now)
    expected: dict[str, int] = {}
    for number, (after, handle, is_message) in enumerate(done):
        at = now.replace(hour=0, minute=0) + after
        if is_message:
            board.post(handle, at=at)
        else:
            board.now = at
            board.write(f"context/{number}", handle)
        date = at.astimezone(ZoneInfo(zone)).date().isoformat()
        expected[date] = expected.get(date, 0) + 1
    board.now = now
    page = board.read(since="60d", zone=zone)
    assert {day.date: day.counts.total for day in page.days if day.counts.total} == expected
    for day in page.days:
        assert sum(entry.count for entry in day.entries) == day.counts.total
        assert sum(person.counts.total for person in day.people) == day.counts.total
        for entry in day.entries:
            assert day.begins_at.ToMilliseconds() <= entry.at.ToMilliseconds() < day.ends_at.ToMilliseconds()
    by_member = [board.read(since="60d", zone=zone, by=handle) for handle in ("sec", "builder", "avery")]
    assert sum(day.counts.total for one in by_member for day in one.days) == len(done)
    assert {day.date: day.total for day in page.calendar if day.total} == expected
