"""How the product's things are said, whole texts at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from clients.cli.tests.scripted import MESSAGE
from mycelium_cli.machine.hub import draw_health
from mycelium_cli.output import PLAIN
from mycelium_cli.people.agent import draw_agent, draw_agents
from mycelium_cli.people.user import draw_user
from mycelium_cli.room.manage import draw_created, draw_room, draw_rooms
from mycelium_cli.room.messages import draw_page
from mycelium_cli.room.watch import draw_event
from mycelium_cli.turn.mailbox import Address
from mycelium_cli.turn.wait import draw_turn, duration_s
from mycelium_cli.wording import MENTION_WORDS, mention, sent

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
    assert list(draw_room(room, PLAIN)) == [
        "demo",
        "title         The demo",
        "kind          shared",
        "created       2026-09-03T16:00:00.000Z by @avery",
        "last message  none yet",
        "",
        "MEMBER  KIND   OWNER   TEAM  NOW      UNREAD",
        "@sec    agent  @avery  core  waiting  2",
    ]


def test_a_list_of_rooms_marks_the_one_in_use() -> None:
    """With a star."""
    rooms = [
        {"name": "demo", "title": "", "private": True, "members": 2, "last_message_at": "2026-09-03T16:40:00.000Z"},
        {"name": "CE-Area Team", "title": "Release", "private": False, "members": 0, "last_message_at": None},
    ]
    assert draw_rooms(rooms, "demo", NOW_S, PLAIN) == [
        "   NAME          TITLE    KIND     MEMBERS  LAST MESSAGE",
        "*  demo                   private  2        5m ago",
        "   CE-Area Team  Release  shared   0        -",
    ]


def test_a_new_room_tells_the_next_step_with_quotes_where_they_are_needed() -> None:
    """It can be pasted."""
    assert list(draw_created({"name": "CE-Area Team", "private": True}, PLAIN)) == [
        "created private room CE-Area Team",
        "make it the one in use: mycelium room use 'CE-Area Team'",
    ]


def test_agents_and_users() -> None:
    """Lists and single ones."""
    assert draw_agents({"items": [MEMBER]}, PLAIN) == [
        "AGENT  OWNER   TEAM  NOW      UNREAD  ADAPTER  DESCRIPTION",
        "@sec   @avery  core  waiting  2       codex    Reviews",
    ]
    assert draw_agents({"items": []}, PLAIN) == ["no agents: mycelium agent create <handle>"]
    assert list(draw_agent(MEMBER, PLAIN)) == [
        "@sec",
        "description  Reviews",
        "owner        @avery",
        "team         core",
        "adapter      codex",
        "cwd          /src",
        "allow from   @ops",
        "now          waiting for a message, never seen",
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
    assert list(draw_event("message", message(), PLAIN, several=True)) == [
        "demo @avery · 1a2b3c4d · 2026-09-03T16:40:00.000Z",
        "  hello",
    ]
    amended = {"id": MESSAGE["id"], "room": "demo", "content": "new", "edited_at": "2026-09-03T16:41:00.000Z"}
    assert list(draw_event("message_amended", amended, PLAIN)) == [
        "1a2b3c4d · 2026-09-03T16:41:00.000Z (edited)",
        "  new",
    ]
    assert list(draw_event("member_left", {"handle": "sec"}, PLAIN)) == ["-- @sec left the room"]
    assert list(draw_event("of_the_future", {}, PLAIN)) == []


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


@pytest.mark.parametrize(
    ("typed", "seconds"), [("120", 120), ("90s", 90), ("30m", 1800), ("2h", 7200), ("0", 0), ("1.5", 1.5)]
)
def test_time_outs_are_seconds_or_an_age(typed: str, seconds: float) -> None:
    """As the rest of the command line takes them."""
    assert duration_s(typed) == seconds
