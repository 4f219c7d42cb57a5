"""Folders: how one person's own list of rooms is sorted."""

from __future__ import annotations

import pytest

from mycelium.rooms.v1 import events_pb2, folders_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Done, Fact
from services.rooms.tests.hub import Hub


def put(hub: Hub, room: str, folder: str, handle: str = "avery") -> str:
    return str(hub.ask(folders_pb2.FileRoomRequest(room=room, folder=folder), handle).folder)


def folders(hub: Hub, handle: str) -> dict[str, str]:
    return {room.name: room.folder for room in hub.ask(pb.ListRoomsRequest(), handle).rooms}


def test_a_folder_is_seen_by_who_made_it_alone(demo: Hub) -> None:
    """R1: in the list and in the room itself; others have their own."""
    demo.room("other")
    assert put(demo, "demo", " Work ") == "Work"
    put(demo, "demo", "elsewhere", "engineer")
    assert folders(demo, "avery") == {"demo": "Work", "other": ""}
    assert folders(demo, "engineer") == {"demo": "elsewhere", "other": ""}
    assert folders(demo, "") == {"demo": "", "other": ""}
    assert demo.ask(pb.GetRoomRequest(room="demo"), "avery").room.folder == "Work"
    put(demo, "demo", "")
    assert folders(demo, "avery") == {"demo": "", "other": ""}
    assert folders(demo, "engineer")["demo"] == "elsewhere"


def test_filing_a_room_is_one_fact_of_that_person_and_room(demo: Hub) -> None:
    """Where it is already is no fact."""
    fact = demo.decide(folders_pb2.FileRoomRequest(room="demo", folder="Work"), "@Avery")
    assert isinstance(fact, Fact)
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    assert fact.on is not None
    assert fact.on.subject == subjects.fact("rooms", room_id, "folder", "avery")
    assert fact.event == events_pb2.FolderSet(
        room_id=room_id, handle="avery", folder="Work", set_at=clock.to_timestamp(demo.now)
    )
    demo.store(fact)
    assert isinstance(demo.decide(folders_pb2.FileRoomRequest(room="demo", folder="Work"), "avery"), Done)
    assert isinstance(demo.decide(folders_pb2.FileRoomRequest(room="demo"), "kim"), Done)


@pytest.mark.parametrize("folder", ["x" * 101, "two\nlines"])
def test_a_folder_is_a_name_on_one_line(demo: Hub, folder: str) -> None:
    """And somebody's."""
    demo.refused("request.invalid", folders_pb2.FileRoomRequest(room="demo", folder=folder), "avery")
    demo.refused("handle.missing", folders_pb2.FileRoomRequest(room="demo", folder="x"))


def test_folders_go_with_their_room(demo: Hub) -> None:
    """A new room of the name is in none."""
    put(demo, "demo", "Work")
    demo.ask(pb.DeleteRoomRequest(room="demo"), "avery")
    demo.room()
    assert folders(demo, "avery") == {"demo": ""}
