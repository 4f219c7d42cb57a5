"""The daily log: what happened in a room, day by day, by command and over HTTP."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e import bundle
from e2e.harness import Hub, Machine
from e2e.requirements import requirement
from e2e.room import Document, Room
from e2e.test_memory import put
from e2e.waiting import until

EARLY, LATE = "Pacific/Pago_Pago", "Pacific/Kiritimati"  # 25 hours apart: never the same day


def log(room: Room, handle: str = "avery", **query: str) -> Document:
    """The log over HTTP."""
    page: Document = room.api.get(room.at("board", "log", **query), handle=handle).ok(200).json
    return page


def told(page: Document) -> list[str]:
    """Every entry, the first first."""
    entries = [entry for day in page["items"] for entry in day["entries"]]
    return [f"{entry['by']} {entry['what']} {entry['key'] or entry['count']}" for entry in reversed(entries)]


def counts(page: Document) -> dict[str, int]:
    """How much of what all days have."""
    return {name: sum(day[name] for day in page["items"]) for name in ("messages", "changes", "resolved", "total")}


@pytest.fixture(scope="module")
def busy(_shared_hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A room in which two agents and a person did one thing after another; tests only read it, or make a copy."""
    hub = _shared_hub if _shared_hub.alive else _shared_hub.start()
    machine = Machine(tmp_path_factory.mktemp("busy"), hub.url)
    try:
        yield _filled(Room(hub.api, machine, f"busy-{uuid.uuid4().hex[:8]}").create(), machine)
    finally:
        machine.close()


def _filled(room: Room, machine: Machine) -> Room:
    room.join("sec", "builder")

    def run(handle: str, *words: str) -> None:
        machine.run(*words, "-r", room.name, handle=handle).ok()

    run("avery", "board", "new", "Pick token storage", "--assign", "@sec")
    run("sec", "board", "claim", "work/pick-token-storage")
    message = room.post("@sec keychain, or WebCrypto?")
    room.take("sec")
    room.post("WebCrypto", sender="sec", thread="work/pick-token-storage")
    room.api.patch(room.at("messages", message["id"]), {"content": "@sec keychain?"}, handle="avery").ok(200)
    run("builder", "memory", "set", "context/stack", "# Stack\n\nSQLite")
    run("builder", "memory", "set", "context/stack", "# Stack\n\nSQLite and NATS")
    run("sec", "board", "block", "pick-token-storage", "--on", "#502")
    run("sec", "board", "resolve", "pick-token-storage")
    put(room, "work/by-hand", "# Do it by hand").ok(201)
    put(room, "work/by-hand", "# Do it by hand", meta={"status": "resolved"}).ok(200)
    put(room, "context/old", "x", handle="builder").ok(201)
    room.api.delete(room.at("memory", "context", "old"), handle="builder").ok(204)
    until(lambda: counts(log(room))["resolved"] == 2, "the log has what the edit did")
    return room


@requirement("board:log", "board:log:once")
def test_what_happened_is_told_once_by_day_and_member(busy: Room, machine: Machine) -> None:
    """A move and its document's change, an edit and its move, a post and its delivery and amendment: one thing each."""
    page = log(busy)
    assert told(page) == [
        "avery filed work/pick-token-storage",
        "avery messages 1",
        "sec messages 1",
        "builder written context/stack",
        "builder changed context/stack",
        "sec blocked work/pick-token-storage",
        "sec resolved work/pick-token-storage",
        "avery filed work/by-hand",
        "avery resolved work/by-hand",
        "builder written context/old",
        "builder removed context/old",
    ]
    assert counts(page) == {"messages": 2, "changes": 7, "resolved": 2, "total": 11}
    people = {person["handle"]: person["total"] for day in page["items"] for person in day["people"]}
    assert people == {"avery": 4, "sec": 3, "builder": 4}
    assert (page["streak"], page["own_streak"]) == ({"current": 1, "longest": 1}, {"current": 0, "longest": 0})
    assert (page["next"], page["calendar"][-1]["total"]) == (None, 11)
    shown = json.loads(machine.run("board", "log", "-r", busy.name, "--json", handle="avery").ok().out)
    assert shown == page
    lines = machine.run("board", "log", "-r", busy.name, handle="avery").ok().out.splitlines()
    assert lines[0].startswith(f"{busy.name} · {page['first']} to {page['last']} · UTC")
    assert lines[2].endswith(f" {page['last']} · 11 of 5")
    assert lines[3] == "  @avery 4, @builder 4, @sec 3"
    assert any(line.endswith("  @sec      resolved  work/pick-token-storage — Pick token storage") for line in lines)
    assert any(line.endswith("the room: 1 day in a row, longest 1") for line in lines)
    assert len([line for line in lines if line.startswith("  Mon  ")]) == 1


@requirement("board:log")
def test_every_documented_way_to_ask_works(busy: Room, machine: Machine) -> None:
    """A window, a week, a day, one member; two periods at once are refused, by command and over HTTP."""
    today = datetime.now(UTC).date()
    monday = today - timedelta(days=today.weekday())

    def run(*flags: str) -> Document:
        page: Document = json.loads(machine.run("board", "log", *flags, "-r", busy.name, "--json").ok().out)
        return page

    def span(page: Document) -> tuple[str, str]:
        return page["first"], page["last"]

    def days_before(number: int) -> str:
        return (today - timedelta(days=number)).isoformat()

    assert span(run()) == span(run("--since", "7d")) == (days_before(6), today.isoformat())
    assert span(run("--since", "30d")) == (days_before(29), today.isoformat())
    assert span(run("--since", "today")) == (today.isoformat(), today.isoformat())
    assert span(run("--week")) == (monday.isoformat(), (monday + timedelta(days=6)).isoformat())
    last_week = run("--last-week")
    assert span(last_week) == ((monday - timedelta(days=7)).isoformat(), (monday - timedelta(days=1)).isoformat())
    assert [day["weekday"] for day in last_week["items"]][::6] == ["Sunday", "Monday"]
    assert told(run("--day", "2020-02-29")) == []
    assert told(run("--by", "@sec")) == [line for line in told(log(busy)) if line.startswith("sec ")]
    assert "nothing happened" in machine.run("board", "log", "--day", "2020-02-29", "-r", busy.name).ok().out
    for flags, said in (
        (["--week", "--last-week"], "--week and --last-week are two periods: use one of them"),
        (["--since", "soon"], "since is 'soon': use today, or a number of days such as 7d or 30d, at most 366d"),
        (["--day", "19.8.2026"], "day is '19.8.2026': use a date such as 2026-08-19"),
    ):
        refused = machine.run("board", "log", *flags, "-r", busy.name).failed(2)
        assert refused.err.startswith(f"error: {said}")
        assert refused.err.count("\n") == 1
    assert "Mars" in machine.run("board", "log", "--tz", "Mars", "-r", busy.name).failed(2).err
    busy.api.get(busy.at("board", "log", tz="Mars"), handle="avery").refused(422, "request.invalid")
    assert "did you mean @builder?" in machine.run("board", "log", "--by", "buidler", "-r", busy.name).failed(3).err
    reply = busy.api.get(busy.at("board", "log", week="true", day="2026-08-19"), handle="avery")
    assert (reply.status, reply.json["slug"]) == (422, "request.invalid")
    assert "week and day are two periods" in reply.json["detail"]


@requirement("board:log:days")
def test_days_are_the_readers(busy: Room, machine: Machine) -> None:
    """The same moment is on two dates in two zones; $TZ says where, and --tz says it better."""

    def page(*flags: str, zone: str) -> Document:
        ran = machine.run("board", "log", *flags, "-r", busy.name, "--json", env={"TZ": zone})
        found: Document = json.loads(ran.ok().out)
        return found

    for zone in (EARLY, LATE, "Asia/Kathmandu"):
        found = page(zone=zone)
        assert (found["tz"], counts(found)["total"]) == (zone, 11)
        for day in found["items"]:
            for entry in day["entries"]:
                there = datetime.fromisoformat(entry["at"]).astimezone(ZoneInfo(zone))
                assert (entry["time"], day["date"]) == (there.strftime("%H:%M"), there.date().isoformat())
    assert page(zone=EARLY)["last"] < page(zone=LATE)["last"]
    assert page("--tz", LATE, zone=EARLY) == page(zone=LATE)
    ran = machine.run("board", "log", "-r", busy.name, env={"TZ": "CET-1CEST"}).ok()
    assert "CET-1CEST" in ran.err
    assert "days are those of UTC" in ran.err


@requirement("board:log:private")
def test_a_log_is_gone_with_its_room_and_hidden_with_it(
    busy: Room, machine: Machine, unique: Callable[[str], str]
) -> None:
    """A stranger is told what is told of no room; a new room of the name of a deleted one has an empty log."""
    room = _copy(busy, unique("gone"))
    room.api.patch(room.at(), {"private": True}, handle="avery").ok(200)
    refused = machine.run("board", "log", "-r", room.name, handle="kim").failed(3)
    assert refused.err.startswith(f"error: 404 Room not found: '{room.name}'")
    assert counts(log(room, "sec"))["total"] == 11
    room.api.delete(room.at(), handle="avery").ok(204)
    room.create()
    assert counts(log(room))["total"] == 0


def _copy(room: Room, name: str) -> Room:
    packed = room.api.get(room.at("export"), handle="avery").ok(200).body
    return Room(room.api, room.machine, bundle.bring(room.api, packed, name)["name"])


@requirement("board:log:copies")
def test_a_room_that_was_brought_tells_the_same_once(busy: Room, unique: Callable[[str], str]) -> None:
    """Exported and imported: as much on the same days; what was a move is the change that it made."""
    before, after = log(busy), log(_copy(busy, unique("copy")))
    assert {day["date"]: day["total"] for day in before["items"]} == {
        day["date"]: day["total"] for day in after["items"]
    }
    assert counts(after)["messages"] == counts(before)["messages"]
