"""What `board log` prints: day by day, the last first, with who did how much, streaks and ten weeks."""

from __future__ import annotations

from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli.board import log
from mycelium_cli.output import PLAIN

AGAIN = "mycelium board log --room demo"
ENTRY: dict[str, Any] = {
    "at": "2026-08-19T14:41:07.250Z", "time": "16:41", "by": "sec", "what": "resolved", "key": "work/storage",
    "thread": "t", "title": "Pick storage", "count": 1, "moved_from": None,
}  # fmt: skip
SAID = {**ENTRY, "time": "15:02", "by": "builder", "what": "messages", "key": None, "title": None, "count": 4}
COUNTS = {"total": 5, "messages": 4, "changes": 0, "resolved": 1, "runs": 0}
DAY: dict[str, Any] = {
    "date": "2026-08-19", "weekday": "Wednesday", **COUNTS, "met": True, "more_people": 0, "entries": [ENTRY, SAID],
    "people": [{"handle": "builder", **COUNTS, "total": 4}, {"handle": "sec", **COUNTS, "total": 1}],
}  # fmt: skip
QUIET = {**DAY, "date": "2026-08-18", "weekday": "Tuesday", "total": 0, "met": False, "entries": [], "people": []}
CALENDAR = [{"date": f"2026-06-{15 + number}", "total": number % 7} for number in range(10)]
PAGE: dict[str, Any] = {
    "room": "demo", "tz": "Europe/Paris", "first": "2026-08-13", "last": "2026-08-19", "by": None, "target": 5,
    "streak": {"current": 1, "longest": 9}, "own_streak": {"current": 0, "longest": 2}, "calendar": CALENDAR,
    "items": [DAY, QUIET], "next": None,
}  # fmt: skip


def drawn(**parts: object) -> list[str]:
    return list(log.draw({**PAGE, **parts}, AGAIN, AGAIN, PLAIN))


def test_a_log_is_days_and_a_calendar() -> None:
    """Days on which nothing happened are left out; the last week's columns end with today."""
    assert drawn() == [
        "demo · 2026-08-13 to 2026-08-19 · Europe/Paris",
        "",
        "✓ Wednesday 2026-08-19 · 5 of 5",
        "  @builder 4, @sec 1",
        "  16:41  @sec      resolved  work/storage — Pick storage",
        "  15:02  @builder  4 messages",
        "",
        "ten weeks from 2026-06-15",
        "  Mon  · ·                   the room: 1 day in a row, longest 9",
        "  Tue  ▒ ▒                   you: 0 days in a row, longest 2",
        "  Wed  ▒ ▒                   █ 5 or more  ▒ fewer  · nothing",
        "  Thu  ▒",
        "  Fri  ▒",
        "  Sat  █",
        "  Sun  █",
    ]


def test_a_page_says_how_to_go_on() -> None:
    """In place of the calendar, which is at the end."""
    assert drawn(next="2026-08-19T13:02:00.000Z~7")[-2:] == [
        "", "older: mycelium board log --room demo --before 2026-08-19T13:02:00.000Z~7",
    ]  # fmt: skip


def test_where_nothing_happened_the_way_further_back_is_said() -> None:
    """And there is no bare heading."""
    week = {"items": [QUIET], "first": "2026-06-18", "last": "2026-06-24"}
    assert drawn(**week)[2] == "nothing happened; further back: mycelium board log --room demo --since 30d"
    assert drawn(**{**week, "first": "2026-05-26"})[2].endswith(" --since 90d")
    assert drawn(**{**week, "first": "2025-06-24"})[2] == "nothing happened"


@pytest.mark.parametrize(
    ("flags", "first", "said"),
    [
        (("--since", "7d"), "2026-06-18", "nothing happened; further back: {} --since 30d"),
        (("--day", "2026-06-24"), "2026-06-24", "nothing happened; further back: {} --since 30d"),
        (("--day", "2026-08-19"), "2026-08-19", "that is still to come; what was lately: {}"),
    ],
)
def test_the_way_further_back_is_of_the_same_member_and_zone(
    flags: tuple[str, ...], first: str, said: str, run: Run, scripted: ScriptedHub
) -> None:
    """And leads to what was, also from a day that is still to come."""
    scripted.play(answer(200, {**PAGE, "items": [QUIET], "first": first, "last": first}))
    ran = run("board", "log", "--room", "demo", "--tz", "Europe/Paris", "--by", "sec", *flags)
    assert ran.out.splitlines()[2] == said.format("mycelium board log --room demo --by sec --tz Europe/Paris")


def test_what_a_decision_was_answered_stands_behind_it() -> None:
    """As the outcome of a run does."""
    answered = {**ENTRY, "what": "answered", "key": "decisions/ttl", "title": "How long?", "answer": "15m"}
    lines = drawn(items=[{**DAY, "entries": [answered]}])
    assert lines[4] == "  16:41  @sec  answered  decisions/ttl — How long? → 15m"


def test_what_is_long_or_many_or_harmful_stays_in_its_line() -> None:
    """Titles are cut, people beyond eight are counted, control characters are shown."""
    people = [{"handle": f"agent-{number}", **COUNTS} for number in range(9)]
    renamed = {**ENTRY, "what": "renamed", "moved_from": "work/old", "title": "x" * 101}
    evil = {**ENTRY, "what": "written", "key": "context/a", "title": "a\x1b[2Jb\nc"}
    lines = drawn(items=[{**DAY, "people": people, "more_people": 2, "entries": [renamed, evil]}])
    assert lines[3].endswith("agent-7 5 and 3 more")
    assert lines[4] == f"  16:41  @sec  renamed   work/storage (was work/old) — {'x' * 100}…"
    assert lines[5] == r"  16:41  @sec  written   context/a — a\x1b[2Jb c"


def test_a_run_of_an_engine_says_how_it_ended() -> None:
    """With the task that it worked in, or without one."""
    run = {**ENTRY, "by": "greeter", "what": "run", "outcome": "done"}
    alone = {**run, "key": None, "thread": None, "title": None, "outcome": "capped"}
    lines = drawn(items=[{**DAY, "entries": [run, alone]}])
    assert lines[4] == "  16:41  @greeter  run       work/storage — Pick storage → done"
    assert lines[5] == "  16:41  @greeter  run       → capped"


def test_of_one_member_it_is_theirs() -> None:
    """The heading and the streak name them."""
    lines = drawn(by="sec", first="2026-08-19")
    assert lines[0] == "demo · 2026-08-19 · Europe/Paris · @sec"
    assert [line for line in lines if "in a row" in line] == [
        "  Mon  · ·                   @sec: 1 day in a row, longest 9"
    ]


@pytest.mark.parametrize(
    ("flags", "query"),
    [
        ((), "tz=Asia/Kathmandu"),
        (("--since", "30d", "--by", "@sec"), "since=30d&by=@sec&tz=Asia/Kathmandu"),
        (("--last-week", "--tz", "UTC"), "last_week=true&tz=UTC"),
        (("--day", "2026-08-19", "--before", "a~1"), "day=2026-08-19&before=a~1&tz=Asia/Kathmandu"),
    ],
)
def test_the_hub_is_asked_in_the_readers_zone(
    flags: tuple[str, ...], query: str, run: Run, scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of --tz, else of $TZ."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    scripted.play(answer(200, PAGE))
    assert run("board", "log", "--room", "demo", *flags).status == 0
    line = scripted.received[0].line.replace("%2F", "/").replace("%40", "@").replace("%7E", "~")
    assert line == f"GET /api/rooms/demo/board/log?{query} HTTP/1.1"


def test_two_periods_are_refused_before_anybody_is_asked(run: Run, scripted: ScriptedHub) -> None:
    """In one line, with exit status 2."""
    ran = run("board", "log", "--room", "demo", "--week", "--day", "2026-08-19")
    assert (ran.status, ran.out, scripted.received) == (2, "", [])
    assert ran.err == "error: --week and --day are two periods: use one of them. Next: mycelium board log --help\n"
