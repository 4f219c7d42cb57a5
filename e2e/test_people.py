"""Members, users, and who one is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.harness import Hub, Machine, free_port
from e2e.requirements import requirement
from e2e.room import Room
from e2e.web import path

Unique = Callable[[str], str]


@requirement("members:agent:record")
def test_an_agents_record_holds_what_it_was_given(machine: Machine, room: Room) -> None:
    """Registering it again changes what is given and keeps the rest."""
    words = [
        "--description",
        "Releases",
        "--cwd",
        "/srv/repo",
        "--adapter",
        "codex",
        "--owner",
        "avery",
        "--team",
        "core",
    ]
    made = machine.run(
        "agent", "create", "Release-Agent", *words, "--allow-from", "lead,ops", "--notes", "be brief", room=room.name
    ).ok()
    assert made.out == f"registered @release-agent in {room.name}\n"
    again = machine.run("agent", "create", "release-agent", "--description", "Ships", room=room.name).ok()
    assert again.out == f"updated @release-agent in {room.name}\n"
    shown = machine.run("agent", "show", "release-agent", "--json", room=room.name).json
    kept = {name: shown[name] for name in ("kind", "description", "cwd", "adapter", "owner", "team", "notes")}
    assert kept == {
        "kind": "agent", "description": "Ships", "cwd": "/srv/repo", "adapter": "codex",
        "owner": "avery", "team": "core", "notes": "be brief",
    }  # fmt: skip
    assert sorted(shown["allow_from"]) == ["lead", "ops"]
    assert (shown["last_seen"], shown["waiting"], shown["unread"]) == (None, False, 0)
    assert "Ships" in machine.run("agent", "show", "release-agent", room=room.name).ok().out


@requirement("members:agent:filters")
def test_agents_are_listed_by_owner_and_team(machine: Machine, room: Room) -> None:
    """Mine, my team's, all."""
    room.join("one", owner="avery", team="core")
    room.join("two", owner="avery", team="web")
    room.join("three", owner="quinn", team="core")

    def listed(*words: str) -> list[str]:
        rows = machine.run("agent", "ls", *words, "--json", room=room.name).json["items"]
        return sorted(row["handle"] for row in rows)

    assert listed() == ["one", "three", "two"]
    assert listed("--owner", "avery") == ["one", "two"]
    assert listed("--team", "core") == ["one", "three"]
    assert listed("--owner", "avery", "--team", "core") == ["one"]
    assert listed("--owner", "nobody") == []


@requirement("members:agent:removed")
def test_a_removed_agent_is_gone_and_its_words_stay(machine: Machine, room: Room) -> None:
    """It can come back later."""
    room.join("sec")
    room.post("my words", sender="sec")
    assert machine.run("agent", "rm", "sec", room=room.name).ok().out == f"removed @sec from {room.name}\n"
    gone = machine.run("agent", "show", "sec", room=room.name)
    assert (gone.status, "@sec" in gone.err or "sec" in gone.err) == (3, True)
    assert machine.run("agent", "rm", "sec", room=room.name).status == 3
    assert [message["sender_handle"] for message in room.page()["items"]] == ["sec"]
    machine.run("agent", "create", "sec", room=room.name).ok()
    assert room.member("sec")["handle"] == "sec"


@requirement("members:handles")
@pytest.mark.parametrize("handle", ["", "-a", "a b", "a/b", "ünï", "a.", "x" * 65, "hub", "system", "a#b"])
def test_bad_handles_are_refused(room: Room, handle: str) -> None:
    """ASCII, at most 64, no dot at the end; the hub's own names are its own."""
    reply = room.api.post(room.at("members"), {"handle": handle, "kind": "agent"}, handle="avery")
    reply.refused(422, "handle.invalid")


@requirement("members:handles")
def test_a_handle_is_the_same_in_any_case_and_with_its_sign(room: Room) -> None:
    """People write @Sec."""
    room.join("@Sec.Ops_1")
    assert room.member("SEC.ops_1")["handle"] == "sec.ops_1"
    reply = room.api.post(room.at("members"), {"handle": "sec.OPS_1", "kind": "agent"}, handle="avery")
    assert reply.ok(200).json["handle"] == "sec.ops_1"


@requirement("members:namespace")
def test_a_users_handle_can_not_be_an_agents(hub: Hub, machine: Machine, room: Room, unique: Unique) -> None:
    """Nobody posts under the name of a person by registering an agent."""
    handle = unique("pat")
    machine.run("user", "create", handle).ok()
    room.api.post(room.at("members"), {"handle": handle, "kind": "agent"}, handle="avery").refused(409, "handle.taken")
    agent = unique("bot")
    room.join(agent)
    hub.api.post(path("users"), {"handle": agent}, handle="avery").refused(409, "handle.taken")


@requirement("users:record")
def test_a_person_is_kept_once_with_the_agents_they_own(machine: Machine, room: Room, unique: Unique) -> None:
    """Across rooms."""
    handle = unique("quinn")
    made = machine.run("user", "create", handle, "--name", "Avery Quinn", "--team", "core").ok()
    assert made.out == f"added Avery Quinn (@{handle})\n"
    room.join("helper", owner=handle)
    shown = machine.run("user", "show", handle, "--json").json
    assert (shown["handle"], shown["name"], shown["team"]) == (handle, "Avery Quinn", "core")
    assert shown["agents"] == [{"room": room.name, "handle": "helper"}]
    listed = machine.run("user", "ls", "--json").json["items"]
    assert [row["name"] for row in listed if row["handle"] == handle] == ["Avery Quinn"]
    assert room.name in machine.run("user", "show", handle).ok().out
    nobody = machine.run("user", "show", "nobody-here")
    assert (nobody.status, "nobody-here" in nobody.err) == (3, True)


@requirement("users:taken")
def test_a_second_person_can_not_take_a_handle(machine: Machine, unique: Unique) -> None:
    """The first one's record stays."""
    handle = unique("sam")
    machine.run("user", "create", handle, "--name", "Sam One").ok()
    taken = machine.run("user", "create", handle, "--name", "Sam Two")
    assert (taken.status, handle in taken.err) == (1, True)
    assert machine.run("user", "show", handle, "--json").json["name"] == "Sam One"


@requirement("users:names")
def test_a_persons_name_stands_wherever_their_messages_do(machine: Machine, room: Room, unique: Unique) -> None:
    """In history, live and in what an agent gets; a new name applies to everything said before."""
    handle = unique("dana")
    machine.run("user", "create", handle, "--name", "Dana Old").ok()
    room.join("sec")
    with room.api.stream(room.at("stream")) as stream:
        machine.run("room", "send", "@sec hello", handle=handle, room=room.name).ok()
        assert stream.next("message").data["sender_name"] == "Dana Old"
    machine.run("iam", handle, "--name", "Dana New").ok()
    assert [message["sender_name"] for message in room.page()["items"]] == ["Dana New"]
    assert f"Dana New (@{handle})" in machine.run("room", "messages", room.name).ok().out
    turn = machine.run("await", "--timeout", "5", "--json", handle="sec", room=room.name).json
    assert turn["message"]["sender_name"] == "Dana New"
    room.post("no name here", sender="nobody")
    assert [message["sender_name"] for message in room.page(limit=1)["items"]] == [""]


@requirement("iam:hub")
def test_iam_sets_who_one_is_here_and_on_the_hub(machine: Machine, room: Room, unique: Unique) -> None:
    """Later commands act as that person."""
    handle = unique("avery")
    said = machine.run("iam", f"@{handle.title()}", "--name", "Avery Quinn", "--team", "core").ok()
    assert said.out == f"you are Avery Quinn (@{handle})\n"
    user = machine.run("user", "show", handle, "--json").json
    assert (user["name"], user["team"]) == ("Avery Quinn", "core")
    machine.run("room", "send", "hello", "--room", room.name).ok()
    assert room.page()["items"][0]["sender_handle"] == handle
    machine.run("iam", handle, "--team", "web").ok()
    user = machine.run("user", "show", handle, "--json").json
    assert (user["name"], user["team"]) == ("Avery Quinn", "web")
    assert "wins" in machine.run("iam", handle, env={"MYCELIUM_AGENT_HANDLE": "sec"}).ok().err


@requirement("iam:no-hub")
def test_iam_without_a_hub_is_set_here_and_says_so(tmp_path: Path) -> None:
    """The record can be saved later."""
    alone = Machine(tmp_path / "home", f"http://127.0.0.1:{free_port()}")
    said = alone.run("iam", "avery", "--name", "Avery Quinn")
    assert said.status == 0
    assert said.out == "you are @avery\n"
    assert "the user record was not saved" in said.err
    assert "mycelium iam avery" in said.err
    told = alone.run("whoami", "--json")
    assert (told.json["handle"], told.json["registered"]) == ("avery", None)


@requirement("whoami:sources")
def test_whoami_says_where_each_of_it_was_found(machine: Machine, room: Room, unique: Unique) -> None:
    """The environment wins over what was set on this machine, and both are named."""
    handle = unique("avery")
    machine.run("iam", handle, "--name", "Avery Quinn").ok()
    machine.run("room", "use", room.name).ok()
    told = machine.run("whoami", "--sources", "--json").json
    settings = str(machine.home / "config.toml")
    assert (told["handle"], told["room"], told["hub"]) == (handle, room.name, machine.url)
    assert (told["registered"], told["kind"], told["name"]) == (True, "user", "Avery Quinn")
    found = {name: told["sources"][name] for name in ("handle", "room", "hub")}
    assert found == {"handle": settings, "room": settings, "hub": "MYCELIUM_API_URL"}
    stranger = unique("stranger")
    told = machine.run("whoami", "--sources", "--json", handle=stranger, room="elsewhere").json
    assert (told["handle"], told["room"], told["registered"]) == (stranger, "elsewhere", False)
    assert told["sources"]["handle"] == "MYCELIUM_AGENT_HANDLE"
    assert told["sources"]["room"] == "MYCELIUM_ACTIVE_ROOM"
    assert "acting as Avery Quinn" in machine.run("whoami").ok().out
