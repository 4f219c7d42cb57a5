"""Rooms: created, changed, listed, deleted; the refusals of each."""

from __future__ import annotations

import pytest

from mycelium.rooms.v1 import events_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Done, Fact
from mycelium_rooms.service import PROJECTION
from services.rooms.tests.hub import START, Hub, words_of


def test_a_new_room_stands_on_the_subject_of_its_name(hub: Hub) -> None:
    """The name decides: two creates of one name meet on one subject."""
    fact = hub.decide(pb.CreateRoomRequest(name=" CE-Area Team ", title="Plans", private=True), "avery")
    assert isinstance(fact, Fact)
    assert fact.event == events_pb2.RoomCreated(
        room_id=hub.new_id().replace("2", "1"),
        name="CE-Area Team",
        title="Plans",
        private=True,
        created_by="avery",
        created_at=clock.to_timestamp(START),
    )
    assert fact.on is not None
    assert fact.on.subject == subjects.room_name("ce-area team")


@pytest.mark.parametrize("name", ["demo", "DEMO", " Demo "])
def test_a_second_room_of_a_name_is_refused_with_the_next_step(demo: Hub, name: str) -> None:
    """Names are unique after NFC and case folding."""
    refusal = demo.refused("room.name_taken", pb.CreateRoomRequest(name=name), "avery")
    assert refusal.next.startswith("mycelium room use")


@pytest.mark.parametrize("name", ["", "  ", ".", "..", "a/b", "a\\b", "a\nb", "x:session:y", "x" * 101, "é" * 128])
def test_a_name_that_breaks_the_rules_is_refused(hub: Hub, name: str) -> None:
    """The rules of the documentation."""
    hub.refused("name.invalid", pb.CreateRoomRequest(name=name))


def test_a_room_needs_no_creator_unless_it_is_private(hub: Hub) -> None:
    """A private room of nobody would be listed for nobody."""
    assert hub.ask(pb.CreateRoomRequest(name="open")).room.created_by == ""
    refusal = hub.refused("handle.missing", pb.CreateRoomRequest(name="secret", private=True))
    assert refusal.next == "mycelium iam NAME"


@pytest.mark.parametrize("title", ["x" * 201, "two\nlines", "bell\a"])
def test_a_title_is_one_line(hub: Hub, title: str) -> None:
    """Lists show it on one line."""
    hub.refused("request.invalid", pb.CreateRoomRequest(name="x", title=title))


def test_a_room_is_named_by_id_or_by_name_in_any_case(demo: Hub) -> None:
    """Every request takes either."""
    room = demo.ask(pb.GetRoomRequest(room="DEMO")).room
    assert demo.ask(pb.GetRoomRequest(room=room.id.upper())).room == room


@pytest.mark.parametrize(
    ("room", "next_command"),
    [
        ("nope", "mycelium room create nope"),
        ("two words", "mycelium room create 'two words'"),
        ("a/b", "mycelium room ls"),
    ],
)
def test_an_unknown_room_is_refused_with_the_next_step(demo: Hub, room: str, next_command: str) -> None:
    """The refusal names the room as it was written."""
    refusal = demo.refused("room.not_found", pb.GetRoomRequest(room=room))
    assert refusal.detail == f"Room not found: {room!r}"
    assert refusal.next == next_command
    assert "near" not in refusal.extras


def test_a_name_that_is_nearly_a_rooms_is_refused_with_those_meant(demo: Hub) -> None:
    """R1: the likest first, three at most, as their creators wrote them; to create another is not the next step."""
    refusal = demo.refused("room.not_found", pb.GetRoomRequest(room="Dem"))
    assert refusal.detail == "Room not found: 'Dem'; did you mean 'demo'?"
    assert (refusal.next, refusal.extras["near"]) == ("mycelium room ls", ["demo"])
    for name in ("Launch 1", "Launch 2", "Launch 3", "Launch 4", "something else"):
        demo.room(name)
    refusal = demo.refused("room.not_found", pb.GetRoomRequest(room="launch"))
    assert len(refusal.extras["near"]) == 3
    assert {name[:-1] for name in refusal.extras["near"]} == {"Launch "}
    assert refusal.detail.count(" or ") == 2


def test_a_name_that_no_room_can_have_is_near_to_none(demo: Hub) -> None:
    """Neither is an id: two ids are alike by chance only."""
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    for text in ("demo/", f"{room_id[:-1]}f", "x" * 101):
        assert "near" not in demo.refused("room.not_found", pb.GetRoomRequest(room=text)).extras


def test_a_long_unknown_name_is_cut_in_the_refusal(hub: Hub) -> None:
    """A refusal is one line."""
    assert len(hub.refused("room.not_found", pb.GetRoomRequest(room="x" * 5000)).detail) < 100


def test_a_change_keeps_what_is_not_given(demo: Hub) -> None:
    """The fact holds the settings whole."""
    demo.later(seconds=1)
    room = demo.ask(pb.ChangeRoomRequest(room="demo", title=" The demo "), "avery").room
    assert (room.title, room.private, room.name, room.created_by) == ("The demo", False, "demo", "avery")
    assert demo.ask(pb.ChangeRoomRequest(room="demo", private=True), "avery").room.title == "The demo"
    shown = demo.ask(pb.GetRoomRequest(room="demo"), "avery").room
    assert (shown.title, shown.private, shown.members) == ("The demo", True, 2)
    assert shown.created_at == room.created_at


def test_a_change_of_nothing_is_no_fact(demo: Hub) -> None:
    """Saying what is already so leaves no trace."""
    decided = demo.decide(pb.ChangeRoomRequest(room="demo", title="", private=False), "avery")
    assert isinstance(decided, Done)
    assert decided.answer.room.name == "demo"  # type: ignore[attr-defined]


def test_who_makes_a_room_private_says_who_they_are(demo: Hub) -> None:
    """Otherwise the room would vanish for its own caller."""
    demo.refused("handle.missing", pb.ChangeRoomRequest(room="demo", private=True))


def test_a_change_of_a_room_whose_settings_are_gone_is_refused(demo: Hub) -> None:
    """The room was deleted in the same moment."""
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    demo.tables.execute("DELETE FROM entity WHERE subject LIKE ?", f"%{room_id}.room.%")
    demo.refused("room.not_found", pb.ChangeRoomRequest(room="demo", title="x"))


def test_a_deleted_room_is_gone_and_its_name_free(demo: Hub) -> None:
    """Nothing of the old room comes back with its name."""
    demo.post("@engineer hello")
    before = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    assert demo.ask(pb.DeleteRoomRequest(room="demo"), "avery").room_id == before
    demo.refused("room.not_found", pb.GetRoomRequest(room="demo"))
    demo.refused("room.not_found", pb.GetRoomRequest(room=before))
    after = demo.room()
    assert after != before
    assert not demo.ask(pb.ListMessagesRequest(room="demo")).messages
    assert not demo.ask(pb.ListMembersRequest(room="demo")).members
    demo.sweep()
    assert words_of(demo.tables) == []
    for table in (*PROJECTION.room_tables[1:], *PROJECTION.swept_tables):
        assert demo.tables.all(f"SELECT * FROM {table}") == [], table


def test_a_room_that_another_call_has_deleted_is_refused(demo: Hub) -> None:
    """The name may belong to a new room by then."""
    first = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    subject = subjects.room_name("demo")
    state = events_pb2.NameState(room_id="another")
    demo.tables.put_entity(subject, 99, state)
    demo.refused("room.not_found", pb.DeleteRoomRequest(room=first))
    demo.tables.execute("DELETE FROM entity WHERE subject = ?", subject)
    demo.refused("room.not_found", pb.DeleteRoomRequest(room=first))


def test_rooms_are_listed_by_name_in_pages(hub: Hub) -> None:
    """A list of any length comes whole, page after page."""
    for number in range(205):
        hub.room(f"Room {number:03}")
    first = hub.ask(pb.ListRoomsRequest())
    second = hub.ask(pb.ListRoomsRequest(cursor=first.next))
    assert [room.name for room in (*first.rooms, *second.rooms)] == [f"Room {number:03}" for number in range(205)]
    assert second.next == ""


def test_a_private_room_is_listed_for_its_creator_and_members(hub: Hub) -> None:
    """R2: others do not see that it is there."""
    hub.room("scratch", "avery", private=True)
    hub.agent("bot", "gone", room="scratch")
    hub.leave("gone", room="scratch")
    listed = {
        handle: [room.name for room in hub.ask(pb.ListRoomsRequest(), handle).rooms]
        for handle in ("avery", "bot", "gone", "stranger", "")
    }
    assert listed == {"avery": ["scratch"], "bot": ["scratch"], "gone": [], "stranger": [], "": []}


def test_a_room_says_when_somebody_last_posted(demo: Hub) -> None:
    """Absent in an empty room."""
    assert not demo.ask(pb.GetRoomRequest(room="demo")).room.HasField("last_message_at")
    demo.later(seconds=5)
    message = demo.post("hello")
    assert demo.ask(pb.GetRoomRequest(room="demo")).room.last_message_at == message.created_at
