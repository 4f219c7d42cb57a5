"""Events: posted as documented, looked up, closed, and at an end when their time is over."""

from typing import Any

import pytest

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.waiting import until

# As the manual has it, but for the time to live.
DOCUMENTED: Document = {
    "message_type": "event",
    "sender_handle": "github-poller",
    "content": 'New PR: "fix recordings window" (#48)',
    "metadata": {
        "kind": "source_event",
        "ttl_seconds": 1209600,
        "payload": {"source": "github", "event": "pr_opened", "number": 48},
        "provenance": [{"type": "pr", "ref": "org/repo#48"}],
    },
}


def event(room: Room, kind: str, content: str = "something", **metadata: Any) -> Document:
    """An event of that kind."""
    return room.post(content, message_type="event", metadata={"kind": kind, **metadata})


def events(room: Room, **query: str) -> dict[str, str]:
    """The events that a look-up finds, with their status."""
    return {message["content"]: message["status"] for message in room.page(**query)["items"]}


def set_status(room: Room, message: Document, status: str, handle: str = "avery") -> Document:
    """The event with another status."""
    reply = room.api.patch(room.at("messages", message["id"]), {"status": status}, handle=handle)
    changed: Document = reply.ok(200).json
    return changed


@requirement("events:post")
def test_the_documented_event_is_posted_and_kept_whole(room: Room) -> None:
    """By a handle that nobody registered; readers see payload and provenance as they were given."""
    posted = room.api.post(room.at("messages"), DOCUMENTED).ok(201).json
    assert (posted["sender_handle"], posted["message_type"], posted["status"]) == ("github-poller", "event", "")
    assert posted["metadata"] == DOCUMENTED["metadata"]
    assert posted["expires_at"] > posted["created_at"]
    assert room.page(kind="source_event")["items"] == [posted]
    assert "event source_event" in room.machine.run("room", "messages", room.name).ok().out


@requirement("events:kinds")
def test_kinds_begin_as_documented(room: Room) -> None:
    """Actions and concerns open; others without a status, kept until deleted."""
    found = {kind: event(room, kind) for kind in ("action", "concern", "source_event", "note", "decision", "ci_result")}
    assert {kind: message["status"] for kind, message in found.items()} == {
        "action": "open", "concern": "open", "source_event": "", "note": "", "decision": "", "ci_result": "",
    }  # fmt: skip
    assert {message["expires_at"] for message in found.values()} == {None}
    assert event(room, "action", status="in_progress")["status"] == "in_progress"


@requirement("events:kinds")
@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"kind": ""},
        {"kind": "Two Words"},
        {"kind": 7},
        {"kind": "x" * 65},
        {"kind": "action", "status": "done"},
        {"kind": "action", "status": "expired"},
        {"kind": "note", "ttl_seconds": 0},
        {"kind": "note", "ttl_seconds": -5},
        {"kind": "note", "ttl_seconds": 1.5},
        {"kind": "note", "ttl_seconds": "14d"},
        {"kind": "note", "ttl_seconds": 10**12},
        {"kind": "note", "provenance": "pr"},
        {"kind": "note", "provenance": [{"type": "pr"}]},
        {"kind": "note", "provenance": [{"type": "p r", "ref": "x"}]},
    ],
    ids=str,
)
def test_an_event_that_can_not_be_is_refused(room: Room, metadata: Document) -> None:
    """Nothing is stored."""
    room.try_post("hello", message_type="event", metadata=metadata).refused(422, "request.invalid")
    assert room.contents() == []


@requirement("events:look-up")
def test_events_are_looked_up_as_documented(room: Room) -> None:
    """What happened recently, what is still open; among talk, from wherever they were posted."""
    room.post("talk")
    event(room, "source_event", "old")
    since = event(room, "source_event", "new")["created_at"]
    event(room, "action", "to do")
    set_status(room, event(room, "action", "done"), "resolved")
    room.post("in a thread", thread=room.post("a task")["id"], message_type="event", metadata={"kind": "action"})
    assert "new" in events(room, kind="source_event", since=since)
    assert events(room, kind="source_event") == {"old": "", "new": ""}
    assert events(room, kind="action", status="open") == {"to do": "open", "in a thread": "open"}
    assert events(room, kind="action", status="resolved") == {"done": "resolved"}
    assert events(room, status="resolved") == {"done": "resolved"}


@requirement("events:status")
def test_a_status_is_set_by_anybody_and_told(room: Room) -> None:
    """In the event, in look-ups, and live; to what it has already, it is no change."""
    message = event(room, "concern", "the backup is old")
    with room.api.stream(room.at("stream")) as stream:
        changed = set_status(room, message, "in_progress", "sec")
        assert (changed["id"], changed["status"], changed["content"]) == (
            message["id"],
            "in_progress",
            "the backup is old",
        )
        told = stream.next("event_status")
        assert told.data == told.data | {
            "room": room.name, "id": message["id"], "status": "in_progress", "set_by": "sec"
        }  # fmt: skip
        assert told.id
        set_status(room, message, "in_progress")
        set_status(room, message, "resolved")
        assert stream.next("event_status").data["status"] == "resolved"
    assert set_status(room, message, "open")["status"] == "open"
    note = event(room, "note")
    assert set_status(room, note, "resolved")["status"] == "resolved"


@requirement("events:status")
def test_what_is_no_event_has_no_status(room: Room) -> None:
    """And an event has none of one's own making."""
    message, concern = room.post("talk"), event(room, "concern")
    target = room.at("messages", message["id"])
    room.api.patch(target, {"status": "resolved"}, handle="avery").refused(422, "event.not_an_event")
    target = room.at("messages", concern["id"])
    for wrong in ("done", "expired", "", "OPEN"):
        room.api.patch(target, {"status": wrong}, handle="avery").refused(422, "request.invalid")
    room.api.patch(target, {"status": "open", "content": "x"}, handle="avery").refused(422, "request.invalid")
    room.api.patch(target, {}, handle="avery").refused(422, "request.invalid")
    room.api.patch(room.at("messages", "ffffffff"), {"status": "open"}, handle="avery").refused(
        404, "message.not_found"
    )
    assert events(room, kind="concern") == {"something": "open"}


@requirement("events:expiry")
def test_an_event_expires_by_itself(room: Room) -> None:
    """Watchers are told by nobody's hand; it stays in history; one that was resolved stays that."""
    with room.api.stream(room.at("stream")) as stream:
        resolved = event(room, "action", "resolved in time", ttl_seconds=1)
        set_status(room, resolved, "resolved")
        assert stream.next("event_status").data["status"] == "resolved"
        message = event(room, "action", "short", ttl_seconds=1)
        assert message["expires_at"] > message["created_at"]
        told = stream.next("event_status").data
        assert (told["id"], told["status"], told["set_by"]) == (message["id"], "expired", "")
    assert events(room, kind="action") == {"short": "expired", "resolved in time": "resolved"}
    assert events(room, status="expired") == {"short": "expired"}
    assert events(room, kind="action", status="open") == {}
    target = room.at("messages", message["id"])
    room.api.patch(target, {"status": "resolved"}, handle="avery").refused(409, "event.expired")
    assert "event action (expired)" in room.machine.run("room", "messages", room.name).ok().out


@requirement("events:expiry:restart")
def test_an_event_expires_also_when_the_hub_was_killed(own_hub: Hub, own_room: Room) -> None:
    """Both one whose time passed while there was no hub, and one whose time comes after."""
    soon = event(own_room, "action", "soon", ttl_seconds=1)
    event(own_room, "action", "later", ttl_seconds=5)
    with own_room.api.stream(own_room.at("stream")) as stream:
        own_room.post("a place to come back to")
        last_id = stream.next("message").id
    own_hub.restart()
    with own_room.api.stream(own_room.at("stream"), last_id, within_s=20) as stream:
        told = [stream.next("event_status").data for _ in range(2)]
    assert [one["status"] for one in told] == ["expired", "expired"]
    assert told[0]["id"] == soon["id"]
    assert events(own_room, status="expired") == {"soon": "expired", "later": "expired"}


@requirement("events:command-line")
def test_events_by_command(machine: Machine, room: Room) -> None:
    """Posted, looked up and closed."""
    words = ["--ttl", "14d", "--payload", '{"number": 48}', "--provenance", "pr:org/repo#48", "--provenance", "page:x"]
    machine.run("room", "event", "source_event", "New PR (#48)", *words, handle="ci", room=room.name).ok()
    posted = room.page(kind="source_event")["items"][0]
    assert posted["metadata"] == {
        "kind": "source_event",
        "ttl_seconds": 14 * 86_400,
        "payload": {"number": 48},
        "provenance": [{"type": "pr", "ref": "org/repo#48"}, {"type": "page", "ref": "x"}],
    }
    made = machine.run("room", "event", "action", "rotate the key", "--json", handle="ci", room=room.name).json
    machine.run("room", "resolve", made["id"][-8:], "--status", "in_progress", handle="sec", room=room.name).ok()
    assert events(room, kind="action") == {"rotate the key": "in_progress"}
    machine.run("room", "resolve", made["id"][-8:], handle="sec", room=room.name).ok()
    assert events(room, kind="action", status="resolved") == {"rotate the key": "resolved"}
    talk = room.post("talk")
    refused = machine.run("room", "resolve", talk["id"][-8:], handle="sec", room=room.name)
    assert (refused.status, "event" in refused.err) == (2, True)


@requirement("events:post")
def test_a_mention_in_an_event_is_delivered(room: Room) -> None:
    """It arrives like any message."""
    room.join("sec")
    message = event(room, "action", "@sec rotate the key")
    until(lambda: room.member("sec")["unread"] == 1, "the event waits")
    turn = room.take("sec")
    assert turn is not None
    assert (turn["message"]["id"], turn["message"]["metadata"]["kind"]) == (message["id"], "action")
