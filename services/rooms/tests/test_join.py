"""Join codes: who may have one made, that it is good once and for ten minutes, and the tokens given for them."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2, join_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import events, testing
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Context, Fact
from services.rooms.tests.hub import ENGINE, USER, Hub, rebuilt, rows_of
from services.rooms.tests.live import Ask, running


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make(handle: str = "engineer", code: str = "code", room: str = "demo") -> join_pb2.MakeJoinCodeRequest:
    return join_pb2.MakeJoinCodeRequest(room=room, handle=handle, code_digest=digest(code))


def use(code: str = "code", token: str = "", request: str = "r", **only: str) -> join_pb2.UseJoinCodeRequest:
    token_digest = digest(token) if token else ""
    return join_pb2.UseJoinCodeRequest(
        code_digest=digest(code), token_digest=token_digest, request_digest=digest(request), **only
    )


def join(hub: Hub, request: join_pb2.UseJoinCodeRequest) -> Any:
    """Use a code, and what follows from it."""
    answer = hub.ask(request)
    hub.ask(join_pb2.RegisterJoinedRequest(room_id=answer.room_id, handle=answer.handle, joined=len(hub.facts)))
    return answer


def owner(hub: Hub, token: str) -> tuple[str, str]:
    found = hub.ask(join_pb2.FindJoinedRequest(token_digest=digest(token)))
    return found.room, found.handle


def decide_as(hub: Hub, actor: Actor, request: join_pb2.MakeJoinCodeRequest) -> Any:
    command, before = hub.commands[type(request)], hub.context()
    context = Context(actor, "", before.now, before.new_id, before.deadline)
    return command.decide(command.load(hub.tables, request, context), request, context)


def test_a_code_lets_in_once(demo: Hub) -> None:
    """identity: whoever has it need not be known; used again it is refused like one that never was."""
    demo.ask(make(), "avery")
    answer = join(demo, use(token="t"))
    assert (answer.room, answer.handle) == ("demo", "engineer")
    assert owner(demo, "t") == ("demo", "engineer")
    again, unknown = demo.refused("join.refused", use(request="other")), demo.refused("join.refused", use("guess"))
    assert again.detail == unknown.detail


def test_a_code_is_good_for_ten_minutes(demo: Hub) -> None:
    """And not a moment longer."""
    expires_at = demo.ask(make(), "avery").expires_at.ToMilliseconds()
    demo.later(minutes=10, milliseconds=-1)
    demo.decide(use())
    demo.later(milliseconds=1)
    assert demo.context().now.timestamp() * 1000 == expires_at
    demo.refused("join.refused", use())


def test_a_new_code_takes_the_place_of_the_one_before(demo: Hub) -> None:
    """A code that went astray is made worthless by asking again; the token in use goes with the next join."""
    demo.ask(make(code="one"), "avery")
    join(demo, use("one", "t1"))
    demo.ask(make(code="two"), "avery")
    demo.ask(make(code="three"), "avery")
    demo.refused("join.refused", use("two"))
    assert owner(demo, "t1") == ("demo", "engineer")
    join(demo, use("three", "t2"))
    assert (owner(demo, "t1"), owner(demo, "t2")) == (("", ""), ("demo", "engineer"))


def test_a_repeat_of_the_request_that_used_a_code_may_use_it_again(demo: Hub) -> None:
    """The line was cut before the answer came: it gets another token, and the first is worthless."""
    demo.ask(make(), "avery")
    join(demo, use(token="t1"))
    join(demo, use(token="t2"))
    assert (owner(demo, "t1"), owner(demo, "t2")) == (("", ""), ("demo", "engineer"))
    demo.later(minutes=10)
    demo.refused("join.refused", use())


def test_joining_registers_who_is_no_member(demo: Hub) -> None:
    """As an agent, by who made the code; once, also when the reaction comes again."""
    demo.ask(make("scout"), "avery")
    request = use(token="t")
    answer = demo.ask(request)
    assert owner(demo, "t") == ("", "")
    register = join_pb2.RegisterJoinedRequest(room_id=answer.room_id, handle="scout", joined=len(demo.facts))
    demo.ask(register)
    count = len(demo.facts)
    demo.ask(register)
    assert len(demo.facts) == count
    saved = events.decode(demo.facts[-1].type, demo.facts[-1].data)
    assert isinstance(saved, events_pb2.MemberSaved)
    assert (saved.joined, saved.saved_by, saved.member.kind) == (True, "avery", views_pb2.MEMBER_KIND_AGENT)
    assert owner(demo, "t") == ("demo", "scout")
    demo.leave("scout")
    demo.ask(register)
    demo.refused("member.not_found", pb.GetMemberRequest(room="demo", handle="scout"))
    demo.ask(make("scout", "next"), "avery")
    demo.ask(register)
    demo.refused("member.not_found", pb.GetMemberRequest(room="demo", handle="scout"))
    demo.ask(use("next", "t2"))
    assert owner(demo, "t2") == ("", "")


def test_code_and_token_end_with_the_membership(demo: Hub) -> None:
    """Also for one that is added again later."""
    demo.ask(make(), "avery")
    join(demo, use(token="t"))
    demo.ask(make(code="next"), "avery")
    demo.leave("engineer")
    assert owner(demo, "t") == ("", "")
    demo.agent("engineer")
    assert owner(demo, "t") == ("", "")
    demo.refused("join.refused", use("next"))


def test_a_member_that_is_removed_as_it_joins_stays_removed(demo: Hub) -> None:
    """Whichever of the two comes first."""
    demo.ask(make(), "avery")
    used = demo.decide(use(token="t"))
    assert isinstance(used, Fact)
    demo.leave("engineer")
    demo.store(used)
    event = used.event
    assert isinstance(event, join_pb2.JoinCodeUsed)
    demo.ask(join_pb2.RegisterJoinedRequest(room_id=event.room_id, handle="engineer", joined=len(demo.facts)))
    demo.refused("member.not_found", pb.GetMemberRequest(room="demo", handle="engineer"))
    assert owner(demo, "t") == ("", "")


def test_code_and_token_go_with_the_room(demo: Hub) -> None:
    """A new room of the name knows neither."""
    demo.ask(make(), "avery")
    join(demo, use(token="t"))
    demo.ask(make(code="next"), "avery")
    demo.ask(pb.DeleteRoomRequest(room="demo"), "avery")
    demo.room()
    demo.agent("engineer")
    assert owner(demo, "t") == ("", "")
    demo.refused("join.refused", use("next"))
    assert not rows_of(demo.tables)["joining"]


def test_codes_are_for_agents(demo: Hub) -> None:
    """Not for people, who sign in, nor for engines, nor for names of the hub; not for rooms that one can't see."""
    demo.agent("answers", kind=ENGINE)
    demo.user("kim")
    demo.agent("kim", kind=USER)
    demo.refused("handle.taken", make("avery"), "avery")
    demo.refused("handle.taken", make("kim"), "avery")
    demo.refused("handle.taken", make("answers"), "avery")
    demo.refused("handle.invalid", make("system"), "avery")
    demo.room("secret", private=True)
    assert demo.refused("room.not_found", make(room="secret"), "kim").detail == "Room not found: 'secret'"


def test_a_handle_that_became_a_persons_meanwhile_is_not_joined(demo: Hub) -> None:
    """A code is no way around the rule that a handle is a person's or an agent's."""
    demo.ask(make("kim"), "avery")
    demo.user("kim")
    demo.refused("join.refused", use())


def test_a_handle_that_can_be_taken_for_another_is_not_joined(demo: Hub) -> None:
    """Neither when the code is made nor when somebody who looks the same came since."""
    demo.refused("handle.taken", make("eng1neer"), "avery")
    demo.ask(make("sc0ut"), "avery")
    demo.agent("scout")
    demo.refused("join.refused", use())


def test_who_signed_in_makes_codes_for_whom_they_may_act(demo: Hub) -> None:
    """Itself, its owner, whom it lets; where nobody signed in, whoever sees the room."""
    demo.agent("mine", owner="avery")
    demo.agent("lent", allow_from=["avery"], set_allow_from=True)
    user = Actor("avery", "", "user")
    for handle in ("mine", "lent"):
        assert isinstance(decide_as(demo, user, make(handle)), Fact)
    assert isinstance(decide_as(demo, Actor("scout", "", "agent"), make("scout")), Fact)
    assert isinstance(decide_as(demo, Actor("avery", ""), make("reviewer")), Fact)
    for actor, handle, slug in (
        (user, "reviewer", "acting.forbidden"),
        (user, "scout", "acting.forbidden"),
        (Actor("engineer", "", "agent"), "avery", "acting.forbidden"),
        (Actor("engineer", "", "agent"), "reviewer", "acting.forbidden"),
        (Actor("kim", "", "user"), "kim", "handle.taken"),
    ):
        with pytest.raises(Refusal, match=slug.replace(".", r"\.")):
            decide_as(demo, actor, make(handle))


def test_a_code_of_one_who_may_act_no_more_lets_nobody_in(demo: Hub) -> None:
    """identity: its token would outlast what was taken back. Where nobody signed in, it is good."""
    demo.agent("bot", owner="kim", allow_from=["lee"], set_allow_from=True)
    taken = pb.SaveMemberRequest(room="demo", handle="bot", allow_from=[], set_allow_from=True)
    demo.signed_in = {"lee": "user"}
    demo.ask(make("bot"), "lee")
    demo.decide(use())
    demo.signed_in = {}
    demo.ask(taken, "kim")
    demo.refused("join.refused", use())
    demo.ask(make("bot"), "lee")
    demo.decide(use())


def lent(hub: Hub) -> None:
    """The agent bot is kim's, who lets lee act for it."""
    hub.signed_in = {"kim": "user", "lee": "user", "bot": "agent"}
    hub.agent("bot", by="kim", owner="kim", allow_from=["lee"], set_allow_from=True)


@pytest.mark.parametrize(
    ("maker", "change"),
    [
        ("lee", {"set_allow_from": True}),
        ("lee", {"set_allow_from": True, "allow_from": ["eve"], "owner": "eve"}),
        ("kim", {"owner": "eve"}),
        ("kim", {"owner": ""}),
    ],
    ids=str,
)
def test_a_token_ends_with_the_right_of_who_let_it_in(demo: Hub, maker: str, change: dict[str, Any]) -> None:
    """identity: at once and for good, also when the right comes back. What leaves the right leaves the token."""
    lent(demo)
    demo.ask(make("bot"), maker)
    join(demo, use(token="t"))
    demo.ask(pb.SaveMemberRequest(room="demo", handle="bot", notes="x", paused=True), "kim")
    assert owner(demo, "t") == ("demo", "bot")
    demo.ask(pb.SaveMemberRequest(room="demo", handle="bot", **change), "kim")
    assert owner(demo, "t") == ("", "")
    back = pb.SaveMemberRequest(room="demo", handle="bot", owner="kim", allow_from=["lee"], set_allow_from=True)
    demo.ask(back, "bot")
    assert owner(demo, "t") == ("", "")
    assert rows_of(rebuilt(demo.facts)) == rows_of(demo.tables)


def test_a_token_stands_on_the_right_of_who_made_its_own_code(demo: Hub) -> None:
    """Not on that of who has made another since; the agent's own, and where nobody signed in, on nobody's."""
    lent(demo)
    demo.ask(make("bot"), "kim")
    join(demo, use(token="kims"))
    demo.ask(make("bot", "lees"), "lee")
    taken = pb.SaveMemberRequest(room="demo", handle="bot", set_allow_from=True)
    demo.ask(taken, "kim")
    assert owner(demo, "kims") == ("demo", "bot")
    for maker in ("bot", "avery"):
        demo.ask(make("bot", maker), maker)
        join(demo, use(maker, "t", maker))
        for owner_now in ("eve", "kim"):
            demo.ask(pb.SaveMemberRequest(room="demo", handle="bot", owner=owner_now), "bot")
        assert owner(demo, "t") == ("demo", "bot")


def test_a_right_that_ends_as_a_code_is_used_gives_no_token(demo: Hub) -> None:
    """Whichever of the two comes first."""
    lent(demo)
    demo.ask(make("bot"), "lee")
    used = demo.decide(use(token="t"))
    assert isinstance(used, Fact)
    demo.ask(pb.SaveMemberRequest(room="demo", handle="bot", set_allow_from=True), "kim")
    demo.store(used)
    assert owner(demo, "t") == ("", "")
    assert rows_of(rebuilt(demo.facts)) == rows_of(demo.tables)


def test_a_folder_of_another_member_does_not_spend_a_code(demo: Hub) -> None:
    """Who joins may say which member alone will do."""
    room_id = demo.ask(make(), "avery").room_id
    for only in ({"handle": "reviewer"}, {"room": "other"}, {"room": room_id, "handle": "reviewer"}):
        demo.refused("join.other_member", use(**only))
        demo.refused("join.refused", use("guess", **only))
    join(demo, use(room="DEMO", handle="@Engineer"))


def test_a_bundle_holds_no_code_and_no_token(demo: Hub) -> None:
    """The room on another hub has none."""
    from mycelium.rooms.v1 import transfer_pb2

    demo.ask(make(), "avery")
    join(demo, use(token="t"))
    page = demo.ask(transfer_pb2.ExportRoomRequest(room="demo"), "avery")
    assert page.facts
    assert digest("code").encode() not in page.SerializeToString()
    assert digest("t").encode() not in page.SerializeToString()


def test_the_tables_of_codes_come_back_from_the_log(demo: Hub) -> None:
    """Promise 8, for codes made, used, replaced and gone."""
    for code in ("one", "two"):
        demo.ask(make(code=code), "avery")
        join(demo, use(code, "token"))
    demo.ask(make("reviewer", "three"), "avery")
    demo.ask(make("scout", "four"), "avery")
    join(demo, use("four"))
    demo.leave("reviewer")
    assert rows_of(rebuilt(demo.facts)) == rows_of(demo.tables)


async def test_of_twenty_that_use_a_code_at_once_one_joins(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask
) -> None:
    """Twice over, on two processes of the service; the nineteen are refused alike; the one is a member when told so."""
    async with running(nats_server, tmp_path / "a"), running(nats_server, tmp_path / "b"):
        await ask(pb.CreateRoomRequest(name="demo"))
        for round_ in range(2):
            code = f"code {round_}"
            await ask(make("scout", code))
            uses = [ask(use(code, f"t{number}", f"r{number}"), "") for number in range(20)]
            answers = await asyncio.gather(*uses, return_exceptions=True)
            refused = [answer for answer in answers if isinstance(answer, Refusal)]
            assert [refusal.slug for refusal in refused] == ["join.refused"] * 19
            won = next(number for number, answer in enumerate(answers) if not isinstance(answer, Exception))
            assert (await ask(pb.GetMemberRequest(room="demo", handle="scout"))).member.handle == "scout"
            found = await ask(join_pb2.FindJoinedRequest(token_digest=digest(f"t{won}")))
            assert found.handle == "scout"
