"""`room clone`: a room as files of one's own, whole or not at all."""

import json
from collections.abc import Callable
from pathlib import Path

from e2e.crowd import ask_all, request
from e2e.harness import Machine
from e2e.requirements import requirement
from e2e.room import Room

Unique = Callable[[str], str]


def lines(file: Path) -> list[dict[str, object]]:
    """The documents of a file with one a line."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@requirement("rooms:clone")
def test_a_clone_is_the_whole_room_in_readable_files(machine: Machine, room: Room, tmp_path: Path) -> None:
    """Messages of the channel and threads, oldest first, as the hub has them and as text; members; the room."""
    room.join("sec", owner="avery", team="core")
    root = room.post("the first, with `code` and\n\nlines")
    room.post("in the thread", sender="sec", thread=root["id"])
    for first in range(0, 520, 130):
        texts = [f"talk {number}" for number in range(first, first + 130)]
        talk = [request(room.api.url, "POST", room.at("messages"), {"content": text}) for text in texts]
        assert {answer.status for answer in ask_all(room.api.url, talk)} == {201}
    room.post("an event", message_type="event", metadata={"kind": "action"})
    room.api.put(room.at("memory", "notes", "api"), {"value": "# API", "meta": {"a": 1}}, handle="sec").ok(201)
    cloned = machine.run("room", "clone", room.name, "--from", room.api.url, cwd=tmp_path).ok()
    assert cloned.out.startswith(f"cloned {room.name} to {tmp_path / room.name} (523 messages, 1 memories)")
    folder = tmp_path / room.name
    kept = lines(folder / "messages.jsonl")
    assert [message["content"] for message in kept][:2] == [root["content"], "in the thread"]
    assert len({message["content"] for message in kept}) == 523
    assert kept[0] == room.api.get(room.at("messages", root["id"])).json
    assert [message["seq"] for message in kept] == sorted(int(str(message["seq"])) for message in kept)
    text = (folder / "messages.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {room.name}\n")
    assert text.index("the first, with `code`") < text.index("in the thread") < text.index("an event")
    memory = (folder / "memory/notes/api.md").read_text(encoding="utf-8")
    assert memory.startswith("---\nkey: notes/api\nversion: 1\ncreated_by: sec\n")
    assert memory.endswith("\na: 1\n---\n\n# API\n")
    members = json.loads((folder / "members.json").read_text())
    assert [(row["handle"], row["team"]) for row in members] == [("sec", "core")]
    about = json.loads((folder / "room.json").read_text())
    assert (about["name"], about["cloned_from"]) == (room.name, room.api.url)


@requirement("rooms:clone")
def test_half_a_clone_is_never_seen(machine: Machine, room: Room, tmp_path: Path, unique: Unique) -> None:
    """A folder with something in it, a room that is not there, one that is not for you: nothing is made."""
    room.post("hello")
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("mine")
    refused = machine.run("room", "clone", room.name, str(taken), cwd=tmp_path)
    assert (refused.status, [file.name for file in taken.iterdir()]) == (2, ["mine.txt"])
    private = Room(room.api, machine, unique("hidden"), "owner").create(private=True)
    for name in (unique("absent"), private.name):
        missing = machine.run("room", "clone", name, handle="stranger", cwd=tmp_path)
        assert (missing.status, f"404 Room not found: '{name}'" in missing.err) == (3, True)
    machine.run("room", "clone", private.name, handle="owner", cwd=tmp_path).ok()
    assert {file.name for file in tmp_path.iterdir()} - {"client"} == {"taken", private.name}
