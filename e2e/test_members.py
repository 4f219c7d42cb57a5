"""Members who are paused, removed or all of them at once, and what the sender reads of each."""

from collections.abc import Callable

from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room, states
from e2e.web import path

Unique = Callable[[str], str]


@requirement("members:pause", "delivery:paused")
def test_a_paused_agents_messages_wait_until_it_is_resumed(machine: Machine, room: Room) -> None:
    """Nothing is lost and nothing is woken; a wait that is open then gets them, oldest first."""
    room.join("sec")
    assert machine.run("agent", "pause", "sec", room=room.name).ok().out.startswith("paused @sec")
    waiting = room.wait("sec", "--json", "--timeout", "30", session="s1")
    first = room.post("@sec one")
    assert states(first) == {"sec": "paused"}
    assert room.state(first, "sec") == "paused"
    room.post("@sec two")
    record = room.member("sec")
    assert (record["paused"], record["unread"]) == (True, 2)
    assert "paused" in machine.run("agent", "ls", room=room.name).ok().out
    assert "paused" in machine.run("agent", "show", "sec", room=room.name).ok().out
    assert room.take("sec", session="s2") is None
    assert waiting.alive
    assert machine.run("agent", "resume", "sec", room=room.name).ok().out.startswith("resumed @sec")
    assert waiting.ended().json["message"]["content"] == "@sec one"
    turn = room.take("sec", session="s1")
    assert turn is not None
    assert turn["message"]["content"] == "@sec two"
    assert room.state(first, "sec") == "acknowledged"


@requirement("members:pause")
def test_watchers_see_a_pause(room: Room) -> None:
    """As a change of the member, and only when it is one."""
    room.join("sec")
    target = room.at("members", "sec")
    with room.api.stream(room.at("stream")) as stream:
        room.api.patch(target, {"paused": True}, handle="avery").ok(200)
        assert stream.next("member_changed").data["paused"] is True
        room.api.patch(target, {"paused": True}, handle="avery").ok(200)
        room.api.patch(target, {"paused": False}, handle="avery").ok(200)
        assert stream.next("member_changed").data["paused"] is False
    room.api.patch(target, {"paused": "perhaps"}, handle="avery").refused(422, "request.invalid")


@requirement("mentions:all", "delivery:paused")
def test_a_broadcast_with_one_member_paused(machine: Machine, room: Room) -> None:
    """Said of that one alone; the others are woken or queued as ever."""
    room.join("awake", "busy", "paused")
    room.api.patch(room.at("members", "paused"), {"paused": True}, handle="avery").ok(200)
    waiting = room.wait("awake", "--json", "--timeout", "20")
    sent = machine.run("room", "send", "@all the build is red", handle="avery", room=room.name).ok().out
    assert "@awake woken" in sent
    assert "@busy queued" in sent
    assert "@paused paused (waits until they are resumed)" in sent
    message = waiting.ended().json["message"]
    assert states(message) == {"awake": "woken", "busy": "queued", "paused": "paused"}
    assert room.take("paused") is None
    assert room.take("busy") is not None
    room.api.patch(room.at("members", "paused"), {"paused": False}, handle="avery").ok(200)
    turn = room.take("paused")
    assert turn is not None
    assert turn["message"]["id"] == message["id"]


@requirement("mentions:all")
def test_all_is_every_agent_and_nobody_else(room: Room, unique: Unique) -> None:
    """Not who says it, not engines, not people, not who has left; a silent one wakes nobody."""
    person = unique("person")
    room.api.post(path("users"), {"handle": person}, handle="avery").ok(201)
    room.join("one", "two", "gone")
    room.api.post(room.at("members"), {"handle": "aligner", "kind": "engine"}, handle="avery").ok(201)
    room.api.post(room.at("members"), {"handle": person, "kind": "user"}, handle="avery").ok(201)
    room.api.delete(room.at("members", "gone"), handle="avery").ok(204)
    message = room.post("@all and again @All, @two", sender="one")
    assert {handle: state for handle, state in states(message).items() if state != "self"} == {"two": "queued"}
    assert room.take("two") is not None
    assert room.take("two") is None
    assert set(states(room.post("not @~all of it")).values()) <= {"silent"}
    room.api.post(room.at("members"), {"handle": "all", "kind": "agent"}, handle="avery").refused(422, "handle.invalid")


@requirement("delivery:left-and-live")
def test_a_removed_member_and_two_live_ones_in_one_message(machine: Machine, room: Room) -> None:
    """Stored once, and each gets what is its own."""
    room.join("gone", "awake", "busy")
    machine.run("agent", "rm", "gone", room=room.name).ok()
    waiting = room.wait("awake", "--json", "--timeout", "20")
    sent = machine.run("room", "send", "@gone @awake @busy hello", handle="avery", room=room.name).ok().out
    assert "@gone left" in sent
    assert "@awake woken" in sent
    assert "@busy queued" in sent
    message = waiting.ended().json["message"]
    assert states(message) == {"gone": "left", "awake": "woken", "busy": "queued"}
    assert room.contents() == ["@gone @awake @busy hello"]
    assert room.state(message, "gone") == "left"
    machine.run("agent", "create", "gone", room=room.name).ok()
    assert room.take("gone") is None
    assert room.take("busy") is not None


@requirement("delivery:states")
def test_answer_output_and_receipts_say_the_same(machine: Machine, room: Room) -> None:
    """Of every recipient, also of those who get nothing; and what became of it since."""
    room.join("queued", "silent", "gone", "me")
    room.api.delete(room.at("members", "gone"), handle="avery").ok(204)
    text = "@queued @~silent @gone @me @nobody-here"
    sent = machine.run("room", "send", text, "--allow-unknown", "--json", handle="me", room=room.name).json
    expected = {"queued": "queued", "silent": "silent", "gone": "left", "me": "self", "nobody-here": "unknown"}
    assert states(sent) == expected
    assert {handle: row["state"] for handle, row in room.receipts(sent).items()} == expected
    shown = machine.run("messages", "receipts", sent["id"][-8:], room=room.name).ok().out
    lines = {line.split()[0]: line for line in shown.splitlines()[1:]}
    assert set(lines) == {f"@{handle}" for handle in expected}
    assert all(expected[handle[1:]] in line for handle, line in lines.items())
    room.take("queued", session="s1")
    assert room.state(sent, "queued") == "delivered"
    room.take("queued", session="s2")
    assert room.state(sent, "queued") == "redelivered"
    again = machine.run("receipts", sent["id"][-8:], room=room.name).ok().out
    assert "redelivered, not acknowledged yet" in again
    room.take("queued", session="s2")
    receipt = room.receipts(sent)["queued"]
    assert (receipt["state"], receipt["deliveries"], receipt["session"]) == ("acknowledged", 2, "s2")


@requirement("delivery:states")
def test_a_parked_message_reads_parked(room: Room) -> None:
    """By the one who could not, and nobody gets it again."""
    room.join("sec")
    message = room.post("@sec one")
    turn = room.take("sec", session="s1")
    assert turn is not None
    body = {"handle": "sec", "ack": turn["ack"], "outcome": "parked"}
    room.api.post(room.at("ack"), body, handle="sec", session="s1").ok(204)
    assert room.state(message, "sec") == "parked"
    assert "parked" in room.machine.run("receipts", message["id"][-8:], room=room.name).ok().out
    assert room.take("sec", session="s2") is None
