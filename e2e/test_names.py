"""Names and texts at the edges: two encodings, bytes and characters, names that begin alike, the largest text."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room, states
from e2e.waiting import until
from e2e.web import path

Unique = Callable[[str], str]


@requirement("rooms:create:one-name-once")
def test_cafe_in_two_encodings_is_one_room(machine: Machine, unique: Unique) -> None:
    """Made in one, used in the other, on the command line too; shown as NFC."""
    composed = unicodedata.normalize("NFC", unique("café"))
    taken_apart = unicodedata.normalize("NFD", composed)
    assert composed != taken_apart
    machine.run("room", "create", taken_apart, handle="avery").ok()
    assert machine.run("room", "create", composed, handle="avery").status == 1
    machine.run("room", "send", "hello", handle="avery", room=taken_apart).ok()
    page = machine.run("room", "messages", composed, "--json").json
    assert [(message["room"], message["content"]) for message in page["items"]] == [(composed, "hello")]


@requirement("rooms:create:bytes")
def test_a_hundred_ideographs_are_too_many_bytes(machine: Machine) -> None:
    """Although they are a hundred characters; the line says bytes."""
    refused = machine.run("room", "create", "部" * 100, handle="avery")
    assert (refused.status, "bytes" in refused.err, "300" in refused.err) == (2, True, True), refused
    machine.run("room", "create", "部" * 85, handle="avery").ok()
    machine.run("room", "delete", "部" * 85, "--yes", handle="avery").ok()


@requirement("rooms:delete:neighbours")
def test_deleting_a_leaves_ab(own_hub: Hub, own_room: Room) -> None:
    """Its messages, members, unread and folder; nothing that begins alike is the same."""
    short, long = (Room(own_hub.api, own_room.machine, name).create() for name in ("a", "ab"))
    for one in (short, long):
        one.join("sec")
        one.post(f"@sec in {one.name}")
    short.api.delete(short.at(), handle="avery").ok(204)
    assert long.contents() == ["@sec in ab"]
    assert long.member("sec")["unread"] == 1
    short.create()
    assert short.contents() == []
    own_hub.restart()
    assert (short.contents(), long.contents()) == ([], ["@sec in ab"])
    turn = long.take("sec")
    assert turn is not None
    assert turn["message"]["content"] == "@sec in ab"


@requirement("rooms:disk", "rooms:delete:neighbours")
def test_a_rooms_folders_come_and_go_with_it(hub: Hub, machine: Machine, unique: Unique) -> None:
    """The documented ones; of a name with spaces and accents too; its neighbour's stay."""
    root = hub.home / "rooms"
    documented = {"decisions", "context", "status", "work", "procedures", "log", "failed"}

    def whole(name: str) -> bool:
        place: Path = root / name
        return place.is_dir() and {child.name for child in place.iterdir()} >= documented

    short = unique("a")
    names = (short, f"{short}b", unique("CE-Area Café"))
    rooms = [Room(hub.api, machine, name).create() for name in names]
    until(lambda: all(map(whole, names)), "each has its folders")
    rooms[0].api.delete(rooms[0].at(), handle="avery").ok(204)
    until(lambda: not (root / short).exists(), "the folder goes with the room")
    assert whole(names[1])


@requirement("messages:size:whole")
def test_a_text_of_256_kb_of_emoji_is_whole(machine: Machine, room: Room) -> None:
    """Through a pipe, in history, live and to whom it is for; a byte more is refused."""
    room.join("sec")
    text = "@sec" + "🚀" * ((256 * 1024 - 4) // 4)
    assert len(text.encode()) == 256 * 1024
    with room.api.stream(room.at("stream")) as stream:
        machine.run("room", "send", "-", handle="avery", room=room.name, stdin=text.encode()).ok()
        assert stream.next("message").data["content"] == text
    assert room.contents() == [text]
    turn = machine.run("await", "--timeout", "5", "--json", handle="sec", room=room.name).json
    assert turn["message"]["content"] == text
    room.try_post(text + "x").refused(413, "content.too_large")


@requirement("mentions:amended")
def test_a_newly_named_member_gets_an_amended_text_once(room: Room) -> None:
    """However often it is amended after that, and whoever was named before."""
    room.join("a", "b")
    message = room.post("@b please")
    waiting = room.wait("a", "--json", "--timeout", "20", session="s1")
    target = room.at("messages", message["id"])
    amended = room.api.patch(target, {"content": "@a @b please"}, handle="avery").ok(200).json
    assert states(amended)["a"] in {"woken", "queued"}
    assert waiting.ended().json["message"]["content"] == "@a @b please"
    room.api.patch(target, {"content": "@a @b please, today"}, handle="avery").ok(200)
    assert room.take("a", session="s1") is None
    turn = room.take("b")
    assert turn is not None
    assert turn["message"]["content"] == "@a @b please, today"
    assert room.take("b") is None


@requirement("rooms:create:one-name-once")
def test_a_room_is_found_by_its_id_too(hub: Hub, room: Room) -> None:
    """Which never changes; an id of no room is none."""
    found = hub.api.get(room.at()).ok(200).json
    assert hub.api.get(path("rooms", found["id"])).ok(200).json["name"] == room.name
    hub.api.get(path("rooms", found["id"][:-4] + "0000")).refused(404, "room.not_found")
