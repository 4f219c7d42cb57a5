"""The daily log of a room, as HTTP has it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mycelium_gateway.schemas.shape import Parameters, Shape, WrittenHandle, shown_as

ENTRY = {
    "at": "2026-08-19T14:41:07.250Z",
    "time": "16:41",
    "by": "sec",
    "what": "resolved",
    "key": "work/pick-token-storage",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
    "title": "Pick token storage",
    "count": 1,
    "moved_from": None,
    "outcome": None,
    "answer": None,
}
SAID = {
    **dict.fromkeys(("key", "thread", "title", "moved_from", "outcome", "answer")),
    "at": "2026-08-19T13:02:00.000Z",
    "time": "15:02",
    "by": "avery",
    "what": "messages",
    "count": 4,
}
RUN = ENTRY | {"at": "2026-08-19T13:03:00.000Z", "time": "15:03", "by": "greeter", "what": "run", "outcome": "done"}
COUNTS = {"total": 6, "messages": 4, "changes": 0, "resolved": 1, "runs": 1}
PEOPLE = [
    {"handle": "avery", "total": 4, "messages": 4, "changes": 0, "resolved": 0, "runs": 0},
    {"handle": "greeter", "total": 1, "messages": 0, "changes": 0, "resolved": 0, "runs": 1},
    {"handle": "sec", "total": 1, "messages": 0, "changes": 0, "resolved": 1, "runs": 0},
]
DAY = {
    "date": "2026-08-19",
    "weekday": "Wednesday",
    "begins_at": "2026-08-18T22:00:00.000Z",
    "ends_at": "2026-08-19T22:00:00.000Z",
    **COUNTS,
    "met": True,
    "people": PEOPLE,
    "more_people": 0,
    "entries": [ENTRY, RUN, SAID],
}
LOG = {
    "room": "design-review",
    "tz": "Europe/Paris",
    "first": "2026-08-19",
    "last": "2026-08-19",
    "by": None,
    "target": 5,
    "streak": {"current": 3, "longest": 9},
    "own_streak": None,
    "calendar": [{"date": "2026-06-15", "total": 7}, {"date": "2026-06-16", "total": 0}],
    "items": [DAY],
    "next": None,
}


class Wanted(Parameters):
    """Which days, of whom, in whose zone. At most one of `since`, `week`, `last_week` and `day`."""

    since: str = Field(
        "", description="`today`, or a number of days with today, such as `30d`. Without a period: `7d`."
    )
    week: bool = Field(False, description="The week of today, Monday to Sunday.")
    last_week: bool = Field(False, description="The week before.")
    day: str = Field("", description="One day, such as `2026-08-19`.")
    by: WrittenHandle = Field("", description="Only what this handle did.")
    tz: str = Field("", description="Zone in which days begin, such as `Europe/Paris`; UTC without.")
    before: str = Field("", description="`next` of the page before.")


What = Literal[
    "messages",
    "filed",
    "written",
    "changed",
    "renamed",
    "removed",
    "blocked",
    "unblocked",
    "resolved",
    "promoted",
    "dismissed",
    "answered",
    "run",
]


class LogEntry(Shape):
    """One thing that happened. All messages of a member on a day are one entry."""

    model_config = shown_as(ENTRY)

    at: str = Field(description="When; of messages when the last one was posted.")
    time: str = Field(description="The same on the reader's clock.")
    by: str
    what: What
    key: str | None = Field(description="The document, of a run the task that it worked in; null for messages.")
    thread: str | None
    title: str | None
    count: int = Field(description="How many messages; else 1.")
    moved_from: str | None = Field(description="The key that it had before it was renamed.")
    outcome: Literal["done", "failed", "capped", "stopped"] | None = Field(
        description="How a run of an engine ended: `capped` by the room's budget, `stopped` from outside."
    )
    answer: str | None = Field(description="What a decision was answered.")


class LogPerson(Shape):
    """What a member did on a day, agents and people side by side."""

    handle: str
    total: int
    messages: int
    changes: int
    resolved: int
    runs: int


class LogDay(Shape):
    """A day of the reader's: 23, 24 or 25 hours. Where a page ends within it, it goes on on the next one."""

    model_config = shown_as(DAY)

    date: str
    weekday: str
    begins_at: str
    ends_at: str
    total: int = Field(description="All that happened on the day, whatever this page shows of it.")
    messages: int
    changes: int = Field(description="Changes of memories and tasks.")
    resolved: int = Field(description="Tasks closed, decisions answered.")
    runs: int = Field(description="Runs of engines that ended; what they posted is no message beside it.")
    met: bool = Field(description="Whether that meets the target.")
    people: list[LogPerson] = Field(description="Those who did most first, at most 200.")
    more_people: int = Field(description="How many more there were.")
    entries: list[LogEntry] = Field(description="The last first.")


class Streak(Shape):
    """Days in a row that met the target."""

    current: int = Field(description="Up to today, which may yet meet it.")
    longest: int = Field(description="The longest within 366 days.")


class CalendarDay(Shape):
    """How much happened on a day."""

    date: str
    total: int


class Log(Shape):
    """What happened in a room, day by day."""

    model_config = shown_as(LOG)

    room: str
    tz: str
    first: str = Field(description="First day of the period.")
    last: str
    by: str | None
    target: int = Field(description="How much a day has to have to count for a streak.")
    streak: Streak = Field(description="Of what is shown: of the room, or of `by`.")
    own_streak: Streak | None = Field(description="Of the caller; null for who named no handle.")
    calendar: list[CalendarDay] = Field(description="The last ten weeks, from a Monday to today.")
    items: list[LogDay] = Field(description="The last day first.")
    next: str | None = Field(description="`before` of the next page.")
