"""What `board` prints: rows under headings or in a table, in the reader's zone, and when it is drawn anew."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli.board.drawing import Look, by_group, draw
from mycelium_cli.board.screen import fitted
from mycelium_cli.board.watching import Said, next_change
from mycelium_cli.board.zones import clock_at, midnight, reader_zone
from mycelium_cli.errors import USAGE, Failure
from mycelium_cli.output import PLAIN
from mycelium_cli.stream import Event

NOW_S = 1_788_453_600.0  # 2026-09-03T16:40:00Z
TASK: dict[str, Any] = {
    "key": "work/login",
    "thread": "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa",
    "title": "Ship passkey login",
    "status": "open",
    "kind": "task",
    "assignee": None,
    "blocked_by": None,
    "holder": None,
    "expires_at": None,
    "meta": {},
    "version": 1,
    "created_by": "avery",
    "created_at": "2026-09-03T16:35:00.000Z",
    "updated_by": "avery",
    "updated_at": "2026-09-03T16:35:00.000Z",
    "ready": True,
    "reason": "",
    "waits_for": [],
    "cycle": [],
    "cycle_more": 0,
    "parent": None,
    "parts": [],
    "options": [],
    "source": {"kind": "memory", "ref": "work/login"},
    "group": None,
}
PAGE: dict[str, Any] = {"room": "demo", "items": [], "next": None, "needs_you": 1, "in_flight": 0, "resolved": 2}


def row(**fields: Any) -> dict[str, Any]:
    return {**TASK, **fields}


def drawn(*rows: dict[str, Any], wanted: str = "all", view: str = "list", group: str = "") -> list[str]:
    """The lines for these rows, read in UTC."""
    return list(draw({**PAGE, "items": list(rows)}, Look(wanted, view, group, UTC, NOW_S), PLAIN))


def test_a_run_says_which_engine_is_at_work_where_and_since_when() -> None:
    """In the list under a heading of its own, and in a table."""
    run = row(
        key="runs/5d1e9c04", title="@greeter answers @avery in work/login", status="running", kind="hello", ready=False,
        reason="a run of an engine, no task", meta={"engine": "greeter", "task": "work/login"},
        source={"kind": "run", "ref": "6f0c2a7e9b1d4c3f8a5e2b7d5d1e9c04"},
    )  # fmt: skip
    assert drawn(run)[2:] == [
        "Runs 1",
        " ▸ 9c04b7aa  @greeter answers @avery in work/login",
        "             runs/5d1e9c04 · running · 5m ago",
    ]
    assert drawn(run, view="table")[2].split("  ")[:2] == ["runs/5d1e9c04", "@greeter answers @avery in work/login"]


def test_rows_stand_under_what_they_need() -> None:
    """Decisions, what is blocked, reviews, what is open, who is active; each with all that is known of it."""
    decision = row(key="decisions/ttl", kind="decision", title="TTL?", options=["15m", "60m"])
    blocked = row(status="blocked", blocked_by="#502", ready=False, reason="waiting on #502", assignee="sec")
    held = row(holder="sec", expires_at="2026-09-03T17:11:07.250Z", meta={"priority": "high"}, ready=False)
    member = row(key="members/scout", thread=None, title="reading", status="working", kind="agent")
    member["source"] = {"kind": "member", "ref": "scout"}
    assert drawn(decision, blocked, held, member) == [
        "demo   1 need you · 0 in flight · 2 resolved today",
        "",
        "Decisions 1",
        " ? 9c04b7aa  TTL?",
        "             decisions/ttl · open · unowned · 5m ago",
        "             [15m] [60m]",
        "",
        "Blocked 1",
        " ⊘ 9c04b7aa  Ship passkey login",
        "             work/login · blocked · waiting on #502 · for @sec · unowned · 5m ago",
        "",
        "Open 1",
        " ○ 9c04b7aa  Ship passkey login  high",
        "             work/login · open · held by @sec until 17:11 · 5m ago",
        "",
        "Active now 1",
        " ●           reading",
        "             members/scout · working · 5m ago",
    ]


def test_a_row_says_what_it_waits_for_and_belongs_to() -> None:
    """The tasks before it, its cycle, its parent, its parts; of very many the first."""
    waiting = row(waits_for=["work/a"], parent="work/top", ready=False, reason="after work/a")
    assert "work/login · open · after work/a · part of work/top · unowned · 5m ago" in drawn(waiting)[4]
    ring = row(cycle=["work/login", "work/b"], parts=[f"work/{number}" for number in range(7)])
    assert (
        "in a cycle: work/login → work/b → work/login · parts: work/0, work/1, work/2, work/3, work/4 and 2 more"
        in (drawn(ring)[4])
    )
    assert "in a cycle: a → b → and 3 more → a" in drawn(row(cycle=["a", "b"], cycle_more=3))[4]


def test_rows_stand_under_each_value_of_a_field() -> None:
    """Statuses in the order of work, others by name; a row with two values twice; those without it last."""
    rows = [row(key="a", group=["-"]), row(key="b", group=["low", "High"]), row(key="c", group=["low"])]
    assert {value: [one["key"] for one in group] for value, group in by_group(rows, "priority").items()} == {
        "High": ["b"],
        "low": ["b", "c"],
        "-": ["a"],
    }
    known = ["resolved", "odd", "open", "in_review"]
    assert list(by_group([row(group=[value]) for value in known], "status")) == ["open", "in_review", "resolved", "odd"]
    headings = [line for line in drawn(row(group=["sec"]), row(group=["-"]), group="owner") if line[:1] in "@-"]
    assert [line for line in headings if line] == ["@sec 1", "- 1"]
    assert drawn(row(group=["-"]), group="nope")[-1] == "no row here has a field nope"


def test_a_table_has_a_line_a_row() -> None:
    """With why a row is not ready; grouped, the values come first."""
    lines = drawn(row(ready=False, reason="after work/a", group=["high"]), view="table", group="priority")
    assert lines[1].split() == [
        "PRIORITY",
        "KEY",
        "TITLE",
        "STATUS",
        "KIND",
        "FOR",
        "HELD",
        "BY",
        "NOT",
        "READY",
        "MOVED",
    ]
    assert lines[2].startswith("high ")
    assert "after work/a" in lines[2]


def test_an_empty_board_says_where_the_rest_is() -> None:
    """But not when everything was asked for."""
    assert drawn(wanted="needs-you")[1] == "nothing here; --filter all shows every row"
    assert drawn(wanted="all")[1] == "nothing here"


@pytest.mark.parametrize(
    ("zone", "began"),
    [
        ("UTC", "2026-09-03T00:00:00Z"),
        ("Pacific/Kiritimati", "2026-09-03T10:00:00Z"),  # the fourth has begun there
        ("Pacific/Pago_Pago", "2026-09-03T11:00:00Z"),
        ("Africa/Cairo", "2026-09-02T21:00:00Z"),
    ],
)
def test_a_day_begins_at_the_readers_midnight(zone: str, began: str) -> None:
    """At one moment it is another day in another zone."""
    assert datetime.fromisoformat(midnight(ZoneInfo(zone), NOW_S)) == datetime.fromisoformat(began)


def test_a_day_of_a_changed_clock_begins_once() -> None:
    """Cairo's clocks went from midnight to one on 24 April 2026: that day began at one."""
    noon = datetime(2026, 4, 24, 12, tzinfo=UTC).timestamp()
    assert midnight(ZoneInfo("Africa/Cairo"), noon) == "2026-04-23T22:00:00Z"


def test_the_zone_is_the_flags_then_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag that names none is wrong usage; an environment that has no name is UTC, and that is said."""
    said: list[str] = []
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    assert str(reader_zone(None, said.append)) == "Pacific/Kiritimati"
    assert str(reader_zone("UTC", said.append)) == "UTC"
    monkeypatch.setenv("TZ", "CET-1CEST")
    assert said == []
    assert str(reader_zone(None, said.append)) == "UTC"
    assert len(said) == 1
    with pytest.raises(Failure) as caught:
        reader_zone("Nowhere/None", said.append)
    assert caught.value.exit_status == USAGE


def test_a_moment_of_another_day_has_its_date() -> None:
    """What ends tomorrow would else seem to end today."""
    assert clock_at("2026-09-03T17:11:07.250Z", UTC, NOW_S) == "17:11"
    assert clock_at("2026-09-03T16:40:05.250Z", UTC, NOW_S) == "16:40:05"
    assert clock_at("2026-09-03T17:11:07.250Z", ZoneInfo("Pacific/Kiritimati"), NOW_S) == "07:11"
    assert clock_at("2026-09-04T17:11:07.250Z", UTC, NOW_S) == "2026-09-04 17:11"


def test_all_pages_are_one_board(run: Run, scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader's midnight and the field go along; pages are read until there is no next one."""
    monkeypatch.setenv("TZ", "UTC")
    scripted.play(answer(200, {**PAGE, "items": [TASK], "next": "3~-5~work/a"}), answer(200, {**PAGE, "items": [TASK]}))
    page = json.loads(run("board", "--filter", "all", "--group", "status", "--json").out)
    assert (len(page["items"]), page["next"]) == (2, None)
    first, second = (received.line for received in scripted.received)
    assert "filter=all" in first
    assert "group=status" in first
    assert "closed_since=" in first
    assert "cursor=3~-5~work%2Fa" in second
    scripted.play(answer(200, {**PAGE, "items": [TASK]}))
    assert "Open 1" in run("board", "ready").out
    assert "filter=ready" in scripted.received[-1].line
    assert "--group is empty" in run("board", "--group", " ").err


def test_what_is_dismissed_shows_no_answer() -> None:
    """One that it had before it was opened again is no answer to what nobody did."""
    answered = row(status="resolved", meta={"answer": "15m"}, ready=False)
    assert "resolved → 15m" in drawn(answered)[4]
    assert "15m" not in drawn({**answered, "status": "dismissed"})[4]


def test_a_screen_shows_the_first_rows_of_a_long_board() -> None:
    """What fits, wide characters and colours measured as they are seen; and how much more there is."""
    lines = ["demo   1 need you", "\x1b[1m" + "x" * 20 + "\x1b[0m", "x" * 21, "日" * 11, "", "last"]
    assert fitted(lines, os.terminal_size((20, 10)), PLAIN) == lines
    cut = fitted(lines, os.terminal_size((20, 9)), PLAIN)
    assert cut == [*lines[:4], "… 2 more lines; Ctrl-C ends it"]
    assert fitted(lines, os.terminal_size((80, 5)), PLAIN) == [*lines[:2], "… 4 more lines; Ctrl-C ends it"]
    assert fitted(lines, os.terminal_size((80, 1)), PLAIN) == ["… 6 more lines; Ctrl-C ends it"]


def told(kind: str, **data: Any) -> Said:
    """What a stream says."""
    return Said(0, Event(kind, json.dumps(data), ""))


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        ([told("message", message_type="message")], False),
        ([told("message", message_type="notice")], True),
        ([told("notice")], True),
        ([told("memory_written"), told("ping")], True),
        ([Said(1, None)], True),  # open again: what was told meanwhile is lost
        ([told("notice"), told("room_deleted")], None),
        ([], True),  # nothing for long: ages pass, and perhaps a day
    ],
)
def test_what_is_heard_together_is_one_change(said: list[Said], changed: bool | None) -> None:
    """People's messages change nothing; the end of the room ends it."""
    heard: SimpleQueue[Said] = SimpleQueue()
    for one in said:
        heard.put(one)
    assert next_change(heard, 0.01) is changed
    assert heard.empty()


def test_a_stream_that_is_refused_ends_it() -> None:
    """The room is not there for who watches, say."""
    heard: SimpleQueue[Said] = SimpleQueue()
    heard.put(Said(1, Failure("Room not found")))
    with pytest.raises(Failure):
        next_change(heard, 0.01)
