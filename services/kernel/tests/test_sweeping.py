"""What is gone is gone at once, and its rows go in small steps; nothing else goes with them."""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
import threading

import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import events, headers, projector, subjects, sweeping
from mycelium_kernel.applier import Applier
from mycelium_kernel.bus import Bus
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact
from services.kernel.tests import toy
from services.kernel.tests.toy import BOUND_S, ROOM, Start

NEIGHBOUR = ROOM[:-1] + "2"
LARGE = dataclasses.replace(toy.PROJECTION, room_tables=(), swept_tables={"post": "sequence"})


@pytest.fixture
def tables() -> Tables:
    """A large room and a small one, each with posts, keys and people of two services; the large one was erased."""
    made, applier = Tables.anew(None, LARGE, "epoch"), Applier(LARGE)
    for place in range(1, 701):
        room = NEIGHBOUR if place % 7 == 0 else ROOM
        event = events_pb2.MessagePosted(room_id=room, content="x")
        stored = {headers.KEY: f"k{place}", headers.BODY: "b"}
        applier.apply(
            made, RawFact(place, subjects.posts(room), events.type_name(event), event.SerializeToString(), stored)
        )
        for service in ("board", "rooms"):
            made.put_entity(subjects.fact(service, room, "user", f"u{place}"), place, events_pb2.UserState())
    gone = events_pb2.RoomDeleted(room_id=ROOM)
    subject = subjects.room_name("name")
    applier.apply(made, RawFact(701, subject, events.type_name(gone), gone.SerializeToString(), {}))
    return made


def counts(tables: Tables) -> dict[str, int]:
    return {
        name: len(tables.all(f"SELECT * FROM {name}"))  # what is in the file, whether it counts or not
        for name in ("post", "feed", "answered", "entity")
    }


def test_a_room_is_swept_in_small_steps_and_its_neighbour_stays(tables: Tables) -> None:
    """R1: however much a room has, no step deletes more than a hundred rows."""
    sweeper, before = Sweeper(LARGE, tables), counts(tables)
    dump = tables.dump()
    while sweeper.step():
        after = counts(tables)
        assert sum(before.values()) - sum(after.values()) <= sweeping.ROWS
        before = after
    assert before == {"post": 100, "feed": 100, "answered": 100, "entity": 200}
    assert tables.dump() == dump
    assert sweeper.is_untidy()
    assert not sweeper.tidy()
    assert not sweeper.is_untidy()
    assert tables.all("SELECT * FROM erased") == [(ROOM, sweeping.CLEAN)]
    assert not sweeper.step()


def test_steps_get_smaller_while_they_take_long(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may hold large texts; what they take is measured."""
    sweeper = Sweeper(LARGE, tables)
    monkeypatch.setattr(sweeping, "STEP_S", 0.0)
    for _ in range(8):
        sweeper.step()
    assert sweeper._rows == 1
    monkeypatch.setattr(sweeping, "STEP_S", 1.0)
    for _ in range(8):
        sweeper.step()
    assert sweeper._rows == sweeping.ROWS


def test_a_key_of_an_erased_room_answers_nobody_and_is_free(tables: Tables) -> None:
    """At once, whether its row was swept or not."""
    assert tables.answered("", "k1") is None
    assert tables.answered("", "k7") is not None
    for key, room in (("k1", NEIGHBOUR), ("k7", NEIGHBOUR)):
        tables.put_answered(800, "", key, "new", room)
    first, second = tables.answered("", "k1"), tables.answered("", "k7")
    assert first
    assert second
    assert (first.body, second.body) == ("new", "b")


def test_a_service_tidies_up_after_a_room_until_it_is_done(tables: Tables) -> None:
    """From the beginning after more rooms were swept."""
    calls: list[bool] = []

    def tidy(_tables: Tables, first: bool) -> bool:
        assert counts(tables)["post"] == 100
        calls.append(first)
        return len(calls) < 3

    sweeper = Sweeper(dataclasses.replace(LARGE, tidy=tidy), tables)
    while sweeper.step() or sweeper.tidy():
        pass
    assert calls == [True, False, False]
    tables.execute("INSERT INTO erased VALUES ('another', 0)")
    while sweeper.step():
        pass
    assert not sweeper.tidy()
    assert calls[3:] == [True]


async def test_facts_that_come_while_a_service_tidies_up_are_applied_after(start: Start, bus: Bus) -> None:
    """The event loop goes on, reads are answered; the rows of what is stored meanwhile come in their order."""
    begun, go_on = threading.Event(), threading.Event()

    def tidy(_tables: Tables, _first: bool) -> bool:
        begun.set()
        assert go_on.wait(BOUND_S)
        return False

    projection = dataclasses.replace(toy.PROJECTION, tidy=tidy)
    async with start(toy.service(projection=projection)) as runtime:
        tables = runtime.tables
        assert tables
        await toy.save(bus, "before")
        await toy.store(runtime, subjects.room_name("name"), events_pb2.RoomDeleted(room_id=ROOM))
        await asyncio.to_thread(begun.wait, BOUND_S)
        stored = [await toy.save(bus, f"u{number}") for number in range(3)]
        assert tables.all("SELECT handle FROM user") == [("before",)]
        go_on.set()
        assert await toy.names_of(bus) == ["before", "u0", "u1", "u2"]
        assert tables.position == stored[-1].sequence


async def test_a_service_that_stops_while_it_tidies_up_lets_that_end(start: Start, bus: Bus) -> None:
    """Nobody else writes into the file meanwhile, and nothing is left half done."""
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def tidy(_tables: Tables, _first: bool) -> bool:
        begun.set()
        assert go_on.wait(BOUND_S)
        ended.set()
        return False

    async with start(toy.service(projection=dataclasses.replace(toy.PROJECTION, tidy=tidy))) as runtime:
        await toy.store(runtime, subjects.room_name("name"), events_pb2.RoomDeleted(room_id=ROOM))
        await asyncio.to_thread(begun.wait, BOUND_S)
        stopping = asyncio.create_task(runtime.stop())
        assert runtime.projector
        await asyncio.wait({stopping}, timeout=0.1)
        assert runtime.projector._held is not None
        go_on.set()
        await stopping
        assert ended.is_set()


async def test_a_sweeper_that_meets_damage_has_the_tables_built_again(
    start: Start, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when nobody else reads what is damaged."""
    monkeypatch.setattr(projector, "MEND_S", (0.02, 0.1))
    damages = [sqlite3.DatabaseError("database disk image is malformed")]

    def tidy(_tables: Tables, _first: bool) -> bool:
        if damages:
            raise damages.pop()
        return False

    async with start(toy.service(projection=dataclasses.replace(toy.PROJECTION, tidy=tidy))) as runtime:
        tables = runtime.tables
        assert tables
        await toy.save(bus, "kept")
        await toy.store(runtime, subjects.room_name("name"), events_pb2.RoomDeleted(room_id=ROOM))
        await toy.until(lambda: not damages)
        await toy.until(lambda: tables.one("SELECT 1 FROM erased WHERE state = ?", sweeping.CLEAN))
        assert await toy.names_of(bus) == ["kept"]
        assert runtime.health()["status"] == "ok"
