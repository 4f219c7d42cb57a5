"""Tasks in order, in parts, handed over, edited by hand: what waits for what, who is told, what a copy takes along."""

import json
from collections.abc import Callable
from pathlib import Path

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.test_memory import get, put
from e2e.tree import Tree
from e2e.waiting import until

Unique = Callable[[str], str]


def rows(room: Room, which: str = "all") -> dict[str, Document]:
    """The board, by key."""
    page = room.api.get(room.at("board", filter=which), handle=room.owner).ok(200).json
    return {row["key"]: row for row in page["items"]}


def notices(room: Room) -> list[str]:
    """What the channel tells of tasks, the oldest first, each as `kind key by`."""
    items = reversed(room.page(limit=500)["items"])
    said = [(item["metadata"], item["sender_handle"]) for item in items if item["message_type"] == "notice"]
    return [f"{told['kind']} {told['task']} {by}".strip() for told, by in said]


def until_told(room: Room, *wanted: str) -> None:
    """Until the channel has told this of tasks, and nothing else, in any order."""
    until(lambda: sorted(notices(room)) == sorted(wanted), f"{wanted} of {notices(room)}")


def deliveries(room: Room, handle: str, number: int) -> list[tuple[str, str]]:
    """What a handle is given of tasks, so many and no more: why, and the task."""
    found: list[tuple[str, str]] = []
    while len(found) < number:
        turn = room.take(handle, timeout_s=10)
        assert turn, f"@{handle} was given {found}"
        found.append((turn["reason"], turn["message"]["metadata"]["task"]))
    assert room.take(handle) is None
    return found


@requirement("board:depends", "board:notices")
def test_a_pipeline_goes_on_as_its_pieces_are_closed(room: Room, machine: Machine) -> None:
    """Waiting is shown with its reason; the end of it is told once; a note is a reference; a part shows its parent."""
    room.join("sec", "bob")

    def run(*words: str, handle: str = "avery") -> str:
        return machine.run(*words, "-r", room.name, handle=handle).ok().out

    run("board", "new", "Ship it")
    run("board", "new", "Write the migration", "--parent", "work/ship-it", "--assign", "@sec")
    run("memory", "set", "work/run-the-migration", "Run it", "--meta", "depends-on=work/write-the-migration")
    run("memory", "set", "work/read", "Read", "--meta", "depends-on=context/note, work/nothing")
    put(room, "context/note", "A note").ok(201)
    shown = rows(room)
    waiting, epic = shown["work/run-the-migration"], shown["work/ship-it"]
    assert (waiting["ready"], waiting["reason"]) == (False, "after work/write-the-migration")
    assert (shown["work/read"]["ready"], epic["parts"]) == (True, ["work/write-the-migration"])
    assert shown["work/write-the-migration"]["parent"] == "work/ship-it"
    assert "after work/write-the-migration" in run("board", "--filter", "all")
    assert set(rows(room, "ready")) == {"work/ship-it", "work/write-the-migration", "work/read"}
    run("board", "block", "ship-it", "--on", "#502")
    run("board", "claim", "write-the-migration", handle="sec")
    run("board", "resolve", "write-the-migration", "--note", "done", handle="sec")
    until_told(
        room, "filed work/ship-it avery", "filed work/write-the-migration avery", "filed work/read avery",
        "filed work/run-the-migration avery", "blocked work/ship-it avery", "claimed work/write-the-migration sec",
        "resolved work/write-the-migration sec", "unblocked work/run-the-migration sec",
    )  # fmt: skip
    assert rows(room)["work/run-the-migration"]["ready"]
    assert deliveries(room, "sec", 1) == [("assigned", "work/write-the-migration")]
    assert room.take("bob") is None, "notices wake nobody"


@requirement("board:cycles")
def test_no_cycle_stops_anybody(room: Room) -> None:
    """Over what they depend on and what they are parts of: it is named on its rows, and each can be begun."""
    put(room, "work/parent", "x", meta={"depends-on": "[[work/other]]"}).ok(201)
    put(room, "work/part", "x", meta={"part-of": "parent", "depends-on": ["work/parent"]}).ok(201)
    put(room, "work/other", "x", meta={"depends-on": "work/part"}).ok(201)
    shown = rows(room)
    assert [shown[f"work/{name}"]["ready"] for name in ("parent", "part", "other")] == [True] * 3
    assert set(shown["work/other"]["cycle"]) == {"work/other", "work/part", "work/parent"}
    put(room, "work/other", "x", meta={"depends-on": None}).ok(200)
    assert rows(room)["work/parent"]["reason"] == "after work/other"
    room.api.delete(room.at("memory", "work", "other"), handle="avery").ok(204)
    assert rows(room)["work/parent"]["ready"], "what is not there is a reference"


@requirement("board:handover")
def test_a_task_is_handed_on(room: Room, machine: Machine) -> None:
    """`--to` gives the token with the first claim; anybody resolves, and its holder is told; whom it is for stays."""
    room.join("sec", "bob")

    def run(handle: str, *words: str) -> str:
        return machine.run("board", *words, "-r", room.name, handle=handle).ok().out

    run("avery", "new", "Storage", "--assign", "@bob")
    assert deliveries(room, "bob", 1) == [("assigned", "work/storage")]
    run("bob", "claim", "storage")
    assert "taken from @bob" in run("bob", "claim", "storage", "--to", "@sec", "--ttl", "60")
    held = rows(room)["work/storage"]
    assert (held["holder"], held["assignee"]) == ("sec", "bob")
    assert deliveries(room, "sec", 1) == [("assigned", "work/storage")]
    refused = machine.run("board", "claim", "storage", "-r", room.name, handle="bob").failed(1)
    assert "is held by @sec until " in refused.err
    run("sec", "claim", "storage")
    run("sec", "renew", "storage")
    run("sec", "release", "storage", "--note", "schema is settled")
    assert (rows(room)["work/storage"]["holder"], rows(room)["work/storage"]["assignee"]) == (None, "bob")
    run("sec", "claim", "storage")
    run("bob", "resolve", "storage")
    assert deliveries(room, "sec", 1) == [("lease", "work/storage")]
    told = next(item for item in room.page()["items"] if "schema is settled" in item["content"])
    assert (told["metadata"]["kind"], told["metadata"]["by"]) == ("released", "sec")


@requirement("board:edits")
def test_editing_the_file_edits_the_task(hub: Hub, room: Room, machine: Machine) -> None:
    """A file by hand is a task with a thread of its own; its fields are the task's; closing it ends the claim."""
    room.join("sec")
    tree = Tree(hub, room)
    for folder in ("work", "decisions", "status", "failed"):
        (tree.folder / folder).mkdir(exist_ok=True)
        (tree.folder / folder / "by-hand.md").write_text(f"# In {folder}\n", encoding="utf-8")
    keys = [f"{folder}/by-hand" for folder in ("work", "decisions", "status", "failed")]
    until(lambda: set(rows(room)) == set(keys), "each is a task")
    shown = rows(room)
    threads = {row["thread"] for row in shown.values()}
    assert (len(threads), [shown[key]["kind"] for key in keys]) == (4, ["task", "decision", "status", "failed"])
    until_told(room, *(f"filed {key} filesystem" for key in keys))
    thread = shown["work/by-hand"]["thread"]
    refused = put(room, "work/by-hand", "x", meta={"thread": thread})
    assert (refused.status, refused.json["slug"]) == (422, "memory.field_managed")
    machine.run("board", "claim", "work/by-hand", "-r", room.name, handle="sec").ok()
    file = tree.path("work/by-hand")
    until(lambda: "thread: " in file.read_text(encoding="utf-8"), "the hub has written the file")
    text = file.read_text(encoding="utf-8").replace(thread, "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa")
    file.write_text(text.replace("\n---\n", "\ntitle: Renamed\nstatus: resolved\nassignee: '@sec'\n---\n", 1), "utf-8")
    until(lambda: rows(room)["work/by-hand"]["status"] == "resolved", "the edit closes it")
    row = rows(room)["work/by-hand"]
    assert (row["title"], row["assignee"], row["thread"]) == ("Renamed", "sec", thread)
    until(lambda: rows(room)["work/by-hand"]["holder"] is None, "the claim ends with it")
    assert sorted(deliveries(room, "sec", 2)) == [("assigned", "work/by-hand"), ("lease", "work/by-hand")]


@requirement("board:gate")
def test_the_gate_refuses_to_claim_what_waits(new_hub: Hub, tmp_path: Path) -> None:
    """Once it is set, by any of its names; what it waits for is said; `--force` claims it anyway."""
    new_hub.env["BOARD_DEPENDENCY_GATE"] = "true"
    new_hub.start()
    room = Room(new_hub.api, Machine(tmp_path / "client", new_hub.url), "demo").create()
    room.join("sec")

    def run(*words: str) -> str:
        return room.machine.run("board", *words, "-r", room.name, handle="sec").ok().out

    run("new", "First")
    put(room, "work/second", "x", meta={"depends-on": "first"}).ok(201)
    refused = room.machine.run("board", "claim", "second", "-r", room.name, "--json", handle="sec").failed(1)
    said = json.loads(refused.err)
    assert (said["slug"], said["waits_for"]) == ("task.waiting", ["work/first"])
    assert said["next"] == "mycelium board claim work/second --room demo --force"
    run("claim", "second", "--force")
    run("release", "second")
    run("resolve", "first")
    run("claim", "second")


@requirement("board:travels")
def test_a_copy_of_a_room_takes_its_tasks_and_no_claims(
    room: Room, machine: Machine, unique: Unique, tmp_path: Path
) -> None:
    """On a hub again: threads with what was said, what waits for what, parts; whoever held one holds none there."""
    room.join("sec")

    def run(*words: str) -> str:
        return machine.run(*words, "-r", room.name, handle="sec").ok().out

    run("board", "new", "First", "--assign", "@sec")
    run("board", "new", "Part", "--parent", "first")
    run("memory", "set", "work/second", "x", "--meta", "depends-on=work/first")
    run("board", "send", "first", "keychain, or WebCrypto?")
    run("board", "claim", "first")
    before = rows(room)
    name, bundle = unique("copy"), tmp_path / "room.gz"
    machine.run("room", "export", room.name, "-o", str(bundle), handle="avery").ok()
    machine.run("room", "import", str(bundle), "--name", name, handle="avery").ok()
    copy = Room(room.api, machine, name)
    after = rows(copy)
    assert [row["holder"] for row in after.values()] == [None] * 3
    assert (after["work/second"]["reason"], after["work/first"]["parts"]) == ("after work/first", ["work/part"])
    assert [row["thread"] for row in after.values()] == [before[key]["thread"] for key in after]
    assert "keychain" in machine.run("board", "messages", "first", "-r", name).ok().out
    machine.run("board", "claim", "first", "-r", name, handle="sec").ok()
    assert rows(copy)["work/first"]["holder"] == "sec"
    assert len([one for one in notices(copy) if one.startswith("filed")]) == 3, "nothing is filed anew"
    cloned = tmp_path / "cloned"
    machine.run("room", "clone", room.name, str(cloned), handle="avery").ok()
    assert "depends-on: work/first" in (cloned / "memory/work/second.md").read_text(encoding="utf-8")
    machine.run("room", "delete", name, "--yes", handle="avery").ok()
    assert machine.run("board", "-r", name, handle="avery").failed(3)
    assert rows(room)["work/first"]["holder"] == "sec"


@requirement("board:edits")
def test_a_task_once_named_is_the_same_for_ever(room: Room) -> None:
    """Removed and written again, it is filed again, in its own thread; nobody holds it."""
    room.join("sec")
    put(room, "work/x", "one").ok(201)
    thread = rows(room)["work/x"]["thread"]
    room.api.post(room.at("tasks", "x", "claim"), {}, handle="sec").ok(200)
    room.api.delete(room.at("memory", "work", "x"), handle="avery").ok(204)
    assert rows(room) == {}
    assert deliveries(room, "sec", 1) == [("lease", "work/x")]
    put(room, "work/x", "two").ok(201)
    row = rows(room)["work/x"]
    assert (row["thread"], row["holder"]) == (thread, None)
    until_told(room, "filed work/x avery", "claimed work/x sec", "filed work/x avery")
    assert get(room, "work/x")["version"] == 3
