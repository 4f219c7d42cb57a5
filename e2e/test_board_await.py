"""Taking part in a task: listening to it, waiting until it changes hands, keeping claims, bringing an engine in."""

import json
from datetime import datetime, timedelta
from pathlib import Path

from e2e.harness import Hub, Machine
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Document, Room, states
from e2e.test_loop import script
from e2e.waiting import until

NOTICE_S = 15.0


def do(room: Room, *words: str, handle: str = "sec") -> str:
    """A command of the board that goes well."""
    return room.machine.run("board", *words, "-r", room.name, handle=handle).ok().out


def row(room: Room, key: str) -> Document:
    """A row of the board."""
    page = room.api.get(room.at("board", filter="all"), handle=room.owner).ok(200).json
    found: Document = next(item for item in page["items"] if item["key"] == key)
    return found


def kinds(lines: list[str]) -> list[str]:
    """What a `--loop --json` has told of tasks so far."""
    return [json.loads(line)["message"]["metadata"]["kind"] for line in lines]


def woken(waiting: Background) -> str:
    """What a wait for a task ended with."""
    turn = waiting.ended().json
    assert (turn["reason"], turn["earlier"], turn["message"]["message_type"]) == ("lease", [], "notice")
    return str(turn["message"]["metadata"]["kind"])


def told(room: Room, kind: str) -> None:
    """Until the channel's newest line is of that kind."""
    until(lambda: room.page(limit=1)["items"][0]["metadata"].get("kind") == kind, f"{kind} is told", NOTICE_S)


@requirement("board:listen", "await:task")
def test_an_agent_listens_to_one_task(room: Room, machine: Machine) -> None:
    """By every name that a task has; what is sent elsewhere is told `queued` and comes later."""
    room.join("sec")
    do(room, "new", "Pick storage", handle="avery")
    thread = row(room, "work/pick-storage")["thread"]
    for name in ("work/pick-storage", "pick-storage", thread, thread[-8:]):
        waiting = room.wait("sec", "--task", name, "--json", "--timeout", "20")
        assert states(room.post("@sec elsewhere")) == {"sec": "queued"}
        do(room, "send", name, f"@sec by {name}", handle="avery")
        assert waiting.ended().json["message"]["content"] == f"@sec by {name}"
        machine.run("respond", "--task", name, f"ok {name}", handle="sec", room=room.name).ok()
    said = room.page(thread=thread, sender="sec")["items"]
    assert [message["content"] for message in said] == [
        f"ok {name}" for name in (thread[-8:], thread, "pick-storage", "work/pick-storage")
    ]
    assert row(room, "work/pick-storage")["status"] == "open"
    turn = room.take("sec")
    assert turn is not None
    assert turn["message"]["content"] == "@sec elsewhere"


@requirement("await:lease")
def test_a_wait_for_a_task_wakes_whenever_it_changes_hands(room: Room, machine: Machine) -> None:
    """Free at last, claimed, its time over, handed back, resolved: each once, in order, and no mention among them."""
    room.join("sec", "bob")
    do(room, "new", "First", handle="avery")
    machine.run("memory", "set", "work/second", "x", "-m", "depends-on=work/first", handle="avery", room=room.name).ok()
    told(room, "filed")
    looping = room.wait("bob", "--lease", "second", "--loop", "--json")
    mention = room.post("@bob hello")
    assert states(mention) == {"bob": "queued"}
    do(room, "resolve", "first")
    until(lambda: kinds(looping.out) == ["unblocked"], "it can be claimed", NOTICE_S)
    do(room, "claim", "second", "--ttl", "1s")
    until(lambda: kinds(looping.out)[1:] == ["claimed", "expired"], "its time is over", NOTICE_S)
    do(room, "block", "second", "--on", "#502", handle="avery")
    do(room, "claim", "second")
    do(room, "release", "second", "--note", "over to you")
    do(room, "resolve", "second", handle="avery")
    wanted = ["unblocked", "claimed", "expired", "claimed", "released", "resolved"]
    until(lambda: len(looping.out) >= len(wanted), f"all of it, not only {kinds(looping.out)}", NOTICE_S)
    assert kinds(looping.out) == wanted
    assert {json.loads(line)["message"]["metadata"]["task"] for line in looping.out} == {"work/second"}
    assert looping.alive
    looping.end()
    turn = room.take("bob", session="another")
    assert turn is not None
    assert turn["message"]["id"] == mention["id"]


@requirement("await:lease", "await:lease:nothing-missed")
def test_what_changes_between_a_refused_claim_and_the_wait_is_not_missed(room: Room, machine: Machine) -> None:
    """Handed back in that moment: the wait ends at once, with the way to go on; then nothing older wakes."""
    room.join("sec", "bob")
    do(room, "new", "Race", handle="avery")
    do(room, "claim", "race")
    thread = row(room, "work/race")["thread"]
    for name in ("race", thread[-8:]):
        machine.run("board", "claim", "work/race", handle="bob", room=room.name).failed(1)
        do(room, "release", "race")
        told(room, "released")
        waiting = machine.run("await", "--lease", name, "--timeout", "10", handle="bob", room=room.name).ok()
        assert waiting.out.startswith("Handed back  Race  ")
        assert "take it: mycelium board claim work/race" in waiting.out
        again = machine.run("await", "--lease", name, "--timeout", "0", handle="bob", room=room.name).failed(6)
        assert f"{name} did not change hands" in again.err
        do(room, "claim", "race")
    told(room, "claimed")
    between = machine.run("await", "--lease", "work/race", "--timeout", "0", handle="bob", room=room.name).ok()
    assert between.out.startswith("Claimed     Race  ")
    assert machine.run("await", "--lease", "race", "--timeout", "0", handle="bob", room=room.name).status == 6
    gone = machine.run("await", "--lease", "nope", "--timeout", "10", handle="bob", room=room.name).failed(3)
    assert gone.err.startswith("error: there is no task 'nope'")
    waiting_on = room.wait("bob", "--lease", "race", "--timeout", "30")
    machine.run("memory", "rm", "work/race", handle="avery", room=room.name).ok()
    ended = waiting_on.ended()  # of the removal, or of its notice if that is there by then
    said = {0: (ended.out, "Handed back  Race  "), 3: (ended.err, "error: work/race was deleted while you waited")}
    text, begins = said[ended.status]
    assert text.startswith(begins), ended


@requirement("await:lease:nothing-missed", "await:renews")
def test_a_loop_misses_nothing_while_the_hub_starts_again(own_hub: Hub, own_room: Room) -> None:
    """A claim whose time is over meanwhile; the holder's own loop keeps its claim through it."""
    own_room.join("sec", "bob", "kim")
    for title in ("Lost", "Kept"):
        do(own_room, "new", title, handle="avery")
    told(own_room, "filed")
    looping = own_room.wait("bob", "--lease", "lost", "--loop", "--json")
    keeping = own_room.wait("sec", "--loop", "--json")
    do(own_room, "claim", "kept", "--ttl", "60s")
    body = {"ttl_s": 2}
    own_room.api.post(own_room.at("tasks", "work", "lost", "claim"), body, handle="kim").ok(200)
    until(lambda: kinds(looping.out) == ["claimed"], "the claim", NOTICE_S)
    before = row(own_room, "work/kept")["expires_at"]
    own_hub.restart()
    until(lambda: kinds(looping.out) == ["claimed", "expired"], "its time is over", 30)
    until(lambda: row(own_room, "work/kept")["expires_at"] > before, "the other is renewed", 30)
    assert keeping.alive


@requirement("await:renews")
def test_a_loop_keeps_the_claims_of_its_machine(room: Room, machine: Machine, tmp_path: Path) -> None:
    """Through several lengths, one that another process makes too, also while the command runs; a lost one is told."""
    room.join("sec", "bob")
    for title in ("One", "Two"):
        do(room, "new", title, handle="avery")
    do(room, "claim", "one", "--ttl", "3s")
    gate, started = tmp_path / "gate", tmp_path / "started"
    command = script(tmp_path / "turn.sh", f"touch {started}\nwhile [ ! -e {gate} ]; do sleep 0.05; done\n")
    looping = room.wait("sec", "--loop", "--exec", command)
    until(lambda: bool(row(room, "work/one")["holder"]), "it is held")
    room.post("@sec go")
    until(started.exists, "the command runs")
    do(room, "claim", "two", "--ttl", "3s")
    keys = ("work/one", "work/two")
    far = {key: datetime.fromisoformat(row(room, key)["expires_at"]) + timedelta(seconds=4) for key in keys}

    def is_kept(key: str) -> bool:
        shown = row(room, key)
        assert shown["holder"] == "sec", f"{key} was lost: {looping.err}"
        return datetime.fromisoformat(shown["expires_at"]) > far[key]

    until(lambda: all(map(is_kept, keys)), "both last on", 30)
    gate.touch()
    do(room, "claim", "one", "--force", handle="bob")
    until(lambda: any("not renewed any more" in line for line in looping.err), "the loss is told", NOTICE_S)
    lost = [line for line in looping.err if "not renewed any more" in line]
    assert len(lost) == 1
    assert "work/one" in lost[0]
    assert "@bob holds it now" in lost[0]
    refused = machine.run("board", "release", "one", "-r", room.name, "--json", handle="sec").failed(1)
    assert json.loads(refused.err)["slug"] == "claim.held"
    assert looping.alive


@requirement("await:renews")
def test_a_wait_without_loop_renews_nothing(room: Room) -> None:
    """The claim ends by its time, and who waits is told."""
    room.join("sec")
    do(room, "new", "One", handle="avery")
    waiting = room.wait("sec", "--timeout", "60")
    do(room, "claim", "one", "--ttl", "2s")
    assert waiting.ended().ok().out.startswith("Expired     One ")
    assert row(room, "work/one")["holder"] is None


@requirement("board:listen")
def test_who_is_given_a_task_is_told_why(room: Room, machine: Machine, tmp_path: Path) -> None:
    """As an assignment, with the way to take it; a command gets the task's key."""
    room.join("sec")
    do(room, "new", "Pick storage", "--assign", "@sec", handle="avery")
    found = machine.run("await", "--timeout", "10", handle="sec", room=room.name, session="s1").ok().out
    assert found.startswith("New task    Pick storage  ")
    assert found.splitlines()[-1].startswith("take it: mycelium board claim work/pick-storage ")
    seen = tmp_path / "seen"
    command = script(tmp_path / "turn.sh", f'cat > {seen}.json\necho "$MYCELIUM_TASK" > {seen}\n')
    machine.run("await", "--timeout", "10", "--exec", command, handle="sec", room=room.name, session="s2").ok()
    assert seen.read_text() == "work/pick-storage\n"
    assert json.loads(seen.with_suffix(".json").read_text())["reason"] == "assigned"


@requirement("threads:notice:shown")
def test_changes_of_the_board_are_lines_of_the_room(room: Room, machine: Machine) -> None:
    """Live and in the history; an event with its place in the stream; nobody is woken, nothing is unread."""
    room.join("sec", "bob")
    watching = room.watch()
    bystander = room.wait("bob", "--timeout", "60")
    with room.api.stream(room.at("stream")) as stream:
        do(room, "new", "Ship it", handle="avery")
        do(room, "new", "JWT TTL?", "--kind", "decision", handle="avery")
        do(room, "claim", "ship-it")
        do(room, "release", "ship-it", "--note", "schema is settled")
        do(room, "resolve", "ship-it")
        events = [stream.next("notice") for _ in range(5)]
        room.post("end")
        watching.line(lambda line: line == "  end\n", "the last message")
    assert [event.data["kind"] for event in events] == ["filed", "filed", "claimed", "released", "resolved"]
    assert all(event.id for event in events)
    first = events[0].data
    assert first == first | {"room": room.name, "task": "work/ship-it", "by": "avery", "title": "Ship it"}
    assert first["thread"] == row(room, "work/ship-it")["thread"]
    lines = "".join(watching.out)
    history = machine.run("room", "messages", room.name).ok().out
    for shown in (lines, history):
        for begins, by in (
            ("New task    Ship it ", "@avery"), ("New decision  JWT TTL? ", "@avery"), ("Claimed     Ship it ", "@sec"),
            ("Handed back  Ship it ", "@sec"), ("Resolved    Ship it ", "@sec"),
        ):  # fmt: skip
            assert any(line.startswith(begins) and by in line for line in shown.splitlines()), (begins, shown)
        assert "  schema is settled\n" in shown
    assert bystander.alive
    assert (room.member("bob")["unread"], room.member("sec")["unread"]) == (0, 0)
    with room.api.stream(room.at("stream"), events[2].id) as stream:
        assert [stream.next("notice").data["kind"] for _ in range(2)] == ["released", "resolved"]


@requirement("board:coordinate")
def test_an_engine_is_brought_into_a_task(room: Room, machine: Machine) -> None:
    """As by a mention in its thread; the task stays as it is; what is no engine is refused in one line."""
    room.join("sec")
    do(room, "new", "Pick storage", handle="avery")
    nobody = machine.run("board", "coordinate", "pick-storage", "aligner", "x", handle="sec", room=room.name).failed(3)
    assert nobody.err == (
        f"error: @aligner is no engine of '{room.name}', which has none. "
        f"Next: mycelium engine create aligner --kind KIND --room {room.name}\n"
    )
    machine.run("engine", "create", "greeter", "--kind", "hello", handle="avery", room=room.name).ok()
    do(room, "claim", "pick-storage")
    before = row(room, "work/pick-storage")
    message = json.loads(do(room, "coordinate", "pick-storage", "greeter", "agree on storage", "--json"))
    assert (message["content"], message["thread"]) == ("@greeter agree on storage", before["thread"])
    assert states(message) == {"greeter": "queued"}
    said = do(room, "coordinate", before["thread"][-8:], "@greeter", "once more")
    assert f"read along: mycelium board messages {before['thread'][-8:]}" in said
    do(room, "send", "pick-storage", "@greeter the same by hand")
    assert room.member("greeter")["unread"] == 3
    assert row(room, "work/pick-storage") == before
    near = machine.run("board", "coordinate", "pick-storage", "greter", "x", handle="sec", room=room.name).failed(3)
    assert "did you mean @greeter?" in near.err
