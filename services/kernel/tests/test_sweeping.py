"""What is gone is gone at once, and its rows go in small steps; nothing else goes with them."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path

import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import events, headers, subjects, sweeping
from mycelium_kernel.applier import Applier
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact
from services.kernel.tests import toy
from services.kernel.tests.toy import ROOM

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
    assert tables.all("SELECT * FROM erased") == [(ROOM, 1)]
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
    """From the beginning after each room's rows, and only then is the room swept."""
    calls: list[bool] = []

    def tidy(_tables: Tables, first: bool) -> bool:
        assert counts(tables)["post"] == 100
        calls.append(first)
        return len(calls) < 3

    sweeper = Sweeper(dataclasses.replace(LARGE, tidy=tidy), tables)
    while sweeper.step():
        pass
    assert calls == [True, False, False]


def test_a_sweeper_that_meets_damage_has_the_tables_built_again(tmp_path: Path) -> None:
    """As whoever reads them does."""
    path = tmp_path / "t.sqlite"
    tables = Tables.anew(path, LARGE, "epoch")
    for place in range(2_000):
        tables.put_answered(place, "", f"k{place}", "b", ROOM)
    tables.execute("INSERT INTO erased VALUES (?, 0)", ROOM)
    tables.close()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + b"\xff" * (len(data) - len(data) // 2))
    told: list[Exception] = []
    spoilt = Tables.open(path, LARGE, "epoch")
    spoilt.on_damage = told.append
    with pytest.raises(Unavailable):
        Sweeper(LARGE, spoilt).step()
    assert [type(error) for error in told] == [sqlite3.DatabaseError]
    spoilt.close()
