"""Whose rooms' memory somebody sees: a private room is not there for a stranger, whatever is asked."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from mycelium.memory.v1 import (
    catchup_pb2,
    changes_pb2,
    files_pb2,
    links_pb2,
    moves_pb2,
    subscriptions_pb2,
    transfer_pb2,
)
from mycelium.memory.v1 import service_pb2 as pb
from services.memory.tests.hub import Hub

ASKED: tuple[Message, ...] = (
    pb.WriteDocumentRequest(room="vault", key="a", body="x"),
    pb.WriteDocumentRequest(room="vault", key="a", fields_json='{"a": 1}'),
    pb.RemoveDocumentRequest(room="vault", key="a"),
    pb.GetDocumentRequest(room="vault", key="a"),
    pb.GetVersionRequest(room="vault", key="a", version=1),
    pb.ListDocumentsRequest(room="vault"),
    pb.ListDocumentsRequest(room="vault", at="1h"),
    pb.ListVersionsRequest(room="vault", key="a"),
    pb.FindThreadRequest(room="vault", key="a"),
    transfer_pb2.ExportDocumentsRequest(room="vault"),
    links_pb2.GetLinksRequest(room="vault", key="a"),
    links_pb2.GetGraphRequest(room="vault"),
    links_pb2.ExpandDocumentRequest(room="vault", key="a"),
    catchup_pb2.CatchUpRequest(room="vault"),
    changes_pb2.ListChangesRequest(rooms=["vault"], patterns=["*"]),
    subscriptions_pb2.SubscribeRequest(room="vault", pattern="work/"),
    subscriptions_pb2.UnsubscribeRequest(room="vault", pattern="*"),
    subscriptions_pb2.ListSubscriptionsRequest(room="vault", handle="avery"),
)
OWN = {files_pb2.TakeFileRequest, moves_pb2.FollowMoveRequest, transfer_pb2.ImportDocumentsRequest}


def test_every_request_is_asked_here() -> None:
    """A new one is not forgotten; what is asked by the hub itself names a room by its id alone."""
    hub = Hub()
    assert {type(request) for request in ASKED} | OWN == {*hub.commands, *hub.queries}


@pytest.mark.parametrize("request_", ASKED, ids=lambda request: request.DESCRIPTOR.name)
def test_a_stranger_is_told_that_there_is_no_such_room(request_: Message) -> None:
    """Word for word what is said of a room that never was."""
    hub, other = Hub(), Hub()
    vault = hub.room("vault", private=True)
    hub.write("a", "secret", room="vault")
    said = hub.refused("room.not_found", request_, "kim").encode()

    assert said == other.refused("room.not_found", request_, "kim").encode()
    assert said == hub.refused("room.not_found", request_, "").encode()
    hub.join(vault, "kim")
    hub.ask(subscriptions_pb2.SubscribeRequest(room="vault", pattern="*"), "kim")
    hub.ask(request_, "kim")


def test_who_left_a_private_room_is_a_stranger(demo: Hub) -> None:
    """And who made it never is; a public one is everybody's."""
    room_id = demo.room("vault", private=True)
    demo.join(room_id, "kim")
    demo.write("a", "x", by="kim", room="vault")
    demo.leave(room_id, "kim")
    demo.refused("room.not_found", pb.GetDocumentRequest(room="vault", key="a"), "kim")
    assert demo.get("a", room=room_id).content.body == "x"
    demo.set_private(room_id, private=False)
    assert demo.get("a", "anybody", "VAULT").content.body == "x"
    demo.set_private(room_id)
    demo.refused("room.not_found", pb.GetDocumentRequest(room=room_id, key="a"), "anybody")


def test_names_of_rooms_that_one_can_t_see_are_not_offered(demo: Hub) -> None:
    """A slip is helped with, by what the caller may see."""
    demo.room("demon", private=True)
    request = pb.ListDocumentsRequest(room="dem")
    assert demo.refused("room.not_found", request, "kim").extras["near"] == ["demo"]
    assert set(demo.refused("room.not_found", request, "avery").extras["near"]) == {"demo", "demon"}


def test_a_room_that_is_being_imported_is_nobody_s_yet(demo: Hub) -> None:
    """Not its importer's either."""
    room_id = demo.room("new", importing=True)
    demo.refused("room.not_found", pb.ListDocumentsRequest(room="new"))
    demo.finish_import(room_id)
    assert demo.listed(room="new") == []


def test_a_deleted_room_leaves_nothing_and_its_neighbours_stay(demo: Hub) -> None:
    """Gone at once, swept from the tables after; a new room of that name begins empty."""
    room_ids = {name: demo.room(name) for name in ("a", "ab", "a b")}
    for name in room_ids:
        demo.write("k", f"text of {name}", room=name, tags=["t"])
        demo.write("k", f"again of {name}", room=name)
    demo.delete_room(room_ids["a"], "a")
    demo.refused("room.not_found", pb.GetDocumentRequest(room="a", key="k"))
    demo.sweep()
    assert not [row for rows in demo.tables.dump().values() for row in rows if row[0] == room_ids["a"] and len(row) > 2]
    demo.room("a")
    assert demo.listed(room="a") == []
    demo.refused("memory.not_found", pb.GetVersionRequest(room="a", key="k", version=1))
    assert demo.get("k", room="ab").content.body == "again of ab"
    assert demo.get("k", room="a b").content.body == "again of a b"
