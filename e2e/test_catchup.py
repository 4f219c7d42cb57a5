"""Catching up: who starts to work in a room learns at once what it has come to."""

import json

from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room


def put(room: Room, key: str, value: object, handle: str = "avery") -> None:
    """Write over HTTP."""
    assert room.api.put(room.at("memory", *key.split("/")), {"value": value}, handle=handle).status in {200, 201}


@requirement("memory:catchup", "memory:catchup:synthesis")
def test_who_starts_to_work_is_told_what_happened(room: Room, machine: Machine) -> None:
    """Before there is a synthesis, the last days; with one, what stands and what came after."""
    room.join("engineer")
    concern = room.post("the backup was never restored", message_type="event", metadata={"kind": "concern"})
    room.post("@engineer can you look?")
    put(room, "failed/memcached", "no improvement over Redis", handle="kim")
    told = machine.run("catchup", handle="engineer", room=room.name).ok().out
    assert told.startswith(f"{room.name} · no synthesis, so the last seven days (since ")
    assert f"\n1 message waits for you: mycelium await --room {room.name}\n" in told
    assert f"{concern['id'][-8:]} · concern · @avery, " in told
    assert "  failed/memcached · version 1 · @kim, " in told
    assert " · no improvement over Redis\n" in told
    assert told.index("the backup was never restored") < told.index("\n    @engineer can you look?\n")

    put(room, "context/synthesis", "# Where we are\n\nRedis it is.", handle="summarizer")
    put(room, "decision/cache", {"choice": "Redis"}, handle="engineer")
    machine.run("memory", "rm", "failed/memcached", handle="kim", room=room.name).ok()
    room.post("what is left to do?")
    told = machine.run("memory", "catchup", handle="engineer", room=room.name).ok().out
    assert told.startswith(f"{room.name} · since the synthesis of ")
    assert "\nsynthesis · version 1 · @summarizer, " in told
    assert "\n  # Where we are\n\n  Redis it is.\n" in told
    assert "  decision/cache · version 1 · @engineer, " in told
    assert "  failed/memcached · version 2, removed · @kim, " in told
    assert "can you look?" not in told
    assert told.endswith("\n    what is left to do?\n")


@requirement("memory:catchup")
def test_one_says_from_when_on_and_how_much(room: Room, machine: Machine) -> None:
    """The same over HTTP and by command; each part is bounded, and says how to see more."""
    for number in range(3):
        room.post(f"message {number}")
        put(room, f"notes/{number}", "x")
    words = ["catchup", "--since", "1d", "--limit", "2", "--room", room.name]
    shown = json.loads(machine.run(*words, "--json", handle="avery").ok().out)
    answered = room.api.get(room.at("catchup", since="1d", limit=2), handle="avery").ok(200).json
    assert shown | {"since": ""} == answered | {"since": ""}
    assert [one["content"] for one in shown["messages"]["items"]] == ["message 2", "message 1"]
    told = machine.run(*words, handle="avery").ok().out
    older = next(line.strip() for line in told.splitlines() if line.startswith("  older: mycelium "))
    page = machine.run(*older.removeprefix("older: mycelium ").split()).ok().out
    assert "message 0" in page
    assert "message 1" not in page
    assert f"  … mycelium catchup --room {room.name} --limit 100" in told
    wrong = machine.run("catchup", "--since", "soon", room=room.name)
    assert wrong.status == 2
    assert wrong.err.startswith("error: since is 'soon': use a time such as ")


@requirement("memory:catchup:private")
def test_a_private_room_is_caught_up_with_by_its_members_alone(room: Room, machine: Machine) -> None:
    """A stranger is told what is told of a room that is not there."""
    room.join("engineer")
    put(room, "context/synthesis", "secret")
    room.api.patch(room.at(), {"private": True}, handle="avery").ok(200)
    refused = machine.run("catchup", handle="eve", room=room.name)
    assert (refused.status, refused.out) == (3, "")
    assert refused.err.startswith(f"error: 404 Room not found: '{room.name}'")
    assert "secret" in machine.run("catchup", handle="engineer", room=room.name).ok().out


@requirement("memory:skill")
def test_the_skill_s_commands_work_as_it_writes_them(room: Room, machine: Machine) -> None:
    """Singular prefixes are keys like any other; values that are JSON stay so; lists by prefix; two names."""
    decision = '{"choice": "REST", "rationale": "simpler"}'
    machine.run("memory", "set", "decision/api-style", decision, "--handle", "my-agent", room=room.name).ok()
    machine.run("memory", "set", "results/cache-redis", "p99 fell by 40ms", "--handle", "my-agent", room=room.name).ok()
    value = room.api.get(room.at("memory", "decision", "api-style")).ok(200).json["value"]
    assert value == json.loads(decision)
    listed = machine.run("memory", "ls", "--prefix", "decision/", room=room.name).ok().out
    assert listed.startswith("decision/api-style · version 1 · @my-agent, ")
    assert decision.replace(" ", "") in listed.replace(" ", "")
    assert "results/" not in listed
    for words in (["catchup"], ["memory", "catchup"]):
        told = machine.run(*words, room=room.name).ok().out
        assert "  decision/api-style · version 1 · @my-agent, " in told
        assert " · p99 fell by 40ms\n" in told


@requirement("memory:skill")
def test_what_no_engine_does_yet_is_said_and_not_pretended(room: Room, machine: Machine) -> None:
    """By both names; nothing is written, no room is made; the line says what there is instead."""
    room.api.post(room.at("engines"), {"handle": "greeter", "kind": "hello"}, handle="avery").ok(201)
    said = f"error: no synthesizer is in {room.name}, and engines of that kind are not available yet. "
    for words in (["synthesize"], ["room", "synthesize"], ["room", "synthesize", room.name]):
        ran = machine.run(*words, room=room.name)
        assert (ran.status, ran.out, ran.err) == (3, "", f"{said}Next: mycelium catchup --room {room.name}\n")
    assert room.api.get(room.at("memory")).ok(200).json["items"] == []
    assert machine.run("synthesize", room="nowhere-at-all").err.startswith("error: 404 Room not found: ")

    made = machine.run("room", "create", f"{room.name}-review", "--trigger", "threshold:5", handle="avery")
    assert (made.status, made.out) == (2, "")
    assert made.err.endswith(f"no room was created. Next: mycelium room create {room.name}-review\n")
    room.api.get(f"/api/rooms/{room.name}-review").refused(404, "room.not_found")
