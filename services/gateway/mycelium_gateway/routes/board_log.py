"""The daily log of a room: what happened, day by day, and who did it."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.board.v1 import log_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import board_log as schemas

router = APIRouter(prefix="/api/rooms/{room}/board/log", tags=["board"], route_class=PlainRoute)
WHAT = {number: name.removeprefix("LOG_WHAT_").lower() for name, number in log_pb2.LogWhat.items()}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@router.get(
    "",
    response_model=schemas.Log,
    summary="Read a room's daily log",
    description="Made from messages, changes of memories, closed tasks and runs of engines; "
    "what is recorded twice is told once.",
    responses=problems.responses("room.not_found", "member.not_found"),
)
async def read_board_log(room: str, wanted: Annotated[schemas.Wanted, Query()], call: Caller) -> Response:
    request = log_pb2.ReadLogRequest(
        room=room,
        since=wanted.since,
        week=wanted.week,
        last_week=wanted.last_week,
        day=wanted.day,
        by=wanted.by,
        zone=wanted.tz,
        before=wanted.before,
    )
    page = (await call.ask(request, log_pb2.ReadLogResponse)).message
    return answer(
        {
            "room": page.room,
            "tz": page.zone,
            "first": page.first,
            "last": page.last,
            "by": page.by or None,
            "target": page.target,
            "streak": _streak(page.streak),
            "own_streak": _streak(page.own_streak) if page.HasField("own_streak") else None,
            "calendar": [{"date": day.date, "total": day.total} for day in page.calendar],
            "items": [_day(day, page.target) for day in page.days],
            "next": page.next or None,
        }
    )


def _day(day: log_pb2.LogDay, target: int) -> shapes.Json:
    return {
        "date": day.date,
        "weekday": WEEKDAYS[date.fromisoformat(day.date).weekday()],
        "begins_at": shapes.moment(day.begins_at),
        "ends_at": shapes.moment(day.ends_at),
        **_counts(day.counts),
        "met": day.counts.total >= target,
        "people": [{"handle": person.handle, **_counts(person.counts)} for person in day.people],
        "more_people": day.more_people,
        "entries": [_entry(entry) for entry in day.entries],
    }


def _entry(entry: log_pb2.LogEntry) -> shapes.Json:
    return {
        "at": shapes.moment(entry.at),
        "time": entry.time,
        "by": entry.by,
        "what": WHAT[entry.what],
        "key": entry.key or None,
        "thread": entry.thread or None,
        "title": entry.title or None,
        "count": entry.count,
        "moved_from": entry.moved_from or None,
        "outcome": entry.outcome or None,
        "answer": entry.answer or None,
    }


def _counts(counts: log_pb2.LogCounts) -> shapes.Json:
    return {
        "total": counts.total,
        "messages": counts.messages,
        "changes": counts.changes,
        "resolved": counts.resolved,
        "runs": counts.runs,
    }


def _streak(streak: log_pb2.LogStreak) -> shapes.Json:
    return {"current": streak.current, "longest": streak.longest}
