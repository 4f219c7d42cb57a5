"""Every fact that was read has a hash in the chain of its room, which nothing but the facts themselves decides."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium_kernel import chain, events, headers, subjects
from mycelium_kernel.applier import Applier
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact
from services.kernel.tests import toy
from services.kernel.tests.toy import ROOM

OTHER = ROOM[:-1] + "2"


def fact(place: int, subject: str, event: Any, **changes: Any) -> RawFact:
    kind = events.type_name(event)
    made = RawFact(place, subject, kind, event.SerializeToString(), {headers.TYPE: kind, headers.ACTOR: "a"}, 1_000)
    return dataclasses.replace(made, **changes)


def posted(place: int, room: str = ROOM, **changes: Any) -> RawFact:
    return fact(place, subjects.posts(room), events_pb2.MessagePosted(room_id=room, content="x"), **changes)


def created(place: int, room: str) -> RawFact:
    return fact(place, subjects.room_name("name"), events_pb2.RoomCreated(room_id=room))


def deleted(place: int, room: str) -> RawFact:
    return fact(place, subjects.room_name("name"), events_pb2.RoomDeleted(room_id=room))


def links(*facts: RawFact) -> list[tuple[str, int, bytes]]:
    """The chains of tables that have read these facts."""
    tables, applier = Tables.anew(None, toy.PROJECTION, "epoch"), Applier(toy.PROJECTION)
    for one in facts:
        applier.apply(tables, one)
    found = tables.dump()["chain"]
    tables.close()
    return found


def test_a_chain_goes_from_fact_to_fact_of_its_room() -> None:
    """Whatever comes between them in other rooms."""
    first, last = posted(1), posted(3)
    begun = chain.link(chain.START, first)
    expected = [(ROOM, 1, begun), (ROOM, 3, chain.link(begun, last))]
    assert [row for row in links(first, posted(2, OTHER), last) if row[0] == ROOM] == expected
    assert len(begun) == chain.SIZE


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": 2},
        {"time": 1_001},
        {"subject": subjects.fact("rooms", ROOM, "member", "a")},
        {"headers": {headers.ACTOR: "b"}},
        {"data": b"x"},
        {"headers": {"a": "", "b": "c:d"}, "data": b""},
    ],
)
def test_whatever_differs_in_a_fact_differs_in_its_hash(changes: dict[str, Any]) -> None:
    """Each part of it counts."""
    assert chain.link(chain.START, posted(1)) != chain.link(chain.START, dataclasses.replace(posted(1), **changes))


def test_facts_of_types_that_nobody_reads_have_their_place() -> None:
    """They are in the log, so they can be damaged there."""
    assert [row[1] for row in links(posted(1), posted(2, type="mycelium.later.v9.Unheard", data=b"\xff"))] == [1, 2]


def test_the_creation_of_a_room_goes_with_it_and_its_tombstone_stays() -> None:
    """A name outlives its rooms: what is erased from the log must leave no gap in a chain."""
    story = [created(1, ROOM), posted(2), deleted(3, ROOM), posted(4), created(5, OTHER), deleted(6, OTHER)]
    erased = [one for one in story if one.sequence in {3, 6}]
    assert links(*story) == links(*erased)
    assert [row[:2] for row in links(*story)] == [(subjects.NAMES, 3), (subjects.NAMES, 6)]
    assert (OTHER, 5) in [row[:2] for row in links(*story[:5])]


def test_tables_from_what_the_eraser_leaves_are_the_same() -> None:
    """The key under which a room was made is forgotten with the room, as its creation is."""
    facts = (created(1, ROOM), posted(2), deleted(3, ROOM))
    story = [dataclasses.replace(one, headers={headers.KEY: f"k{one.sequence}", headers.BODY: "b"}) for one in facts]
    rows = []
    for left in (story, story[2:]):
        tables, applier = Tables.anew(None, toy.PROJECTION, "epoch"), Applier(toy.PROJECTION)
        for one in left:
            applier.apply(tables, one)
        rows.append(tables.dump())
        tables.close()
    assert rows[0] == rows[1]


def test_a_chain_goes_on_where_the_file_has_it() -> None:
    """After a restart and after a rollback nothing is remembered but what was committed."""
    tables, applier = Tables.anew(None, toy.PROJECTION, "epoch"), Applier(toy.PROJECTION)
    for place in (1, 2):
        tables.begin()
        applier.apply(tables, posted(place, data=b""))
        tables.rollback()
        tables.begin()
        applier.apply(tables, posted(place))
        tables.commit(place)
        tables.heads.clear()
    assert tables.dump()["chain"] == links(posted(1), posted(2))
    tables.close()
