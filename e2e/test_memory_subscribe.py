"""`memory subscribe`: changes of memories live, and kept on the hub as deliveries."""

import json

from e2e.harness import Hub, Machine
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until


def put(room: Room, key: str, value: str, handle: str = "julia") -> None:
    """Write over HTTP."""
    assert room.api.put(room.at("memory", *key.split("/")), {"value": value}, handle=handle).status in {200, 201}


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


@requirement("memory:subscribe:restart")
def test_a_subscriber_misses_nothing_while_the_hub_restarts(own_hub: Hub, own_room: Room) -> None:
    """Each change once, in order, whatever happened in between."""
    machine = own_room.machine
    follower = machine.start("memory", "subscribe", "work/", "--room", own_room.name)
    until(lambda: is_open(follower), "the stream is open")
    put(own_room, "work/a", "one")
    own_hub.restart()
    put(own_room, "work/a", "two")
    put(own_room, "work/b", "x")
    follower.line(lambda line: "work/b" in line, "the last change is told")
    told = [line.split(" · ")[1:3] for line in follower.kill().out.splitlines()]
    assert told == [["work/a", "version 1"], ["work/a", "version 2"], ["work/b", "version 1"]]
