"""Rooms as a whole: making, listing, showing, using, naming, deleting them."""

from collections.abc import Callable

import pytest

from e2e.disk import holders
from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.waiting import until
from e2e.web import path

Unique = Callable[[str], str]

ALLOWED = [
    "CE-Area Team",
    "Zürich – Café № 4",
    "日本語の部屋",
    "a",
    "x" * 100,
    "50% off? (yes!) #1 & more",
    "-leading",
    "é" * 100,
]
REFUSED = ["", "   ", ".", "..", "a/b", "a\\b", "tab\there", "line\nbreak", "a:session:b", "x" * 101, "日" * 86, "\x7f"]


@requirement("rooms:create:answers")
def test_create_answers_with_the_room_and_the_next_step(machine: Machine, unique: Unique) -> None:
    """A new room is empty, and the answer says how to work in it."""
    name = unique("design review")
    made = machine.run("room", "create", name, "--title", "The design", handle="avery").ok()
    assert f"created room {name}" in made.out
    assert f"mycelium room use '{name}'" in made.out
    shown = machine.run("room", "show", name, "--json").json
    assert (shown["name"], shown["title"], shown["private"]) == (name, "The design", False)
    assert (shown["created_by"], shown["members"], shown["last_message_at"]) == ("avery", 0, None)


@requirement("rooms:create:name-rules")
@pytest.mark.parametrize("name", ALLOWED)
def test_names_of_people_are_allowed(hub: Hub, name: str) -> None:
    """Spaces, accents, other scripts and punctuation; the room is found by the name as it was written."""
    hub.api.post(path("rooms"), {"name": name}).ok(201)
    assert hub.api.get(path("rooms", name)).ok(200).json["name"] == name
    hub.api.delete(path("rooms", name)).ok(204)


@requirement("rooms:create:name-rules")
@pytest.mark.parametrize("name", REFUSED)
def test_bad_names_are_refused_with_the_reason(hub: Hub, name: str) -> None:
    """Names that could not be a folder, or would be too long for one."""
    hub.api.post(path("rooms"), {"name": name}).refused(422, "name.invalid")


@requirement("rooms:create:name-rules")
def test_the_command_line_says_why_a_name_is_refused(machine: Machine) -> None:
    """One line, exit status of a wrong value."""
    refused = machine.run("room", "create", "design/review")
    assert refused.status == 2
    assert "slash" in refused.err
    assert len(refused.err.splitlines()) == 1


@requirement("rooms:create:one-name-once")
def test_a_name_is_taken_in_any_case_and_any_encoding(hub: Hub, unique: Unique) -> None:
    """What looks the same is the same room."""
    name = unique("Café")
    hub.api.post(path("rooms"), {"name": name}).ok(201)
    for other in (name, name.upper(), name.replace("é", "e\N{COMBINING ACUTE ACCENT}"), f" {name} "):
        hub.api.post(path("rooms"), {"name": other}).refused(409, "room.name_taken")
    assert hub.api.get(path("rooms", name.replace("é", "e\N{COMBINING ACUTE ACCENT}"))).ok(200).json["name"] == name


@requirement("rooms:create:repeated")
def test_a_repeated_create_makes_one_room(hub: Hub, unique: Unique) -> None:
    """The retry of a client that saw no answer gets the first one."""
    name, key = unique("once"), unique("key")
    first = hub.api.post(path("rooms"), {"name": name}, handle="avery", key=key).ok(201).json
    again = hub.api.post(path("rooms"), {"name": name}, handle="avery", key=key).ok(201).json
    assert again == first
    hub.api.post(path("rooms"), {"name": name}, handle="avery", key=unique("key")).refused(409, "room.name_taken")


@requirement("rooms:ls:all")
def test_every_room_is_listed(machine: Machine, room: Room) -> None:
    """With its members, and a star on the one in use."""
    room.join("sec", "planner")
    stamp = room.post("hello")["created_at"]
    listed = machine.run("room", "ls", "--json").json
    mine = next(row for row in listed["items"] if row["name"] == room.name)
    assert (mine["members"], mine["last_message_at"], mine["private"]) == (2, stamp, False)
    shown = machine.run("room", "ls", room=room.name).ok().out
    assert next(line for line in shown.splitlines() if room.name in line).startswith("*")


@requirement("rooms:show:members")
def test_a_room_is_shown_with_who_waits_in_it(machine: Machine, room: Room) -> None:
    """Who is in it, and who listens right now."""
    room.join("sec", owner="avery", team="core")
    room.join("planner")
    room.wait("sec")
    shown = machine.run("room", "show", room.name, "--json").json
    members = {row["handle"]: row for row in shown["members_list"]}
    assert set(members) == {"sec", "planner"}
    assert (members["sec"]["waiting"], members["planner"]["waiting"]) == (True, False)
    text = machine.run("room", "show", room.name).ok().out
    line = next(line for line in text.splitlines() if line.startswith("@sec"))
    assert line.split()[:4] == ["@sec", "agent", "@avery", "core"]
    assert "waiting" in line


@requirement("rooms:use:active")
def test_the_room_in_use_is_where_commands_act(hub: Hub, machine: Machine, unique: Unique) -> None:
    """A setting of this machine; the environment wins over it, a flag over both."""
    first, second, third = (unique("use") for _ in range(3))
    for name in (first, second, third):
        hub.api.post(path("rooms"), {"name": name}).ok(201)
    machine.run("room", "use", first).ok()
    machine.run("room", "send", "one", handle="avery").ok()
    machine.run("room", "send", "two", handle="avery", room=second).ok()
    machine.run("room", "send", "three", "--room", third, handle="avery", room=second).ok()
    machine.run("room", "send", "four", handle="avery", env={"MYCELIUM_ROOM_ID": second}).ok()
    texts = {name: Room(hub.api, machine, name).contents() for name in (first, second, third)}
    assert texts == {first: ["one"], second: ["two", "four"], third: ["three"]}
    assert "wins" in machine.run("room", "use", first, room=second).ok().err


@requirement("rooms:missing:refused")
def test_a_missing_room_names_the_command_that_creates_it(machine: Machine, unique: Unique) -> None:
    """Exit status of a thing not found, the documented words, and what to type next."""
    name = unique("nowhere")
    for words in (("room", "show", name), ("room", "use", name), ("room", "messages", name), ("room", "delete", name)):
        missing = machine.run(*words)
        assert missing.status == 3
        assert "404 Room not found" in missing.err, missing.err
        assert f"mycelium room create {name}" in missing.err
    sent = machine.run("room", "send", "hello", handle="avery", room=name)
    assert (sent.status, f"mycelium room create {name}" in sent.err) == (3, True)


@requirement("rooms:missing:refused")
def test_without_a_room_a_command_says_how_to_name_one(machine: Machine) -> None:
    """The documented words."""
    lost = machine.run("room", "send", "hello", handle="avery")
    assert lost.status == 2
    assert "No room context found" in lost.err
    assert "mycelium room use" in lost.err


@requirement("rooms:title:changes")
def test_the_title_changes_and_the_name_does_not(room: Room) -> None:
    """Watchers are told."""
    with room.api.stream(room.at("stream")) as stream:
        changed = room.api.patch(room.at(), {"title": "Rätsel 7"}, handle="avery").ok(200).json
        assert (changed["title"], changed["name"]) == ("Rätsel 7", room.name)
        assert stream.next("room_changed").data["title"] == "Rätsel 7"
    room.api.patch(room.at(), {"name": "other"}, handle="avery").refused(422, "request.invalid")
    assert room.api.get(room.at()).json["title"] == "Rätsel 7"


@requirement("rooms:delete:all")
def test_a_deleted_room_is_gone_with_all_that_was_in_it(machine: Machine, room: Room) -> None:
    """Its messages and members can't be reached any more, and a room of the same name begins empty."""
    room.join("sec")
    first = room.post("@sec the old text")
    assert machine.run("room", "delete", room.name, "--yes").ok().out == f"deleted {room.name}\n"
    for target in (room.at(), room.at("messages"), room.at("messages", first["id"]), room.at("members", "sec")):
        room.api.get(target).refused(404, "room.not_found")
    room.try_post("hello").refused(404, "room.not_found")
    assert room.name not in machine.run("room", "ls").ok().out
    room.create()
    assert (room.contents(), room.api.get(room.at()).json["members_list"]) == ([], [])
    room.api.get(room.at("messages", first["id"])).refused(404, "message.not_found")
    room.join("sec")
    assert room.take("sec") is None


@requirement("rooms:delete:all")
def test_deleting_the_room_in_use_leaves_none_in_use(machine: Machine, room: Room) -> None:
    """A later command does not act in a room that is gone."""
    machine.run("room", "use", room.name).ok()
    machine.run("room", "delete", room.name, "--yes").ok()
    assert "No room context found" in machine.run("room", "messages").err


@requirement("rooms:delete:watchers")
def test_watchers_and_waiters_of_a_deleted_room_are_told(machine: Machine, room: Room) -> None:
    """Nobody waits for ever in a room that is gone."""
    room.join("sec")
    waiting = room.wait("sec")
    with room.api.stream(room.at("stream")) as stream:
        machine.run("room", "delete", room.name, "--yes").ok()
        assert stream.next("room_deleted").data["room"] == room.name
    ended = waiting.ended()
    assert (ended.status, "was deleted while you waited" in ended.err) == (3, True), ended


@requirement("rooms:delete:disk")
def test_texts_of_a_deleted_room_leave_the_disk(own_hub: Hub, own_room: Room) -> None:
    """Not in the log, not in the tables, not in what a database leaves in its free pages."""
    secret = "xyzzy-plugh-4711"
    own_room.join("sec", notes=secret)
    for number in range(20):
        own_room.post(f"@sec {secret} {number}")
    keeper = Room(own_hub.api, own_room.machine, "keeper").create()
    keeper.post("this one stays")
    own_room.api.delete(own_room.at(), handle="avery").ok(204)

    try:
        until(lambda: not holders(own_hub.home, secret), "no file holds the text", 20)
    except AssertionError:
        raise AssertionError(f"still on disk: {holders(own_hub.home, secret)}") from None
    assert keeper.contents() == ["this one stays"]
