"""The board as people and programs read it: what is ready and why not, groups, pages, days, watching, who is active."""

import json
import signal
from typing import Any

from e2e.harness import Machine
from e2e.processes import Background
from e2e.requirements import requirement
from e2e.room import Room
from e2e.test_memory import put
from e2e.waiting import until


def board(room: Room, **query: str | int) -> dict[str, Any]:
    """A page of the board over HTTP."""
    found: dict[str, Any] = room.api.get(room.at("board", **query), handle=room.owner).ok(200).json
    return found


def keys(page: dict[str, Any]) -> list[str]:
    """Of its rows."""
    return [row["key"] for row in page["items"]]


@requirement("board:ready")
def test_a_row_says_why_it_is_not_ready(room: Room, machine: Machine) -> None:
    """It waits, belongs, goes round in a circle, is held until; what is left can be begun."""
    room.join("sec")

    def run(*words: str) -> str:
        return machine.run("board", *words, "-r", room.name, handle="sec").ok().out

    run("new", "Ship login")
    run("new", "Write the migration", "--parent", "ship-login")
    put(room, "work/run-it", "Run the migration", meta={"depends-on": "work/write-the-migration"}).ok(201)
    put(room, "work/hen", "x", meta={"depends-on": "work/egg"}).ok(201)
    put(room, "work/egg", "x", meta={"depends-on": "work/hen"}).ok(201)
    shown = run("--filter", "all")
    assert "work/run-it · open · after work/write-the-migration · unowned" in shown
    assert "work/ship-login · open · parts: work/write-the-migration · unowned" in shown
    assert "work/write-the-migration · open · part of work/ship-login · unowned" in shown
    assert "in a cycle: work/" in shown
    ready = {"work/ship-login", "work/write-the-migration", "work/hen", "work/egg"}
    assert set(keys(board(room, filter="ready"))) == ready
    assert "work/run-it" not in run("ready")
    run("claim", "write-the-migration")
    assert set(keys(board(room, filter="ready"))) == ready - {"work/write-the-migration"}
    assert "held by @sec until " in run("--filter", "in-flight")
    run("resolve", "write-the-migration")
    assert set(keys(board(room, filter="ready"))) == ready - {"work/write-the-migration"} | {"work/run-it"}
    row = next(row for row in board(room, filter="all")["items"] if row["key"] == "work/run-it")
    assert (row["ready"], row["reason"], row["waits_for"]) == (True, "", [])


@requirement("board:groups", "board:views")
def test_rows_are_grouped_by_any_field(room: Room, machine: Machine) -> None:
    """Of the row or of its document, a list of values too; in a list, a table and JSON; a thread's field is refused."""
    put(room, "work/a", "A", meta={"priority": "high", "area": ["cli", "web"]}).ok(201)
    put(room, "work/b", "B", meta={"area": "cli", "owner": "@julia"}).ok(201)

    def shown(*words: str) -> str:
        return machine.run("board", "--filter", "all", "-r", room.name, *words).ok().out

    headings = [line for line in shown("--group", "area").splitlines() if line and line[0] != " "][1:]
    assert headings == ["cli 2", "web 1"]
    assert "- 1" in shown("--group", "priority").splitlines()
    assert "@julia 1" in shown("--group", "owner").splitlines()
    table = shown("--view", "table", "--group", "priority").splitlines()
    assert table[1].startswith("PRIORITY  KEY")
    assert [line.split()[0] for line in table[2:]] == ["high", "-"]
    assert shown("--group", "nonsense").endswith("no row here has a field nonsense\n")
    found = json.loads(shown("--group", "area", "--json"))["items"]
    assert {row["key"]: row["group"] for row in found} == {"work/a": ["cli", "web"], "work/b": ["cli"]}
    refused = machine.run("board", "--group", "thread", "-r", room.name).failed(2)
    assert refused.err.startswith("error: rows can't be grouped by 'thread'")


@requirement("board:pages")
def test_a_board_is_read_in_pages(room: Room, machine: Machine) -> None:
    """Each row once, in one order; the command shows all of them."""
    for number in range(5):
        put(room, f"work/{number}", f"Task {number}").ok(201)
    read, cursor = [], ""
    while True:
        page = board(room, filter="all", limit=2, **({"cursor": cursor} if cursor else {}))
        read += keys(page)
        cursor = page["next"]
        if not cursor:
            break
    assert read == [f"work/{number}" for number in (4, 3, 2, 1, 0)]
    assert len(machine.run("board", "--filter", "all", "--json", "-r", room.name).ok().json["items"]) == 5
    reply = room.api.get(room.at("board", cursor="nonsense"), handle=room.owner)
    assert (reply.status, reply.json["slug"]) == (422, "request.invalid")


@requirement("board:day")
def test_what_was_closed_stays_for_the_readers_day(room: Room, machine: Machine) -> None:
    """Whatever day it is where one reads; a zone that is none is refused by both faces."""
    put(room, "work/done", "x", meta={"status": "resolved"}).ok(201)
    for zone in ("Pacific/Kiritimati", "UTC", "Pacific/Pago_Pago"):
        shown = machine.run("board", "--filter", "resolved", "-r", room.name, env={"TZ": zone}).ok().out
        assert "1 resolved today" in shown
        assert "work/done" in shown
        assert keys(board(room, filter="resolved", tz=zone)) == ["work/done"]
    assert "work/done" in machine.run("board", "--filter", "resolved", "--tz", "Asia/Tokyo", "-r", room.name).ok().out
    assert "which is no time zone" in machine.run("board", "--tz", "Nowhere", "-r", room.name).failed(2).err
    assert room.api.get(room.at("board", tz="Nowhere"), handle=room.owner).status == 422
    for since, found in (
        ("2100-01-01T00:00:00Z", []),
        ("1h", ["work/done"]),
        ("2026-01-01T00:00:00+02:00", ["work/done"]),
    ):
        assert keys(board(room, filter="resolved", closed_since=since)) == found
    for nonsense in ("soon", "4503599627370496", "1969-01-01T00:00:00Z"):
        refused = room.api.get(room.at("board", closed_since=nonsense), handle=room.owner)
        assert (refused.status, refused.json["slug"]) == (422, "request.invalid")


@requirement("board:sources")
def test_who_is_active_is_a_row_that_can_t_be_changed(room: Room, machine: Machine) -> None:
    """It says where it comes from, and so does the refusal; who is away is no row."""
    room.join("scout", "away")
    put(room, "work/a", "A").ok(201)
    said = {"handle": "scout", "state": "working", "note": "reading the failing test", "ttl_s": 600}
    room.api.post(room.at("presence"), said, handle="scout").ok(204)

    def rows() -> dict[str, Any]:
        return {row["key"]: row for row in board(room, filter="all", group="status")["items"]}

    found = until(lambda: rows() if "members/scout" in rows() else None, "the member is a row")
    assert found.keys() == {"work/a", "members/scout"}
    assert found["work/a"]["source"] == {"kind": "memory", "ref": "work/a"}
    row = found["members/scout"]
    assert row["source"] == {"kind": "member", "ref": "scout"}
    assert (row["title"], row["status"], row["group"], row["ready"]) == (
        "reading the failing test", "working", ["working"], False,
    )  # fmt: skip
    assert "Active now 1" in machine.run("board", "--filter", "all", "-r", room.name).ok().out
    for named in ("@scout", "members/scout"):
        refused = machine.run("board", "resolve", named, "-r", room.name, "--json", handle="scout").failed(1)
        assert json.loads(refused.err)["slug"] == "row.unchangeable"
        assert "is a member of" in refused.err


@requirement("board:watch")
def test_a_watched_board_is_drawn_at_each_change(room: Room, machine: Machine) -> None:
    """By a claim, by an edit; each block and each line of JSON is the whole board. Ctrl-C or the room's end end it."""
    room.join("sec")
    put(room, "work/a", "First").ok(201)
    words = ["board", "--filter", "all", "--watch", "-r", room.name]
    drawn, told = machine.start(*words), machine.start(*words, "--json")

    def saw(text: str) -> None:
        drawn.line(lambda line: text in line, text)
        told.line(lambda line: text.replace("@", "") in line, text)

    for watching in (drawn, told):
        until(lambda one=watching: one.out, "it is drawn")  # type: ignore[misc]
    put(room, "decisions/ttl", "TTL of tokens?").ok(201)
    saw("TTL of tokens?")
    machine.run("board", "claim", "work/a", "-r", room.name, handle="sec").ok()
    drawn.line(lambda line: "held by @sec until " in line, "the claim")
    told.line(lambda line: '"holder":"sec"' in line, "the claim")
    room.post("hello", sender="sec")
    _ended(drawn, signal.SIGINT, 130)
    assert "".join(drawn.out).count(f"{room.name}   ") >= 3
    pages = [json.loads(line) for line in told.out]
    assert [len(page["items"]) for page in (pages[0], pages[-1])] == [1, 2]
    room.api.delete(room.at(), handle=room.owner).ok(204)
    assert "was deleted" in told.ended().ok().err


def _ended(process: Background, number: int, status: int) -> None:
    process.signal(number)
    process.ended().failed(status)
