"""Private rooms: for a stranger there is none. Held for every request that names a room, also those to come."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.rooms.v1 import join_pb2, transfer_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel.errors import Refusal
from services.rooms.tests.hub import USER, Hub, states

REQUESTS = sorted((*Hub().commands, *Hub().queries), key=lambda kind: kind.__name__)
BY_CODE = join_pb2.UseJoinCodeRequest  # whoever has a code need not see the room; a wrong one is refused in one way
NAMING = [kind for kind in REQUESTS if {"room", "rooms"} & set(kind.DESCRIPTOR.fields_by_name) and kind is not BY_CODE]
FIELDS: dict[str, Any] = {
    "handle": "engineer", "content": "hello @engineer", "state": 3, "status": "resolved", "folder": "mine",
}  # fmt: skip


@pytest.fixture
def secret(demo: Hub) -> Hub:
    """A hub with the private room `secret` of avery, its agent `spy`, and a message in it."""
    demo.room("secret", "avery", private=True)
    demo.agent("spy", room="secret", owner="avery", team="core")
    demo.post("@spy the plan", room="secret")
    return demo


def request_of(kind: type[Message], room: str, message: str) -> Message:
    """A request that a member could make."""
    names = kind.DESCRIPTOR.fields_by_name
    given: dict[str, Any] = {name: value for name, value in FIELDS.items() if name in names}
    given |= {"message": message} if "message" in names else {}
    return kind(**given, **({"rooms": [room]} if "rooms" in names else {"room": room}))


def test_most_requests_name_a_room() -> None:
    """So that the test below bites."""
    assert len(NAMING) >= 15


@pytest.mark.parametrize("kind", NAMING, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("handle", ["engineer", "kim", "gone", "stranger", ""])
def test_absent_and_forbidden_look_the_same(secret: Hub, kind: type[Message], handle: str) -> None:
    """R2: same slug, same words, same next step, by name and by id; for agents, users, former members and nobody."""
    secret.user("kim")
    secret.agent("gone", room="secret")
    secret.leave("gone", room="secret")
    room = secret.ask(pb.GetRoomRequest(room="secret"), "avery").room.id
    message = secret.ask(pb.ListMessagesRequest(room="secret"), "avery").messages[0].id
    absent = "0190ffff-0000-7000-8000-000000000000"
    before = len(secret.facts)
    for named, missing in (("secret", "secreT!"), (room, absent), (room.upper(), absent.upper())):
        forbidden = refusal(secret, request_of(kind, named, message), handle)
        expected = refusal(secret, request_of(kind, missing, message), handle)
        assert forbidden.slug == expected.slug == "room.not_found"
        assert forbidden.detail == expected.detail.replace(missing, named)
        assert forbidden.next == expected.next.replace("'secreT!'", "secret")
        assert forbidden.extras == expected.extras
    assert len(secret.facts) == before


def test_a_wrong_code_is_refused_the_same_for_every_room(secret: Hub) -> None:
    """R2: whether the room is there or not."""
    secret.ask(join_pb2.MakeJoinCodeRequest(room="secret", handle="spy", code_digest="right"), "avery")
    told = {
        (refused.slug, refused.detail, refused.next)
        for room in ("secret", "absent", "demo", "")
        for refused in [refusal(secret, BY_CODE(room=room, handle="spy", code_digest="wrong"), "stranger")]
    }
    assert len(told) == 1


def refusal(hub: Hub, request: Message, handle: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        hub.ask(request, handle)
    return caught.value


def test_members_and_the_creator_are_let_in(secret: Hub) -> None:
    """The creator without a record of membership; a user once it was added."""
    for handle in ("avery", "spy"):
        assert secret.ask(pb.GetRoomRequest(room="secret"), handle).room.name == "secret"
    assert secret.receive("spy", room="secret")
    secret.user("kim")
    secret.agent("kim", kind=USER, room="secret")
    assert len(secret.ask(pb.ListMessagesRequest(room="secret"), "kim").messages) == 1


def test_the_creator_counts_as_a_member(secret: Hub) -> None:
    """It is delivered to, takes, responds, is suggested; until it is removed."""
    message = secret.post("@avery and @averi", "spy", room="secret", allow_unknown=True)
    assert states(message.mentions) == {"avery": "queued", "averi": "unknown"}
    assert secret.receive("avery", room="secret") == message.id
    assert secret.post("done", "avery", room="secret", respond=True).reply_to == message.id
    request = pb.PostMessageRequest(room="secret", content="@averi")
    assert secret.refused("mention.unknown", request, "spy").extras["near"] == ["avery"]
    secret.agent("avery", kind=USER, room="secret")
    secret.leave("avery", room="secret")
    assert states(secret.post("@avery", "spy", room="secret").mentions) == {"avery": "left"}


def test_a_user_of_the_hub_is_unknown_in_a_private_room(secret: Hub) -> None:
    """Neither mentioned nor suggested."""
    secret.user("kim", team="core")
    request = pb.PostMessageRequest(room="secret", content="@kim")
    assert secret.refused("mention.unknown", request, "spy").extras["near"] == []
    assert states(secret.post("@core", room="secret").mentions) == {"spy": "queued"}


def test_nothing_else_tells_of_it(secret: Hub) -> None:
    """Lists, counts, a user's agents, what is known of a handle."""
    assert [room.name for room in secret.ask(pb.ListRoomsRequest(), "stranger").rooms] == ["demo"]
    assert secret.ask(pb.GetUserRequest(handle="avery"), "stranger").user.agents == []
    assert secret.ask(pb.DescribeHandleRequest(handle="spy"), "stranger").kind == 0
    assert secret.ask(pb.DescribeHandleRequest(handle="spy"), "spy").kind == 1
    taken = secret.refused("room.name_taken", pb.CreateRoomRequest(name="Secret"), "stranger")
    shared = secret.refused("room.name_taken", pb.CreateRoomRequest(name="Demo"), "stranger")
    assert taken.detail.replace("Secret", "Demo") == shared.detail  # the one admitted leak


def test_near_names_are_those_of_rooms_that_the_caller_may_see(secret: Hub) -> None:
    """A stranger who tries names learns of none; a hidden import is nobody's."""
    for handle in ("stranger", "engineer", ""):
        refusal = secret.refused("room.not_found", pb.GetRoomRequest(room="secre"), handle)
        assert (refusal.next, "near" in refusal.extras) == ("mycelium room create secre", False)
    assert secret.refused("room.not_found", pb.GetRoomRequest(room="secre"), "spy").extras["near"] == ["secret"]
    secret.ask(transfer_pb2.ImportRoomRequest(name="secrets", operator=True, created_by="spy"), "spy")
    assert secret.refused("room.not_found", pb.GetRoomRequest(room="secre"), "spy").extras["near"] == ["secret"]
    secret.room("secretary")
    near = [secret.refused("room.not_found", pb.GetRoomRequest(room=room), "kim") for room in ("secret", "secreta")]
    assert [refusal.extras["near"] for refusal in near] == [["secretary"]] * 2


def test_making_a_room_private_keeps_its_members(demo: Hub) -> None:
    """And is refused to who would lose it: a user of the hub is no member of a private room."""
    demo.user("kim")
    request = pb.ChangeRoomRequest(room="demo", private=True)
    assert demo.refused("handle.unregistered", request, "kim").next == "mycelium agent create kim --room demo"
    demo.refused("handle.missing", request)
    demo.ask(request, "engineer")
    demo.refused("room.not_found", pb.GetRoomRequest(room="demo"), "kim")
    for handle in ("engineer", "reviewer", "avery"):
        assert demo.ask(pb.GetRoomRequest(room="demo"), handle).room.private
    demo.ask(pb.ChangeRoomRequest(room="demo", private=False), "reviewer")
    assert not demo.ask(pb.GetRoomRequest(room="demo"), "kim").room.private
