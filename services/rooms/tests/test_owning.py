"""Who may change what is somebody's, once callers have proven who they are; and that all may where nobody has to."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Fact
from services.rooms.tests.hub import ENGINE, USER, Hub

EVERYBODY = ("avery", "kim", "lee", "eve", "bot", "stray", "greeter", "scout")
AGENTS = {"bot", "stray", "scout"}


@pytest.fixture
def proven(demo: Hub) -> Hub:
    """The room `demo` of avery, where all have signed in: bot is kim's, stray and greeter were added by lee."""
    demo.signed_in = {handle: "agent" if handle in AGENTS else "user" for handle in EVERYBODY}
    demo.user("kim")
    demo.user("lee")
    demo.agent("bot", by="lee", owner="kim", allow_from=["eve"], set_allow_from=True)
    demo.agent("stray", by="lee")
    demo.agent("greeter", by="lee", kind=ENGINE, engine_kind=views_pb2.ENGINE_KIND_HELLO)
    demo.agent("kim", by="lee", kind=USER)
    return demo


def may(hub: Hub, request: Message) -> set[str]:
    """Who of them may do something; each of the others is told that it is somebody else's."""
    refusals: dict[str, Refusal] = {}
    for handle in EVERYBODY:
        try:
            hub.decide(request, handle)
        except Refusal as refusal:
            refusals[handle] = refusal
    assert {refusal.slug for refusal in refusals.values()} <= {"record.foreign"}
    assert all(refusal.detail.endswith(f"and you are @{handle}") for handle, refusal in refusals.items())
    return set(EVERYBODY) - refusals.keys()


@pytest.mark.parametrize(
    ("handle", "allowed"),
    [
        ("bot", {"bot", "kim"}),
        ("stray", {"stray", "lee"}),
        ("greeter", {"greeter", "lee", "avery"}),
        ("kim", {"kim"}),
    ],
)
@pytest.mark.parametrize(
    "field", [{"owner": "eve"}, {"notes": "x"}, {"paused": True}, {"allow_from": ["eve", "x"]}], ids=str
)
def test_a_record_is_changed_by_whose_it_is(proven: Hub, handle: str, allowed: set[str], field: dict[str, Any]) -> None:
    """identity: an agent's by itself and its owner, or who added it; an engine's also by the room's creator."""
    change = pb.SaveMemberRequest(room="demo", handle=handle, change_only=True, **field)
    change.set_allow_from = "allow_from" in field
    assert may(proven, change) == allowed
    change.change_only = False
    assert may(proven, change) == allowed


@pytest.mark.parametrize(
    ("handle", "allowed"),
    [
        ("bot", {"bot", "kim", "avery"}),
        ("stray", {"stray", "lee", "avery"}),
        ("greeter", {"greeter", "lee", "avery"}),
        ("kim", {"kim", "avery"}),
    ],
)
def test_a_member_is_removed_by_whose_it_is_and_the_rooms_creator(proven: Hub, handle: str, allowed: set[str]) -> None:
    """identity: who may only act for an agent does not send it away."""
    assert may(proven, pb.RemoveMemberRequest(room="demo", handle=handle)) == allowed


def test_who_has_an_owner_is_theirs_alone(proven: Hub) -> None:
    """Who added it gives it away once, and cannot take it back."""
    proven.agent("stray", by="lee", owner="kim")
    assert may(proven, pb.SaveMemberRequest(room="demo", handle="stray", owner="lee")) == {"stray", "kim"}
    proven.agent("stray", by="kim", owner="")
    assert may(proven, pb.SaveMemberRequest(room="demo", handle="stray", owner="lee")) == {"stray", "lee"}


def test_who_has_left_comes_back_by_those_whose_it_was(proven: Hub) -> None:
    """identity: nobody gets another's queue by adding its handle again."""
    proven.ask(pb.RemoveMemberRequest(room="demo", handle="bot"), "kim")
    again = pb.SaveMemberRequest(room="demo", handle="bot", owner="eve")
    assert may(proven, again) == {"bot", "kim", "avery"}
    proven.ask(pb.RemoveMemberRequest(room="demo", handle="kim"), "kim")
    assert may(proven, pb.SaveMemberRequest(room="demo", handle="kim", kind=USER)) == set(EVERYBODY)


def test_a_member_that_nobody_is_known_to_have_added_is_its_own(proven: Hub) -> None:
    """From before anybody signed in."""
    room = proven.ask(pb.GetRoomRequest(room="demo")).room.id
    at = clock.to_timestamp(proven.now)
    member = views_pb2.Member(handle="scout", kind=views_pb2.MEMBER_KIND_AGENT, created_at=at, updated_at=at)
    subject = subjects.fact("rooms", room, "member", "scout")
    proven.store(Fact(events_pb2.MemberSaved(room_id=room, member=member, joined=True), subject=subject))
    assert may(proven, pb.SaveMemberRequest(room="demo", handle="scout", owner="eve")) == {"scout"}
    assert may(proven, pb.RemoveMemberRequest(room="demo", handle="scout")) == {"scout", "avery"}


def test_a_person_is_changed_by_themselves(proven: Hub) -> None:
    """identity: made by anybody, changed by nobody else; an agent is no person."""
    assert may(proven, pb.SaveUserRequest(handle="kim", name="Kim Lee")) == {"kim"}
    assert may(proven, pb.SaveUserRequest(handle="eve", name="Eve")) == set(EVERYBODY)
    proven.leave("bot")
    refusal = proven.refused("record.foreign", pb.SaveUserRequest(handle="bot"), "bot")
    assert "signs in as an agent" in refusal.detail
    proven.signed_in["kim"] = "agent"
    proven.refused("record.foreign", pb.SaveUserRequest(handle="kim", name="Not Kim"), "kim")


def test_a_room_is_deleted_by_who_made_it(proven: Hub) -> None:
    """identity: one that nobody is known to have made by its members."""
    assert may(proven, pb.DeleteRoomRequest(room="demo")) == {"avery"}
    proven.ask(pb.CreateRoomRequest(name="old"), "")
    proven.agent("stray", room="old", by="lee")
    assert may(proven, pb.DeleteRoomRequest(room="old")) == {"stray"}


def test_a_room_is_hidden_and_opened_by_who_made_it(proven: Hub) -> None:
    """identity: who joins shuts nobody out and lets nobody in; its title is for all who see it."""
    assert may(proven, pb.ChangeRoomRequest(room="demo", title="Demo")) == set(EVERYBODY)
    with pytest.raises(Refusal, match="would not see it any more"):
        proven.decide(pb.ChangeRoomRequest(room="demo", private=True), "eve")
    for member in ("stray", "kim"):
        proven.refused("record.foreign", pb.ChangeRoomRequest(room="demo", private=True), member)
    proven.ask(pb.ChangeRoomRequest(room="demo", private=True), "avery")
    proven.refused("room.not_found", pb.ChangeRoomRequest(room="demo", private=False), "eve")
    proven.refused("record.foreign", pb.ChangeRoomRequest(room="demo", private=False), "stray")
    proven.ask(pb.ChangeRoomRequest(room="demo", private=True, title="Hidden"), "stray")
    proven.ask(pb.ChangeRoomRequest(room="demo", private=False), "avery")


def test_a_room_of_nobody_is_hidden_by_its_members(proven: Hub) -> None:
    """From before anybody signed in."""
    proven.ask(pb.CreateRoomRequest(name="old"), "")
    proven.agent("stray", room="old", by="lee")
    proven.ask(pb.ChangeRoomRequest(room="old", private=True), "stray")


def test_a_stranger_is_not_told_that_a_record_is_somebodys(proven: Hub) -> None:
    """identity: in a private room all is absent, as ever."""
    proven.ask(pb.ChangeRoomRequest(room="demo", private=True), "avery")
    for request in (
        pb.SaveMemberRequest(room="demo", handle="bot", owner="eve"),
        pb.RemoveMemberRequest(room="demo", handle="bot"),
        pb.ChangeRoomRequest(room="demo", private=False),
        pb.DeleteRoomRequest(room="demo"),
    ):
        proven.refused("room.not_found", request, "eve")


def test_where_nobody_signs_in_everybody_may(proven: Hub) -> None:
    """A handle is a claim there."""
    proven.signed_in.clear()
    for request in (
        pb.SaveMemberRequest(room="demo", handle="bot", owner="eve"),
        pb.SaveUserRequest(handle="kim", name="Kim Lee"),
        pb.SaveUserRequest(handle="avery", name="Avery"),
        pb.RemoveMemberRequest(room="demo", handle="bot"),
        pb.DeleteRoomRequest(room="demo"),
    ):
        assert may(proven, request) == set(EVERYBODY)


def test_who_may_act_is_added_to_and_replaced(proven: Hub) -> None:
    """What an agent is created with again comes to what is there; a change of the record may take away."""
    add = pb.SaveMemberRequest(room="demo", handle="bot", allow_from=["ops", "eve"], add_allow_from=True)
    assert list(proven.ask(add, "kim").member.allow_from) == ["eve", "ops"]
    assert proven.ask(pb.SaveMemberRequest(room="demo", handle="bot", owner="lee"), "kim").member.owner == "lee"
    replace = pb.SaveMemberRequest(room="demo", handle="bot", allow_from=["lee"], set_allow_from=True)
    assert list(proven.ask(replace, "lee").member.allow_from) == ["lee"]
    many = pb.SaveMemberRequest(
        room="demo", handle="bot", allow_from=map("a{}".format, range(100)), add_allow_from=True
    )
    assert "101 handles" in proven.refused("request.invalid", many, "lee").detail


def test_an_operator_changes_and_removes_every_record(proven: Hub) -> None:
    """identity: agents with an owner, engines, people; what is changed stands as theirs who did it."""
    proven.operators = {"eve"}
    for handle in ("bot", "stray", "greeter", "kim"):
        change = pb.SaveMemberRequest(room="demo", handle=handle, notes="kept", change_only=True)
        assert "eve" in may(proven, change)
        assert "eve" in may(proven, pb.RemoveMemberRequest(room="demo", handle=handle))
    for handle, name in (("kim", "Kim Lee"), ("avery", "Avery")):
        assert may(proven, pb.SaveUserRequest(handle=handle, name=name)) == {handle, "eve"}
    saved = proven.decide(pb.SaveMemberRequest(room="demo", handle="bot", owner="lee"), "eve")
    assert isinstance(saved, Fact)
    assert isinstance(saved.event, events_pb2.MemberSaved)
    assert (saved.event.saved_by, saved.event.member.owner) == ("eve", "lee")
    assert may(proven, pb.DeleteRoomRequest(room="demo")) == {"avery"}


def test_an_operator_adds_who_has_written_already(proven: Hub) -> None:
    """Who signs in as an agent of a cluster may be quicker than its room; a likeness is refused to operators too."""
    proven.post("first", "scout")
    added = pb.SaveMemberRequest(room="demo", handle="scout")
    proven.refused("handle.taken", added, "eve")
    proven.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="b0t"), "eve")
    proven.operators = {"eve"}
    proven.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="b0t"), "eve")
    assert proven.ask(added, "eve").joined
