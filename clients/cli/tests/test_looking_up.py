"""Flags of `room messages`, `room event` and their kin as the hub gets them."""

from __future__ import annotations

import json

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import MESSAGE, ScriptedHub, answer, stream
from mycelium_cli import periods
from mycelium_cli.room.messages import needs_zone

PAGE = answer(200, {"items": [], "next": None, "older_before": "x~1"})


def test_every_filter_reaches_the_hub_and_the_command_for_older_ones(scripted: ScriptedHub, run: Run) -> None:
    """The page before this one is asked for with the same filters."""
    scripted.play(PAGE)
    words = ("--limit", "5", "--sender", "@Sec", "--kind", "action", "--status", "open", "--search", "a b", "--all")
    ran = run("room", "messages", "--since", "2h", *words)
    target = "limit=5&all=true&q=a%20b&since=2h&sender=sec&kind=action&status=open"
    assert scripted.received[0].line == f"GET /api/rooms/demo/messages?{target} HTTP/1.1"
    older = "--since 2h --sender @Sec --kind action --status open --search 'a b' --all --before x~1"
    assert ran.out == f"no messages in this stretch\nolder: mycelium room messages demo --limit 5 {older}\n"


def test_days_begin_at_midnight_of_this_machine(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub may stand in another zone."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    scripted.play(PAGE)
    run("room", "messages", "--since", "today")
    assert scripted.received[0].line.endswith("?limit=50&tz=Europe%2FBerlin&since=today HTTP/1.1")


@pytest.mark.parametrize(
    ("typed", "needs"),
    [
        ("today", True),
        ("Yesterday", True),
        ("2026-03-29", True),
        ("2026-03-29 02:30", True),
        ("2026-03-29T02:30:00.000Z", False),
        ("2026-03-29T02:30+02:00", False),
        ("2026-03-29T02:30:00.000Z~7", False),
        ("2h", False),
        (None, False),
    ],
)
def test_a_zone_is_told_where_it_matters(typed: str | None, needs: bool) -> None:
    """A moment as printed is one everywhere."""
    assert needs_zone(typed) is needs


@pytest.mark.parametrize(("named", "zone"), [("UTC", "UTC"), (":Asia/Tokyo", "Asia/Tokyo"), ("CET-1CEST", "")])
def test_the_zone_of_this_machine_has_a_name_or_none(named: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule is no name that a hub could know."""
    monkeypatch.setenv("TZ", named)
    assert periods.zone() == zone


def test_one_message_with_its_texts(scripted: ScriptedHub, run: Run) -> None:
    """By its own address."""
    scripted.play(answer(200, {**MESSAGE, "history": [{"content": "x", "created_at": "t"}]}))
    assert run("room", "messages", "--history", "1a2b3c4d").out == "@avery · 1a2b3c4d\nposted t\n  x\n"
    assert scripted.received[0].line == "GET /api/rooms/demo/messages/1a2b3c4d?history=true HTTP/1.1"


def test_the_channel_and_one_thread_can_not_both_be_meant(run: Run) -> None:
    """Nothing is guessed."""
    assert run("room", "messages", "--room", "x", "--all", "--thread", "1a2b3c4d").status == 2


def test_an_event_is_posted_with_all_that_is_known_of_it(scripted: ScriptedHub, run: Run) -> None:
    """The body of the reference."""
    scripted.play(answer(201, {**MESSAGE, "message_type": "event"}))
    details = ("--payload", '{"number": 48}', "--provenance", "pr:org/repo#48", "--provenance", "commit:abc")
    ran = run("room", "event", "source_event", "New PR", "--ttl", "14d", "--status", "open", *details)
    assert ran.out == "posted 1a2b3c4d\n"
    assert scripted.received[0].document() == {
        "content": "New PR",
        "message_type": "event",
        "metadata": {
            "kind": "source_event",
            "ttl_seconds": 1209600,
            "status": "open",
            "payload": {"number": 48},
            "provenance": [{"type": "pr", "ref": "org/repo#48"}, {"type": "commit", "ref": "abc"}],
        },
    }


@pytest.mark.parametrize("wrong", [("--ttl", "0"), ("--payload", "{"), ("--provenance", "org/repo"), ("--ttl", "soon")])
def test_a_wrong_detail_of_an_event_is_refused_before_it_is_posted(wrong: tuple[str, str], run: Run) -> None:
    """Exit 2, with what a right one looks like."""
    ran = run("room", "event", "--room", "x", "--handle", "ci", *wrong, "note", "text")
    assert ran.status == 2
    assert wrong[0] in ran.err


def test_an_event_is_closed(scripted: ScriptedHub, run: Run) -> None:
    """Or set to what it is now."""
    scripted.play(answer(200, {**MESSAGE, "status": "resolved"}), answer(200, {**MESSAGE, "status": "in_progress"}))
    assert run("room", "resolve", "1a2b3c4d").out == "1a2b3c4d is resolved\n"
    assert run("room", "resolve", "1a2b3c4d", "--status", "in_progress").out == "1a2b3c4d is in_progress\n"
    assert [request.document() for request in scripted.received] == [{"status": "resolved"}, {"status": "in_progress"}]


def test_a_room_is_changed_by_what_is_named(scripted: ScriptedHub, run: Run) -> None:
    """Nothing else is sent; nothing at all is refused."""
    room = {"name": "demo", "private": True}
    scripted.play(*[answer(200, room)] * 3)
    run("room", "set", "--private", "--title", "")
    run("room", "set", "ops", "--shared")
    run("room", "set", "--folder", "")
    bodies = [request.document() for request in scripted.received]
    assert bodies == [{"private": True, "title": ""}, {"private": False}, {"folder": ""}]
    assert run("room", "set").status == 2


def test_presence_is_told_for_a_while(scripted: ScriptedHub, run: Run) -> None:
    """With a note; the time has bounds."""
    scripted.play(answer(204))
    assert run("presence", "working", "on #48", "--ttl", "2m").out == "@avery working: on #48, for 120 s\n"
    assert scripted.received[0].document() == {"handle": "avery", "state": "working", "note": "on #48", "ttl_s": 120}
    assert run("presence", "idle", "--ttl", "1h").status == 2


def test_an_agent_is_paused_and_resumed(scripted: ScriptedHub, run: Run) -> None:
    """A field of its record."""
    scripted.play(answer(200, {"handle": "sec", "paused": True, "unread": 0}), answer(200, {"handle": "sec"}))
    assert run("agent", "pause", "@Sec").out == "paused @sec\n"
    assert run("agent", "resume", "sec").out == "resumed @sec\n"
    assert [request.line for request in scripted.received] == ["PATCH /api/rooms/demo/members/sec HTTP/1.1"] * 2
    assert [request.document() for request in scripted.received] == [{"paused": True}, {"paused": False}]


def test_the_room_in_use_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the reference when there is none."""
    ran = run("room", "use")
    assert (ran.status, ran.err.split(" Next")[0]) == (2, "error: No active room set.")
    monkeypatch.setenv("MYCELIUM_ROOM_ID", "build")
    assert run("room", "use").out == "using build (from MYCELIUM_ROOM_ID)\n"


def test_messages_oldest_first_begin_with_the_way_to_the_older_ones(scripted: ScriptedHub, run: Run) -> None:
    """As an argument is read; in JSON too."""
    items = [{**MESSAGE, "content": "second"}, {**MESSAGE, "content": "first"}]
    page = answer(200, {"items": items, "next": "x~1", "older_before": "x~1"})
    scripted.play(page, page)
    lines = run("room", "messages", "--reverse", "--limit", "2").out.splitlines()
    assert lines[0] == "older: mycelium room messages demo --limit 2 --reverse --before x~1"
    assert [line for line in lines if line.startswith("  ")] == ["  first", "  second"]
    told = json.loads(run("room", "messages", "--reverse", "--json").out)
    assert [item["content"] for item in told["items"]] == ["first", "second"]


@pytest.mark.parametrize("flag", ["--before", "--since"])
def test_the_help_names_days(flag: str, run: Run) -> None:
    """`today` works, so it is said."""
    told = " ".join(run("room", "messages", "--help").out.split())
    assert "today, yesterday" in told.partition(f"{flag} TIME")[2].partition("--")[0]


def said(number: int, **more: object) -> dict[str, object]:
    """A message of its own."""
    at = {"id": f"m-{number:08d}", "seq": number, "created_at": f"2026-09-03T16:4{number}:00.000Z"}
    return {**MESSAGE, **at, "content": f"text {number}", **more}


def live(kind: str, data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


LIVE = stream(": connected\n\n" + live("message", said(2)) + live("message", said(3)))
GONE = answer(404, {"slug": "room.not_found", "detail": "Room not found: demo"})


def test_a_watch_begins_with_what_was_said_last(scripted: ScriptedHub, run: Run) -> None:
    """Looked up once the stream is open, so nothing is missed; what came meanwhile is shown once."""
    scripted.play(LIVE, answer(200, {"items": [said(2), said(1)], "older_before": "x"}), GONE)
    ran = run("room", "watch", "--tail", "2")
    assert [line for line in ran.out.splitlines() if line.startswith("  ")] == ["  text 1", "  text 2", "  text 3"]
    assert scripted.received[1].line == "GET /api/rooms/demo/messages?limit=2 HTTP/1.1"


def test_a_watch_since_some_time_reads_every_page(scripted: ScriptedHub, run: Run) -> None:
    """Of all rooms, in the order in which it was said; in JSON each is an event."""
    pages = [{"items": [said(3, room="a")], "older_before": "x~1"}, {"items": [said(1, room="a")]}]
    pages.append({"items": [said(2, room="b")]})
    scripted.play(stream(": connected\n\n"), *[answer(200, page) for page in pages], GONE)
    ran = run("room", "watch", "a", "b", "--since", "2h", "--json")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(line["event"], line["data"]["content"]) for line in told] == [
        ("message", "text 1"),
        ("message", "text 2"),
        ("message", "text 3"),
    ]
    assert [request.line.split()[1] for request in scripted.received[1:4]] == [
        "/api/rooms/a/messages?since=2h&limit=500",
        "/api/rooms/a/messages?since=2h&limit=500&before=x~1",
        "/api/rooms/b/messages?since=2h&limit=500",
    ]


def test_an_amended_message_is_shown_with_its_sender(scripted: ScriptedHub, run: Run) -> None:
    """The stream tells only what has changed; one that is gone by then is shown without."""
    amended = {"id": "m-00000001", "room": "demo", "content": "new", "edited_at": "2026-09-03T16:50:00.000Z"}
    scripted.play(stream(live("message_amended", amended) * 2), answer(200, said(1)), GONE, GONE)
    assert run("room", "watch").out.splitlines() == [
        "@avery · 00000001 · 2026-09-03T16:50:00.000Z (edited)",
        "  new",
        "00000001 · 2026-09-03T16:50:00.000Z (edited)",
        "  new",
    ]
