"""Users of the hub and members of rooms: saved, changed, removed, shown; one namespace of handles."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.rooms.v1 import service_pb2 as pb
from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import clock
from mycelium_kernel.service import Done
from services.rooms.tests.hub import AGENT, ENGINE, START, USER, Hub


def test_a_user_is_made_once_and_then_changed_by_field(hub: Hub) -> None:
    """What is absent stays."""
    made = hub.ask(pb.SaveUserRequest(handle="@Avery", name=" Avery Quinn ", team="core"))
    assert made.created
    hub.later(minutes=1)
    changed = hub.ask(pb.SaveUserRequest(handle="avery", team="Platform"))
    assert not changed.created
    assert (changed.user.handle, changed.user.name, changed.user.team) == ("avery", "Avery Quinn", "Platform")
    assert changed.user.created_at == clock.to_timestamp(START)
    assert changed.user.updated_at == clock.to_timestamp(hub.now)
    assert hub.ask(pb.GetUserRequest(handle="AVERY")).user == changed.user


def test_saving_the_same_user_again_is_no_fact(hub: Hub) -> None:
    """`iam` may be run any number of times."""
    hub.user("avery", name="Avery")
    assert isinstance(hub.decide(pb.SaveUserRequest(handle="avery", name="Avery")), Done)
    assert isinstance(hub.decide(pb.SaveUserRequest(handle="avery")), Done)


def test_a_create_of_a_user_that_is_there_is_refused(hub: Hub) -> None:
    """Create means that it was not there."""
    hub.user("avery")
    refusal = hub.refused("handle.taken", pb.SaveUserRequest(handle="avery", create_only=True))
    assert refusal.next == "mycelium user show avery"


def test_a_handle_is_a_users_or_an_agents(demo: Hub) -> None:
    """One namespace a hub, whichever came first."""
    demo.refused("handle.taken", pb.SaveUserRequest(handle="engineer"))
    demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="avery"))
    demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="avery", kind=ENGINE))
    demo.ask(pb.SaveMemberRequest(room="demo", handle="avery", kind=USER))
    demo.user("avery", name="still a user")


def test_a_handle_is_free_when_its_agent_has_left_every_room(demo: Hub) -> None:
    """A mistaken agent does not keep a person's name."""
    demo.leave("engineer")
    demo.user("engineer")
    assert demo.ask(pb.DescribeHandleRequest(handle="engineer")).kind == USER


@pytest.mark.parametrize("handle", ["", "-x", "a b", "é", "x" * 65, "hub", "system"])
def test_a_handle_that_breaks_the_grammar_is_refused(demo: Hub, handle: str) -> None:
    """Also the names of the hub itself."""
    demo.refused("handle.invalid", pb.SaveUserRequest(handle=handle))
    demo.refused("handle.invalid", pb.SaveMemberRequest(room="demo", handle=handle))


def test_a_member_that_is_a_user_needs_the_user(demo: Hub) -> None:
    """The refusal says how to make it."""
    refusal = demo.refused("user.not_found", pb.SaveMemberRequest(room="demo", handle="kim", kind=USER))
    assert refusal.next == "mycelium user create kim"


FIELDS: dict[str, Any] = {
    "description": "reviews\nthings",
    "cwd": "/repo",
    "adapter": "claude_code",
    "owner": "avery",
    "team": "Core",
    "notes": "be brief",
}


def test_a_member_is_an_agent_with_what_was_given(demo: Hub) -> None:
    """Every field of the record is kept and shown."""
    request = pb.SaveMemberRequest(
        room="demo", handle="@Bot", allow_from=["@Ops", "ops", "kim"], set_allow_from=True, **FIELDS
    )
    answer = demo.ask(request, "avery")
    assert answer.joined
    shown = demo.ask(pb.GetMemberRequest(room="demo", handle="bot")).member
    shown.ClearField("presence")  # of now, not of the record
    assert shown == answer.member
    assert shown == views_pb2.Member(
        handle="bot",
        kind=AGENT,
        allow_from=["ops", "kim"],
        created_at=clock.to_timestamp(START),
        updated_at=clock.to_timestamp(START),
        **FIELDS,
    )


def test_creating_a_member_again_changes_the_given_fields_only(demo: Hub) -> None:
    """Also an empty field is given."""
    demo.ask(
        pb.SaveMemberRequest(room="demo", handle="bot", kind=ENGINE, allow_from=["x"], set_allow_from=True, **FIELDS)
    )
    demo.later(seconds=1)
    answer = demo.ask(pb.SaveMemberRequest(room="demo", handle="bot", notes="", owner=" "))
    assert not answer.joined
    member = answer.member
    assert (member.kind, member.notes, member.owner, member.team) == (ENGINE, "", "", "Core")
    assert list(member.allow_from) == ["x"]
    assert member.created_at == clock.to_timestamp(START)
    assert member.updated_at == clock.to_timestamp(demo.now)
    cleared = demo.ask(pb.SaveMemberRequest(room="demo", handle="bot", set_allow_from=True)).member
    assert list(cleared.allow_from) == []
    assert isinstance(demo.decide(pb.SaveMemberRequest(room="demo", handle="bot", team="Core")), Done)


def test_a_member_that_left_joins_again_with_a_new_record(demo: Hub) -> None:
    """Leaving ends the record."""
    demo.agent("bot", team="core")
    demo.leave("bot")
    demo.later(seconds=1)
    answer = demo.ask(pb.SaveMemberRequest(room="demo", handle="bot"))
    assert answer.joined
    assert answer.member.team == ""
    assert answer.member.created_at == clock.to_timestamp(demo.now)


def test_only_a_present_member_is_changed_removed_or_shown(demo: Hub) -> None:
    """A misspelt handle is answered with the nearest right one."""
    for request in (
        pb.SaveMemberRequest(room="demo", handle="enginer", change_only=True),
        pb.RemoveMemberRequest(room="demo", handle="enginer"),
        pb.GetMemberRequest(room="demo", handle="enginer"),
    ):
        refusal = demo.refused("member.not_found", request)
        assert refusal.extras["near"] == ["engineer"]
        assert refusal.detail == "@enginer is not a member of 'demo'; did you mean @engineer?"
    demo.leave("engineer")
    assert demo.refused("member.not_found", pb.RemoveMemberRequest(room="demo", handle="engineer")).extras["near"] == []
    demo.refused("member.not_found", pb.SaveMemberRequest(room="demo", handle="engineer", change_only=True))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("description", "x" * 2_001),
        ("description", "\0"),
        ("notes", "x" * 20_001),
        ("cwd", "a\nb"),
        ("adapter", "x" * 101),
        ("team", "x" * 101),
        ("kind", 9),
    ],
)
def test_a_field_that_is_too_long_or_broken_is_refused(demo: Hub, field: str, value: object) -> None:
    """With its name."""
    request = pb.SaveMemberRequest(room="demo", handle="bot", **{field: value})  # type: ignore[arg-type]
    assert field in demo.refused("request.invalid", request).detail


def test_the_list_of_who_may_act_is_bounded_and_holds_handles(demo: Hub) -> None:
    """An owner is a handle too."""
    many = [f"a{number}" for number in range(101)]
    request = pb.SaveMemberRequest(room="demo", handle="bot", allow_from=many, set_allow_from=True)
    demo.refused("request.invalid", request)
    request = pb.SaveMemberRequest(room="demo", handle="bot", allow_from=["not a handle"], set_allow_from=True)
    demo.refused("handle.invalid", request)
    demo.refused("handle.invalid", pb.SaveMemberRequest(room="demo", handle="bot", owner="Avery Quinn"))


def test_members_are_listed_by_handle_and_by_filter(demo: Hub) -> None:
    """R12: by kind, owner and team."""
    demo.agent("bot", owner="avery", team="Core")
    demo.agent("aligner", kind=ENGINE)
    demo.agent("avery", kind=USER)
    demo.leave("reviewer")

    def listed(**filters: Any) -> list[str]:
        return [member.handle for member in demo.ask(pb.ListMembersRequest(room="demo", **filters)).members]

    assert listed() == ["aligner", "avery", "bot", "engineer"]
    assert listed(kind=ENGINE) == ["aligner"]
    assert listed(owner="@Avery") == ["bot"]
    assert listed(team="core") == ["bot"]
    assert listed(owner="avery", kind=USER) == []
    room = demo.ask(pb.GetRoomRequest(room="demo"))
    assert [member.handle for member in room.members] == listed()
    assert room.room.members == 4
    assert [member.name for member in room.members] == ["", "Avery Quinn", "", ""]


def test_a_list_of_members_ends_at_half_a_megabyte(demo: Hub) -> None:
    """The rest is on the next page."""
    for number in range(40):
        demo.agent(f"bot-{number:02}", notes="é" * 10_000)
    first = demo.ask(pb.ListMembersRequest(room="demo"))
    assert first.ByteSize() < 530_000
    assert demo.ask(pb.GetRoomRequest(room="demo")).next == first.next != ""
    second = demo.ask(pb.ListMembersRequest(room="demo", cursor=first.next))
    assert len(first.members) + len(second.members) == 42
    assert second.next == ""


def test_a_member_shows_what_waits_for_it_and_when_it_was_seen(demo: Hub) -> None:
    """Unread mentions in every seat, the last post or take, and whether a wait is open now."""
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id

    def shown() -> views_pb2.Member:
        member: views_pb2.Member = demo.ask(pb.GetMemberRequest(room="demo", handle="engineer")).member
        return member

    assert (shown().unread, shown().waiting, shown().HasField("last_seen")) == (0, False, False)
    demo.post("@engineer @engineer#2 hello")
    demo.waiting(room_id, "engineer#2")
    assert (shown().unread, shown().waiting, shown().HasField("last_seen")) == (2, True, False)
    demo.later(seconds=7)
    demo.receive("engineer")
    assert shown().last_seen == clock.to_timestamp(demo.now)
    demo.later(seconds=7)
    demo.post("on it", "engineer")
    assert (shown().unread, shown().last_seen) == (1, clock.to_timestamp(demo.now))


def test_a_user_shows_the_agents_it_owns_in_rooms_that_the_asker_sees(demo: Hub) -> None:
    """An agent of a private room does not betray the room."""
    demo.agent("bot", owner="avery")
    demo.room("secret", "kim", private=True)
    demo.agent("spy", owner="avery", room="secret", by="kim")

    def owned(handle: str) -> list[tuple[str, str]]:
        user = demo.ask(pb.GetUserRequest(handle="avery"), handle).user
        return [(agent.room, agent.handle) for agent in user.agents]

    assert owned("stranger") == [("demo", "bot")]
    assert owned("kim") == [("demo", "bot"), ("secret", "spy")]


def test_an_unknown_user_is_refused_with_the_next_step(hub: Hub) -> None:
    """The command that makes it."""
    assert hub.refused("user.not_found", pb.GetUserRequest(handle="kim")).next == "mycelium user create kim"


def test_users_are_listed_by_handle_in_pages(hub: Hub) -> None:
    """A list of any length comes whole."""
    for number in range(205):
        hub.user(f"u{number:03}")
    first = hub.ask(pb.ListUsersRequest())
    second = hub.ask(pb.ListUsersRequest(cursor=first.next))
    assert [user.handle for user in (*first.users, *second.users)] == [f"u{number:03}" for number in range(205)]
    assert second.next == ""


def test_a_handle_is_described_as_what_it_is(demo: Hub) -> None:
    """For `whoami`."""
    demo.agent("aligner", kind=ENGINE)

    def described(handle: str) -> tuple[int, str]:
        answer = demo.ask(pb.DescribeHandleRequest(handle=handle))
        return answer.kind, answer.name

    assert described("avery") == (USER, "Avery Quinn")
    assert described("engineer") == (AGENT, "")
    assert described("aligner") == (ENGINE, "")
    assert described("nobody") == (0, "")
