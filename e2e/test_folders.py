"""Folders: how one person's list of rooms looks to that person."""

from collections.abc import Callable

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.web import path

Unique = Callable[[str], str]


def folders(room: Room, handle: str) -> tuple[str, str]:
    """The folder of a room for one person: in the list, and in the room itself."""
    listed = room.api.get(path("rooms"), handle=handle).ok(200).json["items"]
    row = next(row for row in listed if row["name"] == room.name)
    return row["folder"], room.api.get(room.at(), handle=handle).ok(200).json["folder"]


@requirement("rooms:folders")
def test_a_folder_is_one_persons_own(room: Room, unique: Unique) -> None:
    """Nobody else sees it, nobody is told, and the room is the same."""
    mine, other = unique("mine"), unique("other")
    before = room.api.get(room.at()).json
    with room.api.stream(room.at("stream")) as stream:
        answer = room.api.patch(room.at(), {"folder": "clients"}, handle=mine).ok(200).json
        assert answer["folder"] == "clients"
        room.post("the next event")
        assert stream.next().type == "message"
    assert folders(room, mine) == ("clients", "clients")
    assert folders(room, other) == ("", "")
    room.api.patch(room.at(), {"folder": "Ünï & co"}, handle=other).ok(200)
    assert (folders(room, mine)[0], folders(room, other)[0]) == ("clients", "Ünï & co")
    room.api.patch(room.at(), {"folder": ""}, handle=mine).ok(200)
    assert folders(room, mine) == ("", "")
    after = room.api.get(room.at()).json
    assert {**after, "last_message_at": None} == {**before, "last_message_at": None}


@requirement("rooms:folders")
def test_a_folder_belongs_to_somebody(room: Room) -> None:
    """Without a handle there is nobody to keep it for; a name has bounds."""
    room.api.patch(room.at(), {"folder": "clients"}).refused(422, "handle.missing")
    for wrong in ("x" * 300, "a\nb", "a\0b"):
        assert room.api.patch(room.at(), {"folder": wrong}, handle="avery").status == 422


@requirement("rooms:folders")
def test_folders_group_the_list(machine: Machine, room: Room, unique: Unique) -> None:
    """By command; the other machine of the same person shows the same, since the hub keeps them."""
    mine, folder = unique("mine"), unique("clients")
    machine.run("room", "set", room.name, "--folder", folder, handle=mine).ok()
    listed = machine.run("room", "ls", handle=mine).ok().out.splitlines()
    start = listed.index(f"{folder}/")
    assert room.name in listed[start + 1]
    assert f"{folder}/" not in machine.run("room", "ls", handle=unique("other")).ok().out
    machine.run("room", "set", room.name, "--folder", "", handle=mine).ok()
    assert f"{folder}/" not in machine.run("room", "ls", handle=mine).ok().out


@requirement("rooms:folders")
def test_folders_survive_the_hub_and_go_with_the_room(own_hub: Hub, own_room: Room) -> None:
    """A new room of the same name is in no folder."""
    own_room.api.patch(own_room.at(), {"folder": "clients"}, handle="avery").ok(200)
    own_hub.restart()
    assert folders(own_room, "avery") == ("clients", "clients")
    own_room.api.delete(own_room.at(), handle="avery").ok(204)
    own_room.create()
    assert folders(own_room, "avery") == ("", "")
