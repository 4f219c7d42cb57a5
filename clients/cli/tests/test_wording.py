"""How the product's things are said, whole texts at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from clients.cli.tests.scripted import MESSAGE
from mycelium_cli.machine.hub import draw_health
from mycelium_cli.output import PLAIN
from mycelium_cli.people.agent import draw_agent, draw_agents, draw_paused
from mycelium_cli.people.user import draw_user
from mycelium_cli.periods import duration_s
from mycelium_cli.room.listing import draw_room, draw_rooms
from mycelium_cli.room.manage import draw_changed, draw_created
from mycelium_cli.room.messages import draw_history, draw_page
from mycelium_cli.room.watch import Screen
from mycelium_cli.turn.mailbox import Address
from mycelium_cli.turn.wait import draw_turn
from mycelium_cli.wording import MENTION_WORDS, RECEIPT_WORDS, mention, message_lines, presence, receipt_row, sent

NOW_S = datetime(2026, 9, 3, 16, 45, tzinfo=UTC).timestamp()
MEMBER: dict[str, Any] = {
    "handle": "sec",
    "kind": "agent",
    "name": "",
    "description": "Reviews",
    "cwd": "/src",
    "adapter": "codex",
    "owner": "avery",
    "team": "core",
    "allow_from": ["ops"],
    "notes": "",
    "created_at": "2026-09-03T16:00:00.000Z",
    "updated_at": "2026-09-03T16:00:00.000Z",
    "last_seen": None,
    "waiting": True,
    "unread": 2,
}


def message(**changes: Any) -> dict[str, Any]:
    return {**MESSAGE, **changes}


def test_a_post_says_what_became_of_each_mention() -> None:
    """The line of the reference."""
    mentions = [
        {"handle": "sec", "state": "queued", "last_seen": "2026-09-03T16:40:00.000Z"},
        {"handle": "ops", "state": "woken", "last_seen": None},
    ]
    assert sent(message(mentions=mentions), NOW_S, PLAIN) == [
        "sent 1a2b3c4d · @sec queued (last seen 5m ago) · @ops woken"
    ]


@pytest.mark.parametrize("state", ["woken", "queued", "held", "paused", "left", "self", "silent", "unknown"])
def test_every_state_has_honest_words_that_begin_with_it(state: str) -> None:
    """A program may look for the state, a person reads what it means."""
    assert state in MENTION_WORDS
    assert mention({"handle": "x", "state": state, "last_seen": None}, NOW_S, PLAIN).startswith(f"@x {state}")


def test_a_state_of_a_newer_hub_is_said_as_it_is() -> None:
    """Nothing is guessed."""
    assert mention({"handle": "x", "state": "frozen", "last_seen": None}, NOW_S, PLAIN) == "@x frozen"


def test_a_page_of_messages_ends_with_the_way_to_the_older_ones() -> None:
    """Name and handle, short id, time, text, edited; newest first as the hub gave them."""
    page = {
        "items": [
            message(sender_name="Avery Quinn", content="two\nlines\x1b[2J", edited_at="2026-09-03T16:41:00.000Z"),
            message(sender_handle="sec", reply_to=MESSAGE["id"], thread=MESSAGE["id"], content="ok"),
            message(message_type="event", metadata={"kind": "concern"}, content="risky"),
        ],
        "older_before": "2026-09-03T16:40:00.000Z~7",
    }
    again = "mycelium room messages demo --limit 3"
    assert list(draw_page(page, again, PLAIN)) == [
        "Avery Quinn (@avery) · 1a2b3c4d · 2026-09-03T16:40:00.000Z (edited)",
        "  two",
        "  lines\\x1b[2J",
        "@sec · 1a2b3c4d · 2026-09-03T16:40:00.000Z · thread 1a2b3c4d · answers 1a2b3c4d",
        "  ok",
        "@avery · 1a2b3c4d · 2026-09-03T16:40:00.000Z · event concern",
        "  risky",
        "older: mycelium room messages demo --limit 3 --before 2026-09-03T16:40:00.000Z~7",
    ]
    assert list(draw_page({"items": [], "older_before": None}, again, PLAIN)) == ["no messages"]


def test_a_turn_shows_what_led_up_to_it_and_how_to_answer() -> None:
    """A message that comes again says so."""
    turn = {
        "message": message(content="@sec well?"),
        "earlier": [message(sender_handle="ops", content="first")],
        "redelivered": True,
    }
    assert list(draw_turn(turn, Address("CE-Area Team", "sec"), PLAIN)) == [
        "before that (1):",
        "  @ops · 1a2b3c4d · 2026-09-03T16:40:00.000Z",
        "    first",
        "",
        "again: it was given out before, and nobody said that it was done",
        "@avery · 1a2b3c4d · 2026-09-03T16:40:00.000Z",
        "  @sec well?",
        "",
        "answer: mycelium respond --room 'CE-Area Team' --handle sec \"…\"",
    ]


def test_a_room_and_its_members() -> None:
    """Fields, then a table."""
    room = {
        "name": "demo",
        "title": "The demo",
        "private": False,
        "created_by": "avery",
        "created_at": "2026-09-03T16:00:00.000Z",
        "last_message_at": None,
        "members_list": [MEMBER],
    }
    assert list(draw_room(room, NOW_S, PLAIN)) == [
        "demo",
        "title         The demo",
        "kind          shared",
        "created       2026-09-03T16:00:00.000Z by @avery",
        "last message  none yet",
        "",
        "MEMBER  KIND   OWNER   TEAM  NOW            UNREAD",
        "@sec    agent  @avery  core  idle, waiting  2",
    ]


def test_a_list_of_rooms_marks_the_one_in_use() -> None:
    """With a star."""
    rooms = [
        {"name": "demo", "title": "", "private": False, "members": 2, "last_message_at": "2026-09-03T16:40:00.000Z"},
        {"name": "CE-Area Team", "title": "Release", "private": False, "members": 0, "last_message_at": None},
    ]
    assert list(draw_rooms(rooms, "demo", NOW_S, PLAIN)) == [
        "   NAME          TITLE    KIND    MEMBERS  LAST MESSAGE",
        "*  demo                   shared  2        5m ago",
        "   CE-Area Team  Release  shared  0        -",
    ]


def test_a_new_room_tells_the_next_step_with_quotes_where_they_are_needed() -> None:
    """It can be pasted."""
    assert list(draw_created({"name": "CE-Area Team", "private": True}, PLAIN)) == [
        "created private room CE-Area Team",
        "let somebody in: mycelium room add <handle> --room 'CE-Area Team'",
        "make it the one in use: mycelium room use 'CE-Area Team'",
    ]


def test_agents_and_users() -> None:
    """Lists and single ones."""
    assert draw_agents({"items": [MEMBER]}, NOW_S, PLAIN) == [
        "AGENT  OWNER   TEAM  NOW            UNREAD  ADAPTER  DESCRIPTION",
        "@sec   @avery  core  idle, waiting  2       codex    Reviews",
    ]
    assert draw_agents({"items": []}, NOW_S, PLAIN) == ["no agents: mycelium agent create <handle>"]
    assert list(draw_agent(MEMBER, NOW_S, PLAIN)) == [
        "@sec",
        "description  Reviews",
        "owner        @avery",
        "team         core",
        "adapter      codex",
        "cwd          /src",
        "allow from   @ops",
        "now          idle, waiting",
        "unread       2",
        "registered   2026-09-03T16:00:00.000Z",
    ]
    user = {"handle": "avery", "name": "Avery Quinn", "team": "core", "created_at": "x",
            "agents": [{"room": "demo", "handle": "sec"}]}  # fmt: skip
    assert list(draw_user(user, PLAIN)) == [
        "Avery Quinn (@avery)", "team   core", "added  x", "", "AGENT  ROOM", "@sec   demo",
    ]  # fmt: skip


def test_live_events() -> None:
    """Messages whole, the rest in small print, unknown kinds not at all."""

    def drawn(kind: str, data: dict[str, Any]) -> list[str]:
        return list(Screen().draw(kind, data, PLAIN))

    assert list(Screen(several=True).draw("message", message(), PLAIN)) == [
        "demo @avery · 1a2b3c4d · 2026-09-03T16:40:00.000Z",
        "  hello",
    ]
    amended = {"id": MESSAGE["id"], "room": "demo", "content": "new", "edited_at": "2026-09-03T16:41:00.000Z"}
    assert drawn("message_amended", amended) == ["1a2b3c4d · 2026-09-03T16:41:00.000Z (edited)", "  new"]
    assert drawn("message_amended", {**amended, "thread": "x-00000001"}) == [
        "-- 1a2b3c4d in thread 00000001 was edited"
    ]
    assert drawn("member_joined", {"handle": "sec", "name": "Sec"}) == ["-- Sec (@sec) is in the room"]
    assert drawn("member_left", {"handle": "sec"}) == ["-- @sec left the room"]
    assert drawn("room_changed", {"name": "demo", "title": "The demo", "private": True}) == [
        "-- the room is now called The demo, and private"
    ]
    assert drawn("room_deleted", {"room": "demo"}) == ["-- the room demo was deleted"]
    status = {"id": MESSAGE["id"], "status": "expired", "set_by": ""}
    assert drawn("event_status", status) == ["-- event 1a2b3c4d is expired"]
    resolved = {**status, "status": "resolved", "set_by": "sec"}
    assert drawn("event_status", resolved) == ["-- event 1a2b3c4d is resolved, says @sec"]
    assert drawn("presence", {"handle": "sec", "presence": "working", "note": "on #48"}) == [
        "-- @sec is working: on #48"
    ]
    assert drawn("presence", {"handle": "sec", "presence": "offline", "note": ""}) == ["-- @sec is offline"]
    assert drawn("of_the_future", {}) == []


def test_a_message_in_a_thread_is_one_line_whether_its_ping_comes_before_or_after() -> None:
    """And alone after a reconnect, which brings messages again but no pings."""
    posted = message(thread="01990000-0000-7000-8000-00000000beef", sender_handle="sec")
    ping = {"thread": posted["thread"], "sender_handle": "sec", "message_id": posted["id"]}
    line = ["-- @sec in thread 0000beef · 1a2b3c4d"]
    screen = Screen()
    assert [list(screen.draw(*event, PLAIN)) for event in (("message", posted), ("ping", ping))] == [line, []]
    screen = Screen()
    assert [list(screen.draw(*event, PLAIN)) for event in (("ping", ping), ("message", posted))] == [line, []]


LOGIN = {"task": "work/login", "title": "Ship passkey login", "row_kind": "task", "by": "julia"}


@pytest.mark.parametrize(
    ("notice", "lines"),
    [
        ({"kind": "filed"}, ["New task    Ship passkey login                          @julia · work/login"]),
        (
            {"kind": "filed", "row_kind": "decision", "title": "JWT access-token TTL: 15m or 60m?"},
            ["New decision  JWT access-token TTL: 15m or 60m?         @julia · work/login"],
        ),
        ({"kind": "claimed"}, ["Claimed     Ship passkey login                          @julia · work/login"]),
        (
            {"kind": "claimed", "holder": "sec"},
            ["Claimed     Ship passkey login                          @julia for @sec · work/login"],
        ),
        (
            {"kind": "released", "note": "schema is settled"},
            ["Handed back  Ship passkey login                         @julia · work/login", "  schema is settled"],
        ),
        ({"kind": "expired", "by": ""}, ["Expired     Ship passkey login                          work/login"]),
        ({"kind": "resolved", "title": "x" * 60}, [f"Resolved    {'x' * 60}  @julia · work/login"]),
        (
            {"kind": "resolved", "move": "dismissed"},
            ["Dismissed   Ship passkey login                          @julia · work/login"],
        ),
        (
            {"kind": "resolved", "move": "promoted"},
            ["Promoted    Ship passkey login                          @julia · work/login"],
        ),
        (
            {"kind": "resolved", "move": "answered", "answer": "60m"},
            ["Answered    Ship passkey login                          @julia · → 60m · work/login"],
        ),
        (
            {"kind": "filed", "move": "assigned"},
            ["New task    Ship passkey login                          @julia · work/login"],
        ),
        (
            {"kind": "blocked", "move": "blocked", "on": "#502", "holder": "sec"},
            ["Blocked     Ship passkey login                          @julia · waiting on #502 · work/login"],
        ),
        ({"kind": "floor", "title": ""}, ["Turn of     work/login                                  @julia"]),
    ],
)
def test_a_change_of_the_board_is_one_line(notice: dict[str, Any], lines: list[str]) -> None:
    """What, which task, by whom, in columns; the same live and in the history, where its time stands too."""
    data = {"room": "demo", "thread": "01990000-0000-7000-8000-00000000beef", **LOGIN, **notice}
    assert list(Screen().draw("notice", data, PLAIN)) == lines
    posted = message(message_type="notice", content="in other words", sender_handle=data["by"], metadata=data)
    assert message_lines(posted, PLAIN) == [f"{lines[0]} · {posted['created_at']}", *lines[1:]]


@pytest.mark.parametrize(
    ("notice", "line"),
    [
        ({"kind": "claimed", "by": "sec"}, "Reserved    src/**                                      @sec"),
        (
            {"kind": "claimed", "by": "sec", "task": "work/login"},
            "Reserved    src/**                                      @sec · work/login",
        ),
        ({"kind": "released", "by": "sec"}, "Reservation given back  src/**                          @sec"),
        ({"kind": "released", "by": "julia"}, "Reservation over  src/**                                of @sec"),
        ({"kind": "expired", "by": ""}, "Reservation over  src/**                                of @sec"),
    ],
)
def test_what_is_told_of_a_reservation_is_one_line(notice: dict[str, Any], line: str) -> None:
    """In words of its own, of whose it is, with or without a task."""
    data = {"task": "", "title": "src/**", "row_kind": "reservation", "holder": "sec", **notice}
    assert list(Screen().draw("notice", data, PLAIN)) == [line]
    posted = message(message_type="notice", content="in other words", sender_handle=data["by"], metadata=data)
    assert message_lines(posted, PLAIN) == [f"{line} · {posted['created_at']}"]


def test_a_notice_can_not_pass_for_another_line() -> None:
    """Titles and notes are other people's texts."""
    data = {**LOGIN, "kind": "released", "title": "a\nClaimed", "note": "b\n@avery · 1a2b3c4d"}
    first, *rest = Screen().draw("notice", data, PLAIN)
    assert first.startswith("Handed back  a Claimed  ")
    assert rest == ["  b", "  @avery · 1a2b3c4d"]


def test_what_a_bundle_brought_as_a_notice_is_shown_as_it_is_written() -> None:
    """Without a task it is a message of the hub's, with its heading."""
    shown = message_lines(message(message_type="notice", content="something moved"), PLAIN)
    assert shown == ["@avery · 1a2b3c4d · 2026-09-03T16:40:00.000Z · a notice", "  something moved"]


def test_rooms_are_grouped_by_folder_then_shared_then_private() -> None:
    """One table with headings, so that the columns stay in line."""
    empty = {"title": "", "members": 1, "last_message_at": None}
    rooms = [
        {**empty, "name": "scratch", "private": True},
        {**empty, "name": "acme", "private": True, "folder": "clients"},
        {**empty, "name": "demo", "private": False},
    ]
    assert list(draw_rooms(rooms, "", NOW_S, PLAIN)) == [
        "  NAME     TITLE  KIND     MEMBERS  LAST MESSAGE",
        "clients/",
        "  acme            private  1        -",
        "Shared",
        "  demo            shared   1        -",
        "Private",
        "  scratch         private  1        -",
    ]
    assert list(draw_rooms([], "", NOW_S, PLAIN)) == ["no rooms: mycelium room create <name>"]


def test_a_changed_room_is_said_as_it_is_now() -> None:
    """All that can be set."""
    room = {"name": "demo", "title": "The demo", "private": True, "folder": "clients"}
    said = 'demo · titled "The demo" · private: for its members alone · in your folder clients'
    assert list(draw_changed(room, PLAIN)) == [said]


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ({"presence": "working", "presence_note": "on #48", "waiting": False}, "working: on #48"),
        ({"presence": "idle", "waiting": True}, "idle, waiting"),
        ({"presence": "blocked", "waiting": False}, "blocked"),
        ({"presence": "offline", "last_seen": "2026-09-03T16:40:00.000Z"}, "offline, seen 5m ago"),
        ({"presence": "offline", "last_seen": None}, "offline, never seen"),
        ({"kind": "engine", "presence": "offline", "last_seen": "2026-09-03T16:40:00.000Z"}, "seen 5m ago"),
        ({"kind": "engine", "presence": "offline", "last_seen": None}, "never asked"),
        ({"kind": "engine", "presence": "offline", "last_seen": None, "paused": True}, "paused"),
        ({"presence": "idle", "waiting": True, "paused": True}, "paused, idle, waiting"),
    ],
)
def test_presence_is_said_in_a_few_words(member: dict[str, Any], said: str) -> None:
    """What is seen now, else when last."""
    assert presence(member, NOW_S) == said


def test_a_paused_agent_tells_what_waits() -> None:
    """Nothing is lost."""
    assert list(draw_paused({"handle": "sec", "paused": True, "unread": 2}, PLAIN)) == ["paused @sec, 2 waiting"]
    assert list(draw_paused({"handle": "sec", "paused": False, "unread": 0}, PLAIN)) == ["resumed @sec"]


def test_every_text_of_an_amended_message_is_shown() -> None:
    """The original first."""
    history = [
        {"content": "30s", "created_at": "2026-09-03T16:40:00.000Z"},
        {"content": "300s", "edited_at": "2026-09-03T16:41:00.000Z"},
    ]
    assert list(draw_history(message(content="300s", history=history), PLAIN)) == [
        "@avery · 1a2b3c4d",
        "posted 2026-09-03T16:40:00.000Z",
        "  30s",
        "edited 2026-09-03T16:41:00.000Z",
        "  300s",
    ]


@pytest.mark.parametrize("state", [*RECEIPT_WORDS, "left", "of_the_future"])
def test_every_state_of_a_receipt_has_words(state: str) -> None:
    """Those of mentions are the same as in the answer of the post."""
    words = receipt_row({"handle": "sec", "state": state}, NOW_S)[1]
    assert words == {**MENTION_WORDS, **RECEIPT_WORDS}.get(state, state)


def test_a_delivery_that_was_given_out_is_not_said_to_wait() -> None:
    """Somebody has it, or lost it on the way."""
    row = {"handle": "sec", "state": "queued", "deliveries": 1, "session": "s1", "delivered_at": None}
    assert receipt_row(row, NOW_S) == ["@sec", "given out, not received yet", "-", "1", "s1"]


def test_health_names_each_service_and_every_warning() -> None:
    """For a hub anywhere."""
    health = {
        "url": "http://hub:8000",
        "status": "degraded",
        "version": "0.1.0",
        "services": {"rooms": {"status": "ok", "detail": ""}, "nats": {"status": "down", "detail": "gone"}},
        "auth": {"enabled": False},
        "warnings": ["anybody can reach this hub"],
    }
    assert list(draw_health(health, PLAIN)) == [
        "hub http://hub:8000: degraded, version 0.1.0",
        "SERVICE  STATUS  DETAIL",
        "rooms    ok",
        "nats     down    gone",
        "sign-in: off",
        "warning: anybody can reach this hub",
    ]


def test_status_says_where_one_signs_in() -> None:
    """And who needs no token."""
    auth = {"enabled": True, "issuers": ["https://sso"], "localhost_bypass": True, "web": True}
    health = {"url": "http://hub", "status": "ok", "version": "0.1.0", "auth": auth}
    assert list(draw_health(health, PLAIN))[1:] == [
        "sign-in: on, at https://sso; the hub's own machine needs none; people of the web app sign in by browser",
    ]
    assert list(draw_health(health | {"auth": {"enabled": True}}, PLAIN))[1:] == ["sign-in: on, at no issuer"]


@pytest.mark.parametrize(
    ("typed", "seconds"), [("120", 120), ("90s", 90), ("30m", 1800), ("2h", 7200), ("0", 0), ("1.5", 1.5)]
)
def test_time_outs_are_seconds_or_an_age(typed: str, seconds: float) -> None:
    """As the rest of the command line takes them."""
    assert duration_s(typed, "--timeout") == seconds
