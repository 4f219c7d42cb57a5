"""What became of tasks: nobody writes past the board that it was, and a room takes it along to another hub."""

from collections.abc import Callable
from functools import partial
from typing import Any

from e2e import bundle
from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.test_board_log import log
from e2e.test_board_pieces import deliveries, notices, rows
from e2e.test_memory import get
from e2e.waiting import until

TASK = "work/ship-it"


@requirement("board:edits")
def test_no_request_passes_for_what_a_move_wrote(room: Room, machine: Machine) -> None:
    """Whatever key, session or handle it comes with, by every way to write: it is an edit, and told as one."""
    room.join("sec", "bob")
    ways: dict[str, tuple[str, dict[str, Any] | None, str]] = {
        "put": ("PUT", {"value": "Done", "meta": {"status": "resolved"}}, "resolved"),
        "patch": ("PATCH", {"meta": {"status": "resolved"}}, "resolved"),
        "delete": ("DELETE", None, ""),  # told to the holder alone
    }
    for number, (way, (method, body, kind)) in enumerate(ways.items(), 1):
        key = f"work/{way}"
        where = room.at("memory", *key.split("/"))
        said = {"Idempotency-Key": f"move-{number}", "Mycelium-Session": "board:"}
        filed = {"value": "Do it", "meta": {"status": "open"}}
        room.api.ask("PUT", where, filed, handle="bob", headers=said).ok(201)
        until(partial(_is_told, room, f"filed {key} bob"), "a first write is a task")
        claim = room.api.post(room.at("tasks", key, "claim"), {}, handle="sec").ok(200).json
        said["Idempotency-Key"] = f"move-{claim['token']}"
        room.api.ask(method, where, body, handle="bob", headers=said).ok(204 if body is None else 200)
        if kind:
            until(partial(_is_told, room, f"{kind} {key} bob"), "it is told")
        assert deliveries(room, "sec", 1) == [("lease", key)]
        renewed = room.api.post(room.at("tasks", key, "renew"), {"token": claim["token"]}, handle="sec")
        assert renewed.status in {404, 409}, "whose task is over holds it no more"
    machine.run("memory", "set", "work/by-command", "x", "-r", room.name, "--key", "move-4", handle="bob").ok()
    until(lambda: "filed work/by-command bob" in notices(room), "a first write is a task")


@requirement("board:edits")
def test_no_key_keeps_a_move_from_its_document(room: Room) -> None:
    """Whoever uses up the keys that might be those of moves to come changes nothing."""
    room.join("sec")
    room.api.put(room.at("memory", *TASK.split("/")), {"value": "Ship it"}, handle="sec").ok(201)
    begin = room.api.post(room.at("tasks", TASK, "claim"), {}, handle="sec").ok(200).json["token"]
    for number in range(begin, begin + 60):
        key = {"Idempotency-Key": f"move-{number}"}
        room.api.ask("PUT", room.at("memory", "context", "x"), {"value": "x"}, handle="sec", headers=key)
    moved = room.api.post(room.at("tasks", TASK, "resolve"), {}, handle="sec").ok(200)
    assert moved
    assert rows(room)[TASK]["status"] == "resolved"
    assert get(room, TASK)["meta"]["status"] == "resolved"


@requirement("board:log:copies")
def test_the_log_of_a_room_that_was_brought_is_the_same(
    hub: Hub, room: Room, machine: Machine, unique: Callable[[str], str]
) -> None:
    """Each entry, at its time and of its maker: moves of every kind, edits that were moves, and a copy's copy."""
    room.join("sec", "builder")

    def run(handle: str, *words: str) -> None:
        machine.run(*words, "-r", room.name, handle=handle).ok()

    for title in ("Ship it", "Drop it", "Keep it"):
        run("avery", "board", "new", title)
    run("avery", "board", "new", "Where to", "--kind", "decision")
    run("sec", "board", "block", "ship-it", "--on", "#502")
    run("builder", "board", "claim", "ship-it")
    run("builder", "board", "resolve", "ship-it")
    run("builder", "board", "dismiss", "drop-it")
    run("sec", "board", "promote", "keep-it")
    run("avery", "board", "answer", "where-to", "north")
    for fields in ({"blocked_by": "#1"}, {"blocked_by": None}, {"status": "dismissed"}, {"status": "open"}):
        where = room.at("memory", "work", "by-hand")
        room.api.put(where, {"value": "By hand", "meta": fields}, handle="sec")
    whats = ["filed"] * 5 + ["blocked"] + ["unblocked"] * 2 + ["resolved", "promoted", "answered"]
    whats += ["dismissed"] * 2 + ["changed"]
    until(lambda: sorted(entry[2] for entry in _entries(room)) == sorted(whats), "the log has what the edits did")
    before, brought = _entries(room), room
    for number in range(2):
        packed = brought.api.get(brought.at("export"), handle="avery").ok(200).body
        brought = Room(hub.api, machine, bundle.bring(hub.api, packed, unique(f"copy{number}"))["name"])
        assert sorted(_entries(brought)) == sorted(before)
        assert log(brought)["items"][0]["resolved"] == log(room)["items"][0]["resolved"]


@requirement("board:listen")
def test_nobody_waits_for_a_task_that_is_over(room: Room, machine: Machine) -> None:
    """It is said at once; what was done to it since a moment that is named is told all the same."""
    room.join("sec", "bob")
    machine.run("board", "new", "Ship it", "-r", room.name, handle="sec").ok()
    token = room.api.post(room.at("tasks", TASK, "claim"), {}, handle="sec").ok(200).json["token"]
    machine.run("board", "resolve", "ship-it", "-r", room.name, handle="sec").ok()
    wait = machine.run("await", "--lease", "ship-it", "--timeout", "60", "-r", room.name, handle="bob")
    assert f"{TASK} is resolved, so it changes hands no more" in wait.failed(1).err
    asked = {"lease": TASK, "since": token, "timeout_s": 10}
    turn = room.api.post(room.at("await"), asked, handle="bob").ok(200).json
    assert turn["message"]["metadata"]["kind"] == "resolved"


@requirement("board:task")
def test_a_key_files_one_task(room: Room) -> None:
    """A repeat is answered with it; another title under the same key is refused."""
    files = [room.api.post(room.at("tasks"), {"title": title}, handle="avery", key="one") for title in ("A", "A", "B")]
    assert [reply.status for reply in files] == [201, 201, 422]
    assert (files[0].json["key"], files[2].json["slug"]) == (files[1].json["key"], "key.reused")
    assert len(rows(room)) == 1


def _entries(room: Room) -> list[tuple[str, ...]]:
    entries = [entry for day in log(room)["items"] for entry in day["entries"]]
    return [tuple(str(entry[name]) for name in ("at", "by", "what", "key", "thread", "title")) for entry in entries]


def _is_told(room: Room, line: str) -> bool:
    return line in notices(room)
