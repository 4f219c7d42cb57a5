"""Reads the daily log: the days of a period in the reader's zone, streaks, and the calendar of the last ten weeks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from heapq import merge
from itertools import chain
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from mycelium.board.v1 import log_pb2
from mycelium_board import days
from mycelium_board.days import Day
from mycelium_board.projection_log import QUARTER_MS
from mycelium_kernel import clock, names, rooms_seen, subjects, times
from mycelium_kernel.callers import RoomRow, handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import PAGE_BYTES, Tables

TARGET = 5  # a nudge: a few things a day
PEOPLE = 200  # of a day that are shown, those who did most
DAY_BYTES, PERSON_BYTES, ENTRY_BYTES = 300, 90, 120  # of what is around the texts
RESOLVED = frozenset(
    {log_pb2.LOG_WHAT_RESOLVED, log_pb2.LOG_WHAT_PROMOTED, log_pb2.LOG_WHAT_DISMISSED, log_pb2.LOG_WHAT_ANSWERED}
)
MESSAGES = """SELECT handle, sum(messages), max(last_at), max(last_sequence) FROM log_count
  WHERE room_id = ?1 AND quarter >= ?2 AND quarter < ?3 AND (?4 = '' OR handle = ?4) GROUP BY handle"""
OTHERS = """SELECT handle, what, count(*) FROM log_entry
  WHERE room_id = ?1 AND at >= ?2 AND at < ?3 AND handle != '' AND (?4 = '' OR handle = ?4) GROUP BY handle, what"""
ENTRIES = """SELECT at, sequence, handle, what, key, thread, title, moved_from, outcome, answer FROM log_entry
  WHERE room_id = ?1 AND at >= ?2 AND at < ?3 AND handle != '' AND (?4 = '' OR handle = ?4)
    AND (at, sequence) < (?5, ?6)
  ORDER BY at DESC, sequence DESC"""
# How much each of many days has, in all and of one handle (?4); ?3 narrows both to one handle.
TOTALS = """SELECT day.key, sum({count}), sum(iif(handle = ?4, {count}, 0)) FROM json_each(?2) AS day
  CROSS JOIN {table} WHERE room_id = ?1 AND {place} >= json_extract(day.value, '$[0]')
    AND {place} < json_extract(day.value, '$[1]') AND handle != '' AND (?3 = '' OR handle = ?3) GROUP BY day.key"""
TOTALS_OF_MESSAGES = TOTALS.format(count="messages", table="log_count", place="quarter")
TOTALS_OF_OTHERS = TOTALS.format(count="1", table="log_entry", place="at")
CURSOR = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3})Z~([0-9]{1,18})~([0-9a-f]{8})")


class Place(NamedTuple):
    """Where a page begins: with what happened before this, the later fact first."""

    at: int
    sequence: int


class Entry(NamedTuple):
    """What is shown as one entry, in the order of the page: the last first."""

    order: tuple[int, int]
    handle: str
    what: log_pb2.LogWhat.ValueType
    key: str = ""
    thread: str = ""
    title: str = ""
    moved_from: str = ""
    outcome: str = ""
    answer: str = ""
    number: int = 1


@dataclass
class Reader:
    """One reading: of which room, for whom, in which zone."""

    tables: Tables
    room: RoomRow
    zone: ZoneInfo
    by: str
    page: log_pb2.ReadLogResponse = field(default_factory=log_pb2.ReadLogResponse)
    size: int = 0

    def show(self, wanted: list[Day], before: Place) -> None:
        """Fill the page with days, the last first, until it is full."""
        for day in reversed(wanted):
            if day.begins >= before.at + bool(before.sequence):
                continue
            is_begun = before.at < day.ends
            place = before if is_begun else Place(day.ends, 0)
            if self.page.days and self.size > PAGE_BYTES:
                self.page.next = cursor(place, self.room, self.by)
                return
            if not self._show_day(day, place, is_begun=is_begun):
                return

    def _show_day(self, day: Day, place: Place, *, is_begun: bool) -> bool:
        """Add a day; False when the page is full before all of it is shown."""
        messages = {row[0]: row[1:] for row in self._rows(MESSAGES, day, QUARTER_MS)}
        found = self._entries(day, messages, place)
        first = next(found, None)
        if first is None and is_begun:  # the page before had all of it
            return True
        shown = self.page.days.add(
            date=day.date.isoformat(), begins_at=clock.from_millis(day.begins), ends_at=clock.from_millis(day.ends)
        )
        self.size += DAY_BYTES
        self._count(shown, day, messages)
        last = place
        for entry in chain([first] if first else [], found):
            if self.size > PAGE_BYTES and shown.entries:
                self.page.next = cursor(last, self.room, self.by)
                return False
            self._show_entry(shown, entry)
            last = Place(-entry.order[0], -entry.order[1])
        return True

    def _rows(self, sql: str, day: Day, unit: int) -> list[tuple[Any, ...]]:
        return self.tables.all(sql, self.room.id, *_bounds(day, unit), self.by)

    def _entries(self, day: Day, messages: dict[str, tuple[Any, ...]], place: Place) -> Iterator[Entry]:
        """The entries of a day that come before a place, the last first."""
        said = (
            Entry((-min(last_at, day.ends - 1), -sequence), handle, log_pb2.LOG_WHAT_MESSAGES, number=number)
            for handle, (number, last_at, sequence) in messages.items()
        )
        ends = min(day.ends, place.at + 1)
        rows = self.tables.iterate(ENTRIES, self.room.id, day.begins, ends, self.by, *place)
        done = (Entry((-at, -sequence), *told) for at, sequence, *told in rows)
        limit = (-place.at, -place.sequence)
        return merge(sorted(entry for entry in said if entry.order > limit), done)

    def _count(self, shown: log_pb2.LogDay, day: Day, messages: dict[str, tuple[Any, ...]]) -> None:
        """How much happened on a day, and who did how much of it."""
        people = {handle: log_pb2.LogCounts(messages=said[0]) for handle, said in messages.items()}
        for handle, what, count in self._rows(OTHERS, day, 1):
            counts = people.setdefault(handle, log_pb2.LogCounts())
            name = "runs" if what == log_pb2.LOG_WHAT_RUN else "resolved" if what in RESOLVED else "changes"
            setattr(counts, name, getattr(counts, name) + count)
        for counts in people.values():
            counts.total = counts.messages + counts.changes + counts.resolved + counts.runs
            for name in ("total", "messages", "changes", "resolved", "runs"):
                setattr(shown.counts, name, getattr(shown.counts, name) + getattr(counts, name))
        most = sorted(people.items(), key=lambda item: (-item[1].total, item[0]))
        for handle, counts in most[:PEOPLE]:
            shown.people.add(handle=handle, counts=counts)
        shown.more_people = max(0, len(most) - PEOPLE)
        self.size += PERSON_BYTES * len(shown.people)

    def _show_entry(self, shown: log_pb2.LogDay, entry: Entry) -> None:
        at = -entry.order[0]
        added = shown.entries.add(
            at=clock.from_millis(at),
            time=days.time_of_day(at, self.zone),
            by=entry.handle,
            what=entry.what,
            key=entry.key,
            thread=entry.thread,
            title=entry.title,
            count=entry.number,
            moved_from=entry.moved_from,
            outcome=entry.outcome,
            answer=entry.answer,
        )
        self.size += ENTRY_BYTES + added.ByteSize()

    def totals(self, wanted: list[Day], handle: str) -> list[tuple[int, int]]:
        """How much each day has, and how much of it is that handle's."""
        found = [[0, 0] for _ in wanted]
        for sql, unit in ((TOTALS_OF_MESSAGES, QUARTER_MS), (TOTALS_OF_OTHERS, 1)):
            bounds = json.dumps([_bounds(day, unit) for day in wanted])
            for number, total, own in self.tables.all(sql, self.room.id, bounds, self.by, handle):
                found[number][0] += total
                found[number][1] += own
        return [(total, own) for total, own in found]


def read_log(tables: Tables, request: log_pb2.ReadLogRequest, context: Context) -> log_pb2.ReadLogResponse:
    """A page of the days that are asked for."""
    room = rooms_seen.find_room(tables, request.room, context)
    zone = times.zone(request.zone)
    today = days.today(context.now, zone)
    wanted = days.Wanted(request.since.strip(), request.week, request.last_week, request.day.strip())
    first, last = days.period(wanted, today)
    reader = Reader(tables, room, zone, names.handle(request.by) if request.by.strip() else "")
    before = _place(request.before, room, reader.by)
    page = reader.page
    page.room, page.zone, page.by, page.target = room.name, zone.key, reader.by, TARGET
    page.first, page.last = first.isoformat(), last.isoformat()
    _count_streaks(reader, today, handle_of(context))
    reader.show(days.between(first, last, zone), before)
    if reader.by:
        _check_member(reader, context)
    return page


def cursor(place: Place, room: RoomRow, by: str) -> str:
    """A place as callers hand it back, with what tells it from one of another log and from one that was damaged."""
    begin = f"{clock.rfc3339(place.at)}~{place.sequence}"
    return f"{begin}~{subjects.digest(f'{room.id} {by} {begin}')[:8]}"


def _place(text: str, room: RoomRow, by: str) -> Place:
    if not text:
        return Place(2**62, 0)
    found = CURSOR.fullmatch(text)
    try:
        moment = datetime.fromisoformat(found[1]).replace(tzinfo=UTC) if found else None
    except ValueError:
        moment = None
    place = Place(clock.millis(moment), int(found[2])) if found and moment else None
    if place is None or text != cursor(place, room, by):
        detail = f"before is {text[:60]!r}: use `next` of the page before, of the same room and --by"
        raise Refusal("request.invalid", detail)
    return place


def _check_member(reader: Reader, context: Context) -> None:
    """An empty log of a handle that nobody has, or had, would be a misspelling taken for an answer."""
    tables, room, page = reader.tables, reader.room, reader.page
    did_something = any(day.counts.total for day in page.days) or any(day.total for day in page.calendar)
    if did_something or page.streak.longest or reader.by == handle_of(context):
        return
    if rooms_seen.is_registered(tables, room, reader.by):
        return
    handles = [row[0] for row in tables.all("SELECT handle FROM member WHERE room_id = ? LIMIT 1000", room.id)]
    near = names.near(reader.by, handles)
    hint = f"; did you mean {' or '.join(f'@{name}' for name in near)}?" if near else ""
    detail = f"@{reader.by} is not in {room.name!r}, and did nothing there{hint}"
    raise Refusal("member.not_found", detail, next=f"mycelium room show {shlex.quote(room.name)}", near=near)


def _count_streaks(reader: Reader, today: date, handle: str) -> None:
    """Streaks and calendar, of the last 366 days."""
    year = days.between(today - timedelta(days=days.MOST_DAYS - 1), today, reader.zone)
    totals = reader.totals(year, handle)
    page, begins = reader.page, days.calendar(today)
    current, longest = days.streaks([total for total, _own in totals], TARGET)
    page.streak.current, page.streak.longest = current, longest
    if handle:
        current, longest = days.streaks([own for _total, own in totals], TARGET)
        page.own_streak.current, page.own_streak.longest = current, longest
    for day, (total, _own) in zip(year, totals, strict=True):
        if day.date >= begins:
            page.calendar.add(date=day.date.isoformat(), total=total)


def _bounds(day: Day, unit: int) -> tuple[int, int]:
    """First and last but one, in units; a quarter belongs to the day in which it begins."""
    return -(-day.begins // unit), -(-day.ends // unit)
