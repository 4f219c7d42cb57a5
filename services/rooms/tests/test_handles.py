"""Which handles and names can be had, and which can be taken for somebody else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.lookalikes import skeleton
from mycelium_kernel.service import Fact
from services.rooms.tests.hub import AGENT, ENGINE, USER, Hub, demo_hub

OTHER_LETTERS = ["аvery", "ａvery", "\u212aim", "ki\u200bm", "\u202ekim", "kim\u200f", "avеry", "ıda", "ﬁn"]


@pytest.mark.parametrize("handle", OTHER_LETTERS, ids=ascii)
def test_letters_of_other_alphabets_are_no_handles(demo: Hub, handle: str) -> None:
    """identity: wherever a handle is taken: as member, user, engine, owner, who may act, and who asks."""
    for request in (
        pb.SaveMemberRequest(room="demo", handle=handle),
        pb.SaveMemberRequest(room="demo", handle=handle, kind=ENGINE),
        pb.SaveMemberRequest(room="demo", handle="bot", owner=handle),
        pb.SaveMemberRequest(room="demo", handle="bot", allow_from=[handle], set_allow_from=True),
        pb.SaveUserRequest(handle=handle),
        pb.RemoveMemberRequest(room="demo", handle=handle),
        pb.DescribeHandleRequest(handle=handle),
    ):
        demo.refused("handle.invalid", request, "avery")
    demo.refused("handle.invalid", pb.PostMessageRequest(room="demo", content="hello"), handle)


@pytest.mark.parametrize(
    "handle", ["system", "HUB", "everyone", "board", "aligner", "worker", "b0ard", "a11", "operator"]
)
def test_names_of_the_hub_are_given_to_nobody(demo: Hub, handle: str) -> None:
    """Neither to agents nor to people."""
    demo.refused("handle.invalid", pb.SaveMemberRequest(room="demo", handle=handle))
    demo.refused("handle.invalid", pb.SaveUserRequest(handle=handle))


@pytest.mark.parametrize("handle", ["system", "Hub", "@all"])
def test_nobody_speaks_as_the_hub(demo: Hub, handle: str) -> None:
    """Although unregistered handles may post."""
    demo.refused("handle.invalid", pb.PostMessageRequest(room="demo", content="hello"), handle)
    demo.post("hello", "nobody")


def test_an_engine_may_be_called_like_its_kind_and_stays_one(demo: Hub) -> None:
    """No agent gets the name afterwards, not even when the engine has left."""
    demo.agent("aligner", kind=ENGINE)
    demo.refused("handle.invalid", pb.SaveMemberRequest(room="demo", handle="aligner", kind=AGENT))
    demo.leave("aligner")
    demo.refused("handle.invalid", pb.SaveMemberRequest(room="demo", handle="aligner"))
    demo.agent("aligner", kind=ENGINE)


@pytest.mark.parametrize("handle", ["eng1neer", "engineeR-", "en.gineer", "englneer", "reviewer_", "re-vvevver"])
def test_a_handle_like_a_members_is_taken(demo: Hub, handle: str) -> None:
    """identity: the refusal says for whom it can be taken. In another room it is free."""
    demo.agent("re-wewer")
    refusal = demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle=handle))
    assert refusal.extras["near"][0] in refusal.detail
    demo.room("other")
    demo.agent(handle, room="other")


@pytest.mark.parametrize("handle", ["avery-quinn", "averyquinn", "avery.quinn", "Avery_Qu1nn", "averyqulnn"])
def test_a_persons_name_is_nobody_elses_handle(demo: Hub, handle: str) -> None:
    """identity: neither an agent's, in no room, nor another person's."""
    demo.room("other")
    for request in (
        pb.SaveMemberRequest(room="other", handle=handle),
        pb.SaveMemberRequest(room="other", handle=handle, kind=ENGINE),
        pb.SaveUserRequest(handle=handle),
    ):
        refusal = demo.refused("handle.taken", request, "kim")
        assert "'Avery Quinn' (@avery)" in refusal.detail
    demo.user("avery", name="Avery")
    demo.user(handle)


def test_a_handle_like_a_users_is_taken(demo: Hub) -> None:
    """By agents and by people."""
    demo.user("paul")
    demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="pau1"))
    demo.refused("handle.taken", pb.SaveUserRequest(handle="p.aul"))


def test_a_user_like_an_agent_that_the_caller_sees_is_taken(demo: Hub) -> None:
    """identity: and nobody learns so of an agent of a private room."""
    demo.room("secret", "kim", private=True)
    demo.agent("spymaster", room="secret", by="kim")
    assert "@engineer" in demo.refused("handle.taken", pb.SaveUserRequest(handle="engineer_"), "stranger").detail
    assert "@spymaster" in demo.refused("handle.taken", pb.SaveUserRequest(handle="spy-master"), "kim").detail
    for handle in ("stranger", ""):
        assert isinstance(demo.decide(pb.SaveUserRequest(handle="spy-master"), handle), Fact)
    assert "spymaster" not in demo.refused("handle.taken", pb.SaveUserRequest(handle="spymaster")).detail.replace(
        "@spymaster", ""
    )


def test_where_a_handle_is_an_agents_is_told_to_who_sees_it(demo: Hub) -> None:
    """identity: so that a person whose handle an agent has can end that; of private rooms nothing is told."""
    demo.room("secret", "kim", private=True)
    demo.agent("lee", room="secret", by="kim")
    refusal = demo.refused("handle.taken", pb.SaveUserRequest(handle="lee"), "lee2")
    assert (refusal.next, "secret" in refusal.detail) == ("", False)
    assert "'secret'" in demo.refused("handle.taken", pb.SaveUserRequest(handle="lee"), "kim").detail
    demo.agent("lee", by="mallory")
    demo.signed_in = {"lee": "user", "mallory": "user"}
    told = demo.refused("handle.taken", pb.SaveUserRequest(handle="lee"), "lee2")
    assert told.next == "mycelium agent rm lee --room demo"
    demo.ask(pb.RemoveMemberRequest(room="demo", handle="lee"), "lee")


def test_who_was_there_comes_back_under_its_own_name(demo: Hub) -> None:
    """And nobody like it has come in between, nor does a person keep an old member out."""
    demo.leave("engineer")
    demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="eng1neer"))
    demo.user("kim", name="Engineer")
    demo.agent("engineer")


def test_who_has_a_name_from_before_keeps_it(demo: Hub) -> None:
    """Facts that an older hub stored are taken as they are: shown, changed, and back after they have left."""
    room = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    for handle in ("worker", "eng1neer", "avery-quinn"):
        at = clock.to_timestamp(demo.now)
        member = views_pb2.Member(handle=handle, kind=AGENT, created_at=at, updated_at=at)
        subject = subjects.fact("rooms", room, "member", handle)
        demo.store(Fact(events_pb2.MemberSaved(room_id=room, member=member, joined=True), subject=subject))
        demo.agent(handle, team="core")
        demo.leave(handle)
        demo.agent(handle)
        assert demo.ask(pb.GetMemberRequest(room="demo", handle=handle)).member.handle == handle


def test_who_signed_in_under_a_handle_has_it(demo: Hub) -> None:
    """A likeness keeps out nobody whom an issuer of the hub's vouches for; a name of the hub does."""
    demo.signed_in = {"eng1neer": "agent", "averyquinn": "user", "hub": "user", "kim": "user"}
    demo.agent("eng1neer", by="eng1neer")
    demo.ask(pb.SaveUserRequest(handle="averyquinn"), "averyquinn")
    demo.refused("handle.invalid", pb.SaveUserRequest(handle="hub"), "hub")
    demo.refused("handle.taken", pb.SaveUserRequest(handle="avery.quinn"), "kim")


def test_who_has_spoken_is_nobody_elses_agent(demo: Hub) -> None:
    """identity: whoever added them as an agent could have a code made for it, join by that, and speak as them."""
    demo.signed_in = {"dora": "user", "mallory": "user", "ops": "agent"}
    demo.post("it is me", "dora")
    demo.post("it is me", "ops")
    for handle in ("dora", "ops"):
        refusal = demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle=handle), "mallory")
        assert "has written in this room already" in refusal.detail
    demo.agent("ops", by="ops", owner="mallory")
    demo.agent("other", by="mallory")
    demo.room("elsewhere", "mallory")
    demo.agent("ops", room="elsewhere", by="mallory")
    demo.signed_in = {}
    demo.agent("dora", by="mallory")


def test_a_person_is_added_to_a_room_with_an_agent_like_them(demo: Hub) -> None:
    """They are there already, on the hub, and could not know of the agent."""
    demo.room("secret", "lee", private=True)
    demo.agent("k1m", room="secret", by="lee")
    demo.user("kim")
    demo.ask(pb.SaveMemberRequest(room="secret", handle="kim", kind=USER), "lee")


@pytest.mark.parametrize("name", ["Avery Qu1nn", "AveryQuinn", "Avery-Quinn", "АВЕ", "KlM", "avery", "Sam.Iam"])
def test_a_name_that_looks_like_another_persons_is_taken(demo: Hub, name: str) -> None:
    """identity: or like another's handle; whose it is can be read."""
    demo.user("abe", name="ABE")
    demo.user("kim")
    demo.user("sam-iam")
    refusal = demo.refused("name.taken", pb.SaveUserRequest(handle="eve", name=name))
    assert refusal.extras["near"][0] in refusal.detail
    demo.refused("name.taken", pb.SaveUserRequest(handle="eve2", name=name))


def test_two_people_may_be_called_the_same(demo: Hub) -> None:
    """Their handles are shown beside their names, whose accents and case may differ."""
    demo.user("quinn", name="Avery Quinn")
    demo.user("aq", name="avery quínn")
    demo.user("avery", name="AVERY  Quinn")
    demo.user("kim", name="Kim")


@pytest.mark.parametrize("name", ["System", "hub", "Everyone", "A11", "Ѕуѕtем", "Aligner"])
def test_nobody_is_called_like_the_hub(demo: Hub, name: str) -> None:
    """In whatever letters."""
    with pytest.raises(Refusal) as caught:
        demo.ask(pb.SaveUserRequest(handle="kim", name=name))
    assert caught.value.slug in {"name.taken", "request.invalid"}


def test_a_name_from_before_is_kept_until_it_changes(demo: Hub) -> None:
    """Saving it again is no fact, and another field can be changed beside it."""
    at = clock.to_timestamp(demo.now)
    event = events_pb2.UserSaved(handle="old", name="System", created_at=at, updated_at=at, created=True)
    demo.store(Fact(event, subject=subjects.fact("rooms", subjects.HUB, "user", "old")))
    demo.user("old", name="System", team="core")
    demo.refused("name.taken", pb.SaveUserRequest(handle="old", name="Hub"))


CHOSEN = st.text("o0il1rnmvw.-a", min_size=1, max_size=5).filter(lambda text: text[0].isalnum() and text[-1] != ".")


@given(st.lists(st.tuples(st.sampled_from(["agent", "user", "leave"]), CHOSEN), max_size=12))
def test_no_two_who_look_alike_are_ever_registered(steps: list[tuple[str, str]]) -> None:
    """identity: whatever is asked in whatever order, in one room."""
    hub = demo_hub()
    for what, handle in steps:
        try:
            if what == "leave":
                hub.leave(handle)
            elif what == "user":
                hub.ask(pb.SaveUserRequest(handle=handle), "avery")
            else:
                hub.agent(handle)
        except Refusal:
            continue
        members = {member.handle for member in hub.ask(pb.ListMembersRequest(room="demo"), "avery").members}
        users = {user.handle for user in hub.ask(pb.ListUsersRequest()).users}
        assert len(members | users) == len({skeleton(one) for one in members | users})
