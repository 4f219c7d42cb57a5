"""Who is here and what they do: said, implied, and at an end when nobody is heard of."""

import json

import pytest

from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.waiting import until
from e2e.web import Stream

TTL_S = 5


def say(room: Room, handle: str, state: str, note: str = "", ttl_s: int = 60) -> None:
    """A heartbeat."""
    body = {"handle": handle, "state": state, "note": note, "ttl_s": ttl_s}
    room.api.post(room.at("presence"), body, handle=handle).ok(204)


def shown(room: Room, handle: str) -> tuple[str, str]:
    """What the room shows of a member now."""
    record = room.member(handle)
    return record["presence"], record["presence_note"]


def told(stream: Stream, handle: str, presence: str) -> Document:
    """The change of a member to a state, on a stream."""
    while True:
        event = stream.next("presence")
        if (event.data["handle"], event.data["presence"]) == (handle, presence):
            assert event.id == ""
            return event.data


@requirement("presence:said")
def test_what_an_agent_says_it_does_is_shown_everywhere(machine: Machine, room: Room) -> None:
    """In its record, in the room, in the list, and to watchers, once a change."""
    room.join("sec")
    assert shown(room, "sec") == ("offline", "")
    with room.api.stream(room.at("stream")) as stream:
        machine.run("presence", "working", "reviewing #48", handle="sec", room=room.name).ok()
        change = told(stream, "sec", "working")
        assert (change["room"], change["note"]) == (room.name, "reviewing #48")
        assert change["last_seen"]
        for _ in range(3):
            say(room, "sec", "working", "reviewing #48")
        machine.run("presence", "blocked", "needs the key", handle="sec", room=room.name).ok()
        change = stream.next("presence").data
        assert (change["presence"], change["note"]) == ("blocked", "needs the key")
    until(lambda: shown(room, "sec") == ("blocked", "needs the key"), "it is blocked")
    record = machine.run("room", "show", room.name, "--json").json["members_list"][0]
    assert (record["presence"], record["presence_note"]) == ("blocked", "needs the key")
    assert "blocked: needs the key" in machine.run("room", "show", room.name).ok().out
    assert "blocked: needs the key" in machine.run("agent", "ls", room=room.name).ok().out
    assert room.member("sec")["last_seen"]


@requirement("presence:implied")
def test_waiting_is_idle_and_a_message_is_work_until_it_is_answered(room: Room) -> None:
    """Without a word about it from the agent, and nothing else in between."""
    room.join("sec")
    with room.api.stream(room.at("stream")) as stream:
        waiting = room.wait("sec", "--json", "--timeout", "20", session="s1")
        until(lambda: shown(room, "sec")[0] == "idle", "it is idle")
        room.post("@sec one")
        waiting.ended().ok()
        until(lambda: shown(room, "sec")[0] == "working", "it works")
        room.machine.run("respond", "done", handle="sec", session="s1", room=room.name).ok()
        changes = [stream.next("presence").data["presence"] for _ in range(3)]
        assert changes[:2] == ["idle", "working"]
        assert changes[2] in {"idle", "offline"}


@requirement("presence:ends")
def test_a_killed_agent_is_offline(room: Room) -> None:
    """Its wait goes with it: watchers are told, nobody asks."""
    room.join("sec")
    with room.api.stream(room.at("stream")) as stream:
        waiting = room.wait("sec", "--timeout", "60")
        told(stream, "sec", "idle")
        waiting.kill()
        assert told(stream, "sec", "offline")["last_seen"]
    until(lambda: shown(room, "sec")[0] == "offline", "it is offline")


@requirement("presence:ends")
def test_an_agent_that_is_not_heard_of_is_offline_when_its_time_is_over(room: Room) -> None:
    """The stream's own bound is its time to live and a second, and room for a slow machine."""
    room.join("sec")
    with room.api.stream(room.at("stream"), within_s=TTL_S + 5) as stream:
        say(room, "sec", "working", "and then nothing", ttl_s=TTL_S)
        told(stream, "sec", "working")
        assert told(stream, "sec", "offline")["note"] == ""
    until(lambda: shown(room, "sec") == ("offline", ""), "it is offline")


@requirement("presence:refused")
@pytest.mark.parametrize(
    "body",
    [{"state": "asleep"}, {"state": "offline"}, {}, {"state": "idle", "ttl_s": 4}, {"state": "idle", "ttl_s": 601}],
    ids=json.dumps,
)
def test_a_presence_that_can_not_be_is_refused(room: Room, body: Document) -> None:
    """Another state, or for ever."""
    room.join("sec")
    reply = room.api.post(room.at("presence"), body, handle="sec")
    assert reply.status == 422
    assert reply.json["slug"] in {"presence.invalid", "request.invalid"}
    assert shown(room, "sec")[0] == "offline"


@requirement("presence:refused")
def test_only_members_are_present(machine: Machine, room: Room) -> None:
    """The refusal names the command that registers."""
    refused = machine.run("presence", "idle", handle="ghost", room=room.name)
    assert (refused.status, "is not a registered agent or user" in refused.err) == (4, True)
    for ttl in ("1s", "11m", "soon"):
        assert machine.run("presence", "idle", "--ttl", ttl, handle="ghost", room=room.name).status == 2


@requirement("presence:not-a-fact")
def test_presence_is_not_in_the_history(room: Room) -> None:
    """Nor told to a watcher that comes back; what is stored goes on from where it was."""
    room.join("sec")
    with room.api.stream(room.at("stream")) as stream:
        room.post("one")
        last_id = stream.next("message").id
        say(room, "sec", "working")
        told(stream, "sec", "working")
    room.post("two")
    with room.api.stream(room.at("stream"), last_id) as stream:
        assert stream.next().data["content"] == "two"
    assert room.contents() == ["one", "two"]
