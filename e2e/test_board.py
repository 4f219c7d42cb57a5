"""The board: tasks filed, claimed by one, moved; by command and over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Room
from e2e.test_memory import get, put
from e2e.waiting import until


def titles(room: Room, machine: Machine, *flags: str) -> list[str]:
    """What `mycelium board` shows."""
    rows = machine.run("board", "-r", room.name, "--json", *flags).ok().json["items"]
    return [row["title"] for row in rows]


@requirement("board:task")
def test_a_task_is_a_document(room: Room, machine: Machine) -> None:
    """Filed with an assignee and a parent; named in any way; two of one title; edited as memory."""
    room.join("sec")

    def run(*words: str) -> str:
        return machine.run("board", *words, "-r", room.name, handle="avery").ok().out

    told = run("new", "Ship passkey login", "--assign", "@sec")
    assert told.startswith("✓ work/ship-passkey-login — Ship passkey login · thread ")
    thread = told.split("thread ")[1].split()[0]
    assert "work/ship-passkey-login-2 — " in run("new", "Ship passkey login", "--parent", thread)
    assert run("new", "🚀").startswith("✓ work/task-")
    found = get(room, "work/ship-passkey-login")
    assert found["meta"] == {"title": "Ship passkey login", "status": "open", "assignee": "@sec"}
    assert get(room, "work/ship-passkey-login-2")["meta"]["part-of"] == "work/ship-passkey-login"
    run("send", thread, "keychain, or WebCrypto?")
    assert "keychain" in run("messages", "work/ship-passkey-login")
    put(room, "work/ship-passkey-login", "x", meta={"title": "Ship it"}).ok(200)
    put(room, "status/build", "red").ok(201)
    put(room, "context/stack", "no task").ok(201)
    assert sorted(titles(room, machine, "--filter", "all"))[:3] == ["Ship it", "Ship passkey login", "red"]
    refused = machine.run("board", "new", "x", "--parent", "work/nope", "-r", room.name, handle="avery")
    assert refused.failed(3).err.startswith("error: there is no task 'work/nope'")


@requirement("board:claim")
def test_one_of_many_claims_it(room: Room, machine: Machine) -> None:
    """Twelve at once, over whatever gateways and boards there are: one holds it, the others are told who."""
    handles = [f"agent-{number}" for number in range(12)]
    room.join(*handles)
    machine.run("board", "new", "Race", "-r", room.name, handle="avery").ok()

    def claim(handle: str) -> tuple[int, str]:
        reply = room.api.post(room.at("tasks", "work", "race", "claim"), {}, handle=handle)
        return reply.status, reply.json["holder"]

    with ThreadPoolExecutor(len(handles)) as pool:
        said = list(pool.map(claim, handles))
    assert [status for status, _ in said].count(200) == 1
    assert len({holder for _, holder in said}) == 1
    loser = next(handle for handle, (status, _) in zip(handles, said, strict=True) if status == 409)
    refused = machine.run("board", "claim", "race", "-r", room.name, handle=loser).failed(1)
    assert f"is held by @{said[0][1]} until " in refused.err
    assert titles(room, machine, "--filter", "in-flight") == ["Race"]


@requirement("board:token")
def test_an_ended_claim_moves_nothing(room: Room, machine: Machine) -> None:
    """The token is kept on the machine; taken by force, by its end, and after another held it."""
    room.join("sec", "bob")

    def run(handle: str, *words: str) -> str:
        return machine.run("board", *words, "-r", room.name, handle=handle).ok().out

    run("avery", "new", "Lease")
    run("sec", "claim", "work/lease")
    run("sec", "renew", "lease", "--ttl", "2h")
    assert "taken from @sec" in run("bob", "claim", "work/lease", "--force")
    for words in (["renew", "lease"], ["release", "lease"], ["resolve", "work/lease"]):
        refused = machine.run("board", *words, "-r", room.name, "--json", handle="sec").failed(1)
        assert json.loads(refused.err)["slug"] == "lease.lost"
    run("bob", "release", "lease", "--note", "handing over")
    claimed = room.api.post(room.at("tasks", "work", "lease", "claim"), {"ttl_s": 1}, handle="sec").ok(200).json

    def is_free() -> bool:
        return not room.api.get(room.at("board", filter="all"), handle="sec").ok(200).json["items"][0]["holder"]

    until(is_free, "the claim is over")
    reply = room.api.post(room.at("tasks", "work", "lease", "renew"), {"token": claimed["token"]}, handle="sec")
    assert (reply.status, reply.json["slug"]) == (409, "lease.lost")
    run("bob", "claim", "lease")


@requirement("board:token")
def test_claims_outlive_the_hub(own_hub: Hub, tmp_path: Path) -> None:
    """Every process starts again: holder and token stand."""
    machine = Machine(tmp_path / "client", own_hub.url)
    machine.run("room", "create", "demo", handle="avery").ok()
    machine.run("agent", "create", "sec", "-r", "demo", handle="avery").ok()
    machine.run("agent", "create", "bob", "-r", "demo", handle="avery").ok()
    machine.run("board", "new", "Keep", "-r", "demo", handle="avery").ok()
    machine.run("board", "claim", "keep", "-r", "demo", handle="sec").ok()
    own_hub.restart()
    assert "is held by @sec" in machine.run("board", "claim", "keep", "-r", "demo", handle="bob").failed(1).err
    assert "✓ work/keep" in machine.run("board", "renew", "keep", "-r", "demo", handle="sec").ok().out


@requirement("board:moves", "board:filters")
def test_what_becomes_of_tasks(room: Room, machine: Machine) -> None:
    """The document has it at once, and the filters follow."""
    room.join("sec")

    def run(*words: str) -> str:
        return machine.run("board", *words, "-r", room.name, handle="sec").ok().out

    for title in ("One", "Two", "Three", "Four"):
        run("new", title)
    put(room, "decisions/jwt-ttl", "JWT access-token TTL?", meta={"options": ["15m", "60m"]}).ok(201)
    assert titles(room, machine) == ["JWT access-token TTL?"]
    run("claim", "one")
    run("block", "one", "--on", "#502")
    assert get(room, "work/one")["meta"]["blocked_by"] == "#502"
    assert titles(room, machine) == ["JWT access-token TTL?", "One"]
    run("block", "one", "--clear")
    assert "blocked_by" not in get(room, "work/one")["meta"]
    assert run("resolve", "one", "--note", "done") == "✓ resolved work/one\n"
    run("promote", "two")
    run("dismiss", "three")
    assert (
        "none of what decisions/jwt-ttl offers"
        in machine.run("board", "answer", "jwt-ttl", "5m", "-r", room.name, handle="sec").failed(2).err
    )
    run("answer", "jwt-ttl", "15m")
    assert get(room, "decisions/jwt-ttl")["meta"]["answer"] == "15m"
    assert [get(room, f"work/{name}")["meta"]["status"] for name in ("one", "two", "three", "four")] == [
        "resolved", "resolved", "dismissed", "open",
    ]  # fmt: skip
    assert titles(room, machine) == []
    shown = machine.run("board", "--filter", "resolved", "--view", "table", "-r", room.name).ok().out
    assert len(shown.splitlines()) == 6
    refused = machine.run("board", "resolve", "one", "-r", room.name, handle="sec").failed(1)
    assert "work/one is resolved" in refused.err
