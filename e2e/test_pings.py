"""What the channel shows of threads and of the board; neither wakes anybody."""

import json
from pathlib import Path

from e2e.requirements import requirement
from e2e.room import Room

CONTRACT = Path(__file__).parent.parent / "contracts" / "l9.json"
NOTICES = {"filed", "claimed", "released", "resolved", "blocked", "unblocked", "expired", "floor"}


@requirement("threads:ping")
def test_a_post_in_a_thread_is_a_ping(room: Room) -> None:
    """With thread, sender and message, after the message itself; a post in the channel is none."""
    root = room.post("a task")
    with room.api.stream(room.at("stream")) as stream:
        room.post("in the channel")
        assert stream.next().type == "message"
        message = room.post("in the thread", sender="sec", thread=root["id"])
        assert stream.next().data["id"] == message["id"]
        ping = stream.next()
        assert (ping.type, ping.id) == ("ping", "")
        assert ping.data == ping.data | {
            "room": room.name, "thread": root["id"], "sender_handle": "sec", "message_id": message["id"],
            "created_at": message["created_at"],
        }  # fmt: skip
        assert "content" not in ping.data


@requirement("threads:ping:live-only")
def test_pings_are_live_only(room: Room) -> None:
    """Neither the history has them, nor a watcher that comes back."""
    root = room.post("a task")
    with room.api.stream(room.at("stream")) as stream:
        room.post("one")
        last_id = stream.next("message").id
    room.post("in the thread", thread=root["id"])
    room.post("two")
    with room.api.stream(room.at("stream"), last_id) as stream:
        seen = [stream.next() for _ in range(2)]
    assert [(event.type, event.data["content"]) for event in seen] == [("message", "in the thread"), ("message", "two")]
    assert room.contents() == ["a task", "one", "two"]


@requirement("threads:ping:wakes-nobody")
def test_a_ping_wakes_nobody(room: Room) -> None:
    """The wait goes on until somebody mentions the agent, in a thread or not."""
    room.join("sec")
    root = room.post("a task")
    waiting = room.wait("sec", "--json", "--timeout", "20")
    room.post("talk in the thread", thread=root["id"])
    assert room.member("sec")["unread"] == 0
    room.post("@sec now", thread=root["id"])
    turn = waiting.ended().json
    assert (turn["message"]["content"], turn["reason"]) == ("@sec now", "mention")


@requirement("threads:ping", "live:watch:prints")
def test_watch_prints_threads_as_pings_and_the_channel_in_full(room: Room) -> None:
    """One line a post in a thread, with whose it is and where; not its text."""
    root = room.post("a task")
    watching = room.watch()
    room.post("not for the channel", sender="sec", thread=root["id"])
    room.post("end")
    watching.line(lambda line: line == "  end\n", "the last message")
    pings = [line for line in watching.out if f"in thread {root['id'][-8:]}" in line]
    assert len(pings) == 1
    assert "@sec" in pings[0]
    assert "not for the channel" not in "".join(watching.out)


@requirement("threads:notice")
def test_the_kinds_of_notices_are_a_contract() -> None:
    """Exactly the documented ones."""
    defined = json.loads(CONTRACT.read_text())["$defs"]
    assert set(defined["kind"]["enum"]) == NOTICES
    assert {"room", "kind", "task", "by", "thread"} <= set(defined["notice"]["required"])
    assert {"room", "thread", "sender_handle", "message_id"} <= set(defined["ping"]["required"])
