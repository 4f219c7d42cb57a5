"""Memory: written, read, listed and removed by command and over HTTP, each version of it, from any machine."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e import bundle, disk
from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.tree import Tree
from e2e.waiting import until
from e2e.web import Reply


def put(room: Room, key: str, value: object, handle: str = "avery", **fields: object) -> Reply:
    """Write over HTTP, whatever the answer."""
    return room.api.put(room.at("memory", *key.split("/")), {"value": value, **fields}, handle=handle)


def get(room: Room, key: str, **query: str | int | list[str]) -> Document:
    """Read over HTTP."""
    found: Document = room.api.get(room.at("memory", *key.split("/"), **query)).ok(200).json
    return found


@requirement("memory:set:get", "memory:fields:kept")
def test_what_one_machine_sets_another_gets(room: Room, machine: Machine) -> None:
    """Text, fields and tags; a later text leaves fields and tags as they are."""
    key = "decisions/storage"
    words = ["memory", "set", key, "Rooms are folders", "-t", "storage,core", "-m", "status=open", "-m", "owner=@julia"]
    assert machine.run(*words, handle="avery", room=room.name).ok().out == f"set {key} · version 1\n"
    again = machine.run("memory", "set", key, "Rooms are files", handle="engineer", room=room.name).ok()
    assert again.out.startswith(f"set {key} · version 2 · replaced version 1 by @avery, ")

    found = machine.run("memory", "get", key, room=room.name).ok()
    assert found.out == "Rooms are files\n"
    assert "version 2 · @engineer" in found.err
    shown = get(room, key)
    assert shown["meta"] == {"status": "open", "owner": "@julia"}
    assert (shown["tags"], shown["created_by"], shown["updated_by"]) == (["storage", "core"], "avery", "engineer")
    assert json.loads(machine.run("memory", "get", key, "--json", room=room.name).ok().out) == shown


@requirement("memory:raw")
def test_a_memory_is_shown_as_it_is_stored(room: Room, machine: Machine) -> None:
    """`get --raw`: fields and all, as a file has them; an older version as it was."""
    put(room, "notes/a", "one", meta={"owner": "@julia"}).ok(201)
    put(room, "notes/a", "two").ok(200)
    raw = machine.run("memory", "get", "notes/a", "--raw", room=room.name).ok().out
    assert raw.startswith("---\nkey: notes/a\nversion: 2\n")
    assert raw.endswith('owner: "@julia"\n---\n\ntwo\n')
    was = machine.run("memory", "get", "notes/a", "--raw", "--version", "1", "--json", room=room.name).ok().out
    assert json.loads(was)["raw"].endswith("---\n\none\n")


@requirement("memory:set:values")
def test_a_value_may_be_json(room: Room, machine: Machine, tmp_path: Path) -> None:
    """An object typed as one is stored as one; a file, a pipe and what only looks like JSON are as they are."""
    typed = '{"choice": "REST", "rationale": "simpler"}'
    machine.run("memory", "set", "decision/api-style", typed, handle="a", room=room.name).ok()
    assert get(room, "decision/api-style")["value"] == json.loads(typed)
    machine.run("memory", "set", "odd", "[not JSON", handle="a", room=room.name).ok()
    assert get(room, "odd")["value"] == "[not JSON"
    file = tmp_path / "notes.md"
    file.write_text("# Notes\n\n- one\n", encoding="utf-8")
    machine.run("memory", "set", "notes/one", "--file", str(file), handle="a", room=room.name).ok()
    machine.run("memory", "set", "notes/two", "-f", "-", stdin=b"piped\n", handle="a", room=room.name).ok()
    machine.run("memory", "set", "notes/three", "-", stdin=b"piped\n", handle="a", room=room.name).ok()
    values = [get(room, f"notes/{name}")["value"] for name in ("one", "two", "three")]
    assert values == ["# Notes\n\n- one\n", "piped", "piped"]


@requirement("memory:versions", "memory:as-of")
def test_every_version_can_be_read(room: Room, machine: Machine) -> None:
    """By number and by time, also of what was removed; the list as it was."""
    put(room, "status/deploy", "one").ok(201)
    put(room, "status/deploy", "two").ok(200)
    moment = get(room, "status/deploy")["updated_at"]
    until(lambda: put(room, "status/deploy", "three").json["updated_at"] > moment, "the clock moves on")
    machine.run("memory", "rm", "status/deploy", handle="kim", room=room.name).ok()

    history = machine.run("memory", "history", "status/deploy", room=room.name).ok().out.splitlines()
    assert history[1].split()[1] == "@kim"
    assert "(removed)" in history[1]
    assert [line.split()[-1] for line in history[-2:]] == ["two", "one"]
    was = ["memory", "get", "status/deploy"]
    assert machine.run(*was, "--version", "1", room=room.name).ok().out == "one\n"
    assert machine.run(*was, "--at", moment, room=room.name).ok().out == "two\n"
    assert machine.run(*was, room=room.name).status == 3
    assert "status/deploy" in machine.run("memory", "ls", "--at", moment, room=room.name).ok().out
    assert machine.run("memory", "ls", room=room.name).ok().out == "nothing there\n"
    gone = room.api.get(room.at("memory", "status", "deploy", at="1d"))
    gone.refused(404, "memory.version_not_found")


@requirement("memory:stale")
def test_of_two_writers_from_one_base_one_is_refused(room: Room, machine: Machine) -> None:
    """With the version that is there and its author; by flag, by header and by field."""
    put(room, "work/api", "base").ok(201)
    words = ["memory", "set", "work/api", "--expect", "1"]
    machine.run(*words, "mine", handle="kim", room=room.name).ok()
    lost = machine.run(*words, "yours", handle="avery", room=room.name)
    assert lost.status == 1
    assert "version 2, written by @kim" in lost.err
    target = room.at("memory", "work", "api")
    stale = room.api.put(target, {"value": "x"}, handle="avery", headers={"If-Match": '"1"'})
    problem = stale.refused(412, "memory.stale")
    assert (problem["version"], problem["updated_by"]) == (2, "kim")
    put(room, "work/api", "x", expect=0).refused(412, "memory.stale")
    assert put(room, "work/api", "x", expect=2).ok(200).json["replaced"]["updated_by"] == "kim"


@requirement("memory:stale")
def test_fifty_writers_race_and_one_wins_each_version(room: Room) -> None:
    """All expect the same; each version has one author, and the losers learn who."""
    put(room, "contested", "0").ok(201)
    for version in (1, 2, 3):
        with ThreadPoolExecutor(50) as pool:
            tries = [pool.submit(put, room, "contested", f"by {n}", f"w{n}", expect=version) for n in range(50)]
            replies = [one.result() for one in tries]
        won = [reply.json for reply in replies if reply.status == 200]
        assert len(won) == 1
        assert {reply.status for reply in replies} == {200, 412}
        assert {reply.json["updated_by"] for reply in replies} == {won[0]["updated_by"]}


@requirement("memory:thread")
def test_a_memory_is_discussed_in_its_own_thread(room: Room, machine: Machine) -> None:
    """By its key from the first version on; the channel is told that something was said, and not what."""
    put(room, "context/api-shape", "v1").ok(201)
    room.join("sec")
    with room.api.stream(room.at("stream")) as stream:
        words = ["board", "send", "context/api-shape", "@sec this predates the v2 routes"]
        assert "@sec queued" in machine.run(*words, handle="avery", room=room.name).ok().out
        ping = stream.next("ping").data
    thread = get(room, "context/api-shape")["thread"]
    assert (ping["thread"], ping["sender_handle"], "content" in ping) == (thread, "avery", False)
    assert room.contents() == []
    turn = room.take("sec", task="context/api-shape")
    assert turn is not None
    answer = room.api.post(room.at("respond"), {"content": "still true", "task": "context/api-shape"}, handle="sec")
    assert answer.ok(201).json["thread"] == thread
    read = machine.run("board", "messages", "context/api-shape", "--reverse", room=room.name).ok().out
    assert [line for line in read.splitlines() if line.startswith("  ")] == [
        "  @sec this predates the v2 routes", "  still true",
    ]  # fmt: skip
    put(room, "context/api-shape", "v2").ok(200)
    assert get(room, "context/api-shape")["thread"] == thread


@requirement("memory:thread")
def test_a_thread_can_t_be_set_or_guessed(room: Room) -> None:
    """Neither as a field nor by a key that nobody has; the near one is offered."""
    put(room, "context/api-shape", "x", thread="0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa").refused(422, "request.invalid")
    put(room, "context/api-shape", "x", meta={"thread": "x"}).refused(422, "memory.field_managed")
    put(room, "context/api-shape", "x").ok(201)
    refused = room.try_post("hi", thread="context/api-shap").refused(404, "thread.not_found")
    assert refused["near"] == ["context/api-shape"]


@requirement("memory:keys")
def test_keys_are_checked_before_anything_is_sent(machine: Machine) -> None:
    """Under the usual groups; in capitals they are lowered, with blanks refused, by a command without a hub."""
    alone = Machine(machine.home.parent / "alone", "http://127.0.0.1:9")
    for key in ("decisions/Why We Chose X", "work/-x", "status/ü", "context/a//b"):
        refused = alone.run("memory", "set", key, "text", handle="avery", room="demo")
        assert (refused.status, "can't be a key" in refused.err) == (2, True), refused.err


@requirement("memory:keys")
def test_keys_are_checked_on_the_hub(room: Room, machine: Machine) -> None:
    """Whatever sends them; two that a disk may take for one are never both there."""
    for key in ("work/Why%20We", "%2e%2e/x", "a//b", "a%00b", "con"):
        refused = room.api.put(f"{room.at('memory')}/{key}", {"value": "x"}, handle="avery")
        refused.refused(422, "memory.key_invalid")
    machine.run("memory", "set", "work/API-Server", "x", handle="avery", room=room.name).ok()
    assert get(room, "work/api-server")["key"] == "work/api-server"
    put(room, "notes/Alpha", "one").ok(201)
    taken = put(room, "notes/alpha", "two").refused(409, "memory.key_taken")
    assert taken["near"] == ["notes/Alpha"]
    put(room, "custom/Any Thing", "x").ok(201)
    put(room, "notes/caf\N{LATIN SMALL LETTER E WITH ACUTE}", "one").ok(201)
    other_form = put(room, "notes/cafe\N{COMBINING ACUTE ACCENT}", "two").ok(200).json
    assert (other_form["version"], other_form["key"]) == (2, "notes/café")


@requirement("memory:groups")
def test_groups_are_listed(room: Room, machine: Machine) -> None:
    """`ls` by prefix and by tag, and a command for each of the usual ones."""
    for key in ("work/a", "work/ab", "decisions/x", "failed/y"):
        put(room, key, f"text of {key}", tags=["odd"] if key.endswith("b") else []).ok(201)
    listed = machine.run("memory", "work", room=room.name).ok().out
    assert [line for line in listed.splitlines() if line.startswith("  ")] == ["  text of work/a", "  text of work/ab"]
    assert machine.run("memory", "ls", "failed/", room=room.name).ok().out.startswith("failed/y · version 1 · @avery")
    assert "work/ab" in machine.run("memory", "ls", "--tagged", "odd", room=room.name).ok().out
    shown = json.loads(machine.run("memory", "ls", "--prefix", "decisions/", "--json", room=room.name).ok().out)
    assert [item["value"] for item in shown["items"]] == ["text of decisions/x"]
    for group in ("decisions", "status", "context", "procedures"):
        put(room, f"{group}/one", f"{group} it is").ok(201)
        for words in (["--room", room.name], ["-r", room.name, "--json"]):
            told = machine.run("memory", group, *words).ok().out
            assert f"{group}/one" in told
            assert "work/a" not in told
        assert machine.run("memory", group, "--limit", "0", room=room.name).status == 2


@requirement("memory:refused")
@pytest.mark.parametrize(
    ("slug", "status", "body"),
    [
        ("content.too_large", 413, {"value": "x" * (512 * 1024 + 1)}),
        ("memory.field_managed", 422, {"value": "x", "meta": {"version": 7}}),
        ("memory.field_managed", 422, {"value": "x", "meta": {"thread": "another"}}),
        ("memory.tag_invalid", 422, {"value": "x", "tags": [str(n) for n in range(101)]}),
    ],
)
def test_what_can_t_be_kept_is_refused(room: Room, slug: str, status: int, body: Document) -> None:
    """With the reason, and nothing is written."""
    room.api.put(room.at("memory", "a"), body, handle="avery").refused(status, slug)
    assert room.api.get(room.at("memory")).ok(200).json["items"] == []


@requirement("memory:deleted-room")
def test_memory_goes_with_its_room(own_hub: Hub, own_room: Room) -> None:
    """From history and the next room of that name; no word of it is left in any file of the hub, whoever wrote it."""
    put(own_room, "notes/elderberry", "aubergine one", meta={"owner": "rambutan"}, tags=["mangosteen"]).ok(201)
    put(own_room, "notes/elderberry", "aubergine two, [[notes/carambola|durian]]").ok(200)
    put(own_room, "notes/physalis", {"choice": "tamarillo"}).ok(201)
    own_room.api.delete(own_room.at("memory", "notes", "physalis"), handle="avery").ok(204)
    tree = Tree(own_hub, own_room)
    opened = tree.until_same()["notes/elderberry.md"]
    put(own_room, "notes/elderberry", "aubergine three").ok(200)
    tree.until_same()
    tree.path("notes/elderberry").write_text(opened.replace("two", "salak"), encoding="utf-8")  # which meets a write
    tree.path("Feijoa").write_bytes(b"pitaya \xff")  # which is no document
    until(lambda: len(tree.problems()) == 2, "both are told")
    own_room.api.get(own_room.at("search", q="jabuticaba aubergine"), handle="avery").ok(200)
    own_room.api.delete(own_room.at(), handle="avery").ok(204)
    own_room.create()
    assert own_room.api.get(own_room.at("memory")).ok(200).json["items"] == []
    own_room.api.get(own_room.at("memory", "notes", "elderberry", version=1)).refused(404, "memory.not_found")

    words = ["elderberr", "aubergine", "rambutan", "mangosteen", "carambola", "durian", "physalis", "tamarillo"]
    words += ["salak", "eijoa", "pitaya", "jabuticaba"]  # stems, since an index may share beginnings or fold letters

    def held() -> list[tuple[str, str]]:
        return [(word, file) for word in words for file in disk.holders(own_hub.home, word)]

    try:
        until(lambda: not held(), "no file holds a word of it", 30.0)
    except AssertionError:
        raise AssertionError(str(held())) from None


@requirement("memory:transfer")
def test_memory_goes_with_its_room_to_another(own_hub: Hub, room: Room, unique: Callable[[str], str]) -> None:
    """In the room's own bundle: every version, its author and its thread; each says that it was imported."""
    for number, handle in enumerate(("avery", "kim", "sec")):
        put(room, "decisions/storage", f"version {number}", handle, tags=["t"]).ok(200 if number else 201)
    put(room, "failed/old", "x").ok(201)
    room.api.delete(room.at("memory", "failed", "old"), handle="kim").ok(204)
    body = room.api.get(room.at("export"), handle="avery").ok(200).body
    copy = Room(own_hub.api, room.machine, unique("copy"))
    bundle.bring(copy.api, body, copy.name)

    assert get(copy, "decisions/storage") == get(room, "decisions/storage")
    before, after = (get(one, "decisions/storage", view="versions") for one in (room, copy))
    assert after["items"] == [{**row, "origin": "import"} for row in before["items"]]
    assert get(copy, "decisions/storage", version=1)["value"] == "version 0"
    assert [row["updated_by"] for row in get(copy, "failed/old", view="versions")["items"]] == ["kim", "avery"]
    assert put(copy, "decisions/storage", "and on").ok(200).json["version"] == 4


@requirement("memory:survives")
def test_what_was_written_survives_a_kill(own_hub: Hub, own_room: Room) -> None:
    """The hub and everything in it: every acknowledged version is there after."""
    for number in range(20):
        put(own_room, f"k{number % 3}", str(number)).ok(200 if number > 2 else 201)
    own_hub.restart()
    assert [get(own_room, f"k{number}")["version"] for number in range(3)] == [7, 7, 6]
    versions = get(own_room, "k0", view="versions")["items"]
    assert [row["summary"] for row in versions] == ["18", "15", "12", "9", "6", "3", "0"]
