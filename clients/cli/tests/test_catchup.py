"""What `catchup` prints: part by part, short, each with the way to more."""

from __future__ import annotations

from typing import Any

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import MESSAGE, ScriptedHub, answer
from mycelium_cli.memory import catchup
from mycelium_cli.output import PLAIN

NOW_S = 1_788_453_600.0  # 2026-09-03T16:40:00Z
MOMENT = MESSAGE["created_at"]
EMPTY: dict[str, Any] = {
    "room": "design review",
    "since": "2026-08-27T16:40:00.000Z",
    "since_what": "last_days",
    "synthesis": None,
    "unread": 0,
    "here": {"items": [], "more": False},
    "events": {"items": [], "more": False},
    "documents": {"items": [], "more": False},
    "messages": {"items": [], "more": False, "older_before": None},
}
MEMBER = {"handle": "sec", "kind": "agent", "presence": "working", "presence_note": "#48", "waiting": False, "last_seen": None, "paused": False}  # fmt: skip  # noqa: E501
CHANGE = {"key": "decisions/db", "version": 3, "updated_by": "kim", "updated_at": MOMENT, "removed": False, "summary": "Postgres", "thread": "t"}  # fmt: skip  # noqa: E501


def drawn(**parts: object) -> str:
    """All of the output."""
    return "\n".join(catchup.draw({**EMPTY, **parts}, NOW_S, PLAIN))


def test_a_quiet_room_is_said_to_be_one() -> None:
    """With why so much is looked at, and how to look further back."""
    assert drawn().splitlines() == [
        "design review · no synthesis, so the last seven days (since 2026-08-27T16:40:00.000Z)",
        "nobody is here now",
        "",
        "nothing was said or written since; further back: mycelium catchup --room 'design review' --since 30d",
    ]


def test_a_busy_room_is_told_part_by_part() -> None:
    """What waits first, then who, what stands, what is open, what was written, what was said."""
    event = {**MESSAGE, "message_type": "event", "metadata": {"kind": "concern"}, "status": "open", "cut": False}
    memory = {"version": 4, "updated_by": "sum", "updated_at": MOMENT, "value": "# Now\n\nFolders.\n", "cut": False}
    removed = {**CHANGE, "key": "failed/x", "removed": True, "summary": ""}
    told = drawn(
        since_what="synthesis",
        unread=2,
        here={"items": [MEMBER], "more": False},
        synthesis=memory,
        events={"items": [event], "more": False},
        documents={"items": [CHANGE, removed], "more": True},
        messages={
            "items": [{**MESSAGE, "content": "second", "cut": False}, {**MESSAGE, "content": "first", "cut": False}],
            "more": True,
            "older_before": "t~7",
        },
    )
    assert told.splitlines() == [
        "design review · since the synthesis of 2026-08-27T16:40:00.000Z (7d ago)",
        "2 messages wait for you: mycelium await --room 'design review'",
        "here: @sec (working: #48)",
        "",
        "synthesis · version 4 · @sum, 0s ago",
        "  # Now",
        "",
        "  Folders.",
        "",
        "open events",
        "  1a2b3c4d · concern · @avery, 0s ago · hello",
        "",
        "memory",
        "  decisions/db · version 3 · @kim, 0s ago · Postgres",
        "  failed/x · version 3, removed · @kim, 0s ago",
        "  … mycelium catchup --room 'design review' --limit 100, or mycelium memory ls --room 'design review'",
        "",
        "messages",
        "  older: mycelium room messages 'design review' --before t~7",
        "  @avery · 1a2b3c4d · 0s ago",
        "    first",
        "  @avery · 1a2b3c4d · 0s ago",
        "    second",
    ]


def test_long_texts_are_cut_with_the_way_to_the_rest() -> None:
    """So many lines, so many characters of each; nothing of it can command the terminal."""
    long = "\n".join(f"line {number}\x1b[2J" for number in range(100))
    memory = {"version": 1, "updated_by": "sum", "updated_at": MOMENT, "value": long, "cut": False}
    wide = {**MESSAGE, "content": "x" * 500, "cut": False}
    told = drawn(synthesis=memory, messages={"items": [wide], "more": False, "older_before": None}).splitlines()
    assert "  … mycelium memory get context/synthesis --room 'design review'" in told
    assert told.count("    … mycelium room messages 'design review' --history 1a2b3c4d") == 1
    assert len([line for line in told if line.startswith("  line ")]) == catchup.LINES_OF_SYNTHESIS
    assert f"    {'x' * catchup.CHARACTERS_OF_LINE}…" in told
    assert "\x1b" not in "".join(told)


def test_a_value_that_is_json_is_shown_as_such() -> None:
    """A synthesis is what its writer made of it."""
    memory = {"version": 1, "updated_by": "sum", "updated_at": MOMENT, "value": {"open": ["a"]}, "cut": False}
    assert '    "open": [' in drawn(synthesis=memory).splitlines()


def test_the_synthesizer_of_a_newer_hub_is_named(scripted: ScriptedHub, run: Run) -> None:
    """This program can't start it; it says who is to be asked, and how."""
    scripted.play(answer(200, {"items": [{"handle": "sum", "kind": "synthesizer"}], "next": None}))
    ran = run("synthesize")
    said = "error: @sum is the synthesizer of demo: ask it. Next: "
    assert ran == (1, "", f'{said}mycelium engine invoke sum "catch us up" --room demo\n')
