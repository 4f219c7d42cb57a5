"""`memory subscribe`: changes of memories live, and kept on the hub as deliveries."""

import json

from e2e.harness import Hub, Machine
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.waiting import until


def put(room: Room, key: str, value: str, handle: str = "julia") -> None:
    """Write over HTTP."""
    assert room.api.put(room.at("memory", *key.split("/")), {"value": value}, handle=handle).status in {200, 201}


def taken(room: Room, handle: str, session: str = "") -> Document:
    """The next delivery, which may be on its way."""
    found = room.take(handle, session or f"{handle}-session", timeout_s=20)
    assert found is not None
    return found


def is_open(follower: Background) -> bool:
    """Whether nothing is missed from now on."""
    return any("Ctrl-C ends it" in line for line in list(follower.err))


@requirement("memory:subscribe:live")
def test_a_subscriber_sees_each_change_as_it_happens(room: Room, machine: Machine) -> None:
    """When, which, who and what, never the text; what doesn't match, and messages, are passed over."""
    words = ["memory", "subscribe", "decision/*", "--room", room.name]
    shown = machine.start(*words, handle="my-agent")
    told = machine.start(*words, "--json", handle="my-agent")
    until(lambda: is_open(shown) and is_open(told), "both streams are open")
    room.post("hello")
    put(room, "decisions/other", "x")
    put(room, "decision/api/style", "the secret text")
    room.api.delete(room.at("memory", "decision", "api", "style"), handle="kim").ok(204)
    shown.line(lambda line: "removed" in line, "the removal is told")
    told.line(lambda line: "memory_removed" in line, "the removal is told")

    lines = [line.split(" · ")[1:] for line in shown.kill().out.splitlines()]
    assert lines == [
        ["decision/api/style", "version 1", "@julia", "written"],
        ["decision/api/style", "version 2", "@kim", "removed"],
    ]
    events = [json.loads(line) for line in told.kill().out.splitlines()]
    assert [(event["event"], event["data"]["version"]) for event in events] == [
        ("memory_written", 1),
        ("memory_removed", 2),
    ]
    assert "secret" not in json.dumps(events)


@requirement("memory:subscribe:wake")
def test_a_subscription_that_is_kept_wakes_its_handle(room: Room, machine: Machine) -> None:
    """One that waits, and one that was away; not by its own change; each change once, as a headline in its thread."""
    room.join("my-agent", "other")
    kept = machine.run("memory", "subscribe", "decision/*", "--wake", handle="my-agent", room=room.name).ok()
    assert kept.out.startswith(f"kept: changes of decision/* in {room.name} wake @my-agent\n")
    again = machine.run("memory", "subscribe", "decision/*", "--wake", handle="my-agent", room=room.name).ok()
    assert ", as before" in again.out
    assert "decision/* · @my-agent" in machine.run("memory", "subscribe", "--ls", handle="my-agent", room=room.name).out

    waiting = room.wait("my-agent", "--timeout", "30", "--json")
    room.until_waiting("my-agent", waiting)
    put(room, "notes/x", "x")
    put(room, "decision/db", "the secret text")
    turn = waiting.ended(30).ok().json
    message = turn["message"]
    assert (turn["reason"], turn["redelivered"]) == ("changed", False)
    assert (message["content"], message["sender_handle"]) == ("decision/db is now at version 1, by julia", "julia")
    assert message["metadata"] == {"key": "decision/db", "version": 1, "change": "written", "moved_from": None}
    thread = room.api.get(room.at("memory", "decision", "db")).ok(200).json["thread"]
    assert (message["message_type"], message["thread"], room.contents()) == ("change", thread, [])

    put(room, "decision/db", "mine", handle="my-agent")
    put(room, "decision/db", "theirs")
    room.api.delete(room.at("memory", "decision", "db"), handle="kim").ok(204)
    given = [taken(room, "my-agent")["message"]["content"] for _ in range(2)]
    assert sorted(given) == ["decision/db is now at version 3, by julia", "decision/db was removed, by kim"]
    assert room.take("my-agent", session="my-agent-session") is None

    off = machine.run("memory", "subscribe", "decision/*", "--wake", "--off", handle="my-agent", room=room.name).ok()
    assert off.out == f"ended: changes of decision/* in {room.name} wake @my-agent no more\n"
    put(room, "decision/db", "unheard")
    machine.run("memory", "subscribe", "context/", "--wake", handle="other", room=room.name).ok()
    put(room, "context/x", "x")
    assert taken(room, "other")["message"]["metadata"]["key"] == "context/x"
    assert room.take("my-agent", session="my-agent-session") is None


@requirement("memory:subscribe:refused")
def test_what_can_t_be_subscribed_is_refused(room: Room, machine: Machine) -> None:
    """By who is nobody there, of a private room, what was never kept; the refusal says what to do."""
    words = ["memory", "subscribe", "work/", "--wake"]
    nobody = machine.run(*words, handle="nobody", room=room.name)
    assert nobody.status == 4
    assert "mycelium agent create nobody" in nobody.err
    assert machine.run(*words, "--off", handle="nobody", room=room.name).status == 3
    assert machine.run("memory", "subscribe", room=room.name).status == 2
    room.api.patch(room.at(), {"private": True}, handle="avery").ok(200)
    for stranger in (machine.run(*words, handle="eve", room=room.name), machine.run(*words[:-1], room=room.name)):
        assert stranger.status == 3
        assert "Room not found" in stranger.err


@requirement("memory:subscribe:restart", "memory:subscribe:kept")
def test_a_subscriber_misses_nothing_while_the_hub_restarts(own_hub: Hub, own_room: Room) -> None:
    """Live and kept: each change once, right before and after a kill, and given again until it is acknowledged."""
    own_room.join("sec")
    own_room.api.put(own_room.at("subscriptions"), {"pattern": "work/*"}, handle="sec").ok(201)
    follower = own_room.machine.start("memory", "subscribe", "work/", "--room", own_room.name)
    until(lambda: is_open(follower), "the stream is open")
    put(own_room, "work/a", "one")
    put(own_room, "work/a", "two")
    own_hub.restart()
    put(own_room, "work/a", "three")
    put(own_room, "work/b", "x")
    follower.line(lambda line: "work/b" in line, "the last change is told")
    told = [line.split(" · ")[1:3] for line in follower.kill().out.splitlines()]
    assert told == [*(["work/a", f"version {version}"] for version in (1, 2, 3)), ["work/b", "version 1"]]

    given = [taken(own_room, "sec")["message"]["metadata"] for _ in range(4)]
    assert sorted((one["key"], one["version"]) for one in given) == [
        ("work/a", 1), ("work/a", 2), ("work/a", 3), ("work/b", 1),
    ]  # fmt: skip
    assert own_room.take("sec", session="sec-session") is None
    put(own_room, "work/c", "x")
    lost = taken(own_room, "sec", session="lost")
    again = taken(own_room, "sec", session="other")
    assert (again["message"]["id"], again["redelivered"]) == (lost["message"]["id"], True)
