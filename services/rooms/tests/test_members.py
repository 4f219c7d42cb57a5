"""Members in a conversation: paused and resumed, all of them at once, and what is said of each since."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel.service import Done, Fact
from mycelium_rooms import loads_deliveries
from services.rooms.tests.hub import AGENT, ENGINE, USER, Hub, states

THREAD = "0190aaaa-0000-7000-8000-00000000beef"


def pause(hub: Hub, handle: str, *, paused: bool = True) -> views_pb2.Member:
    request = pb.SaveMemberRequest(room="demo", handle=handle, paused=paused, change_only=True)
    member: views_pb2.Member = hub.ask(request, "avery").member
    return member


def test_a_paused_members_mentions_wait_until_it_is_resumed(demo: Hub) -> None:
    """R9: the sender reads `paused`; a wait gets nothing, whatever was queued before; then all of it, in order."""
    before = demo.post("@engineer before").id
    assert pause(demo, "engineer").paused
    demo.waiting(demo.ask(pb.GetRoomRequest(room="demo")).room.id, "engineer")
    message = demo.post("@engineer @reviewer @engineer#2 now")
    assert states(message.mentions) == {"engineer": "paused", "engineer#2": "paused", "reviewer": "queued"}
    assert demo.receipts(message.id) == {"engineer": "paused", "engineer#2": "paused", "reviewer": "queued"}
    assert (demo.take("engineer").message_id, demo.take("engineer", seat="2").message_id) == ("", "")
    shown = demo.ask(pb.GetMemberRequest(room="demo", handle="engineer")).member
    assert (shown.paused, shown.unread) == (True, 3)
    assert not pause(demo, "engineer", paused=False).paused
    assert [demo.receive("engineer"), demo.receive("engineer")] == [before, message.id]
    assert states(demo.post("@engineer").mentions) == {"engineer": "woken"}


def test_a_paused_member_still_ends_what_it_has(demo: Hub) -> None:
    """Its call acknowledges; it just gets nothing new."""
    first = demo.post("@engineer one").id
    demo.receive("engineer")
    demo.post("@engineer two")
    pause(demo, "engineer")
    assert demo.take("engineer").message_id == ""
    assert demo.receipts(first) == {"engineer": "acknowledged"}
    decided = demo.decide(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer")
    assert isinstance(decided, Done)


def test_pausing_is_a_change_of_the_record_alone(demo: Hub) -> None:
    """Saying it twice is no fact; another change keeps it."""
    pause(demo, "engineer")
    again = pb.SaveMemberRequest(room="demo", handle="engineer", paused=True)
    assert isinstance(demo.decide(again, "avery"), Done)
    demo.agent("engineer", description="builds")
    assert demo.ask(pb.GetMemberRequest(room="demo", handle="engineer")).member.paused
    demo.refused("member.not_found", pb.SaveMemberRequest(room="demo", handle="nobody", paused=True, change_only=True))


def test_all_names_every_agent_and_nobody_else(demo: Hub) -> None:
    """Not people, engines, those who left, or the sender; each with a state of its own."""
    demo.agent("gone", "quiet", "scout")
    demo.agent("aligner", kind=ENGINE)
    demo.agent("avery", kind=USER)
    demo.leave("gone")
    pause(demo, "quiet")
    demo.waiting(demo.ask(pb.GetRoomRequest(room="demo")).room.id, "scout")
    message = demo.post("@all stand-up", "engineer")
    assert states(message.mentions) == {"quiet": "paused", "reviewer": "queued", "scout": "woken"}
    assert states(demo.post("@~all fyi").mentions) == dict.fromkeys(
        ("engineer", "quiet", "reviewer", "scout"), "silent"
    )
    assert states(demo.post("@all @engineer").mentions)["engineer"] == "queued"
    assert demo.receive("reviewer") == message.id


def test_all_in_a_room_without_agents_names_nobody(hub: Hub) -> None:
    """And is not unknown."""
    hub.room()
    assert not hub.post("@all hello").mentions


def test_nobody_can_have_all_as_a_handle(demo: Hub) -> None:
    """It would be two things."""
    demo.refused("handle.invalid", pb.SaveMemberRequest(room="demo", handle="all"))
    demo.refused("handle.invalid", pb.SaveUserRequest(handle="All"))


def test_receipts_tell_of_every_mention_and_what_became_of_it_since(demo: Hub) -> None:
    """R9: queued, offered, delivered, redelivered, acknowledged, parked; left and paused as they are now."""
    demo.agent("a", "b", "c", "d", "e", "f", "g")
    message = demo.post("@a @b @c @d @e @f @g @~reviewer @avery @nobody", allow_unknown=True).id
    demo.take("b")
    demo.receive("c")
    demo.receive("d", "s1")
    demo.receive("d", "s2")
    demo.receive("e")
    demo.take("e")
    demo.take("f")
    demo.mark(message, "f", state=views_pb2.DELIVERY_STATE_PARKED)
    demo.leave("g")
    assert demo.receipts(message) == {
        "a": "queued", "b": "offered", "c": "delivered", "d": "redelivered", "e": "acknowledged", "f": "parked",
        "g": "left", "reviewer": "silent", "avery": "self", "nobody": "unknown",
    }  # fmt: skip
    demo.leave("c")
    assert demo.receipts(message)["c"] == "delivered"


def test_unread_is_counted_as_deliveries_come_and_go(demo: Hub) -> None:
    """In all queues of the handle; a second end does not count."""

    def unread() -> int:
        return int(demo.ask(pb.GetMemberRequest(room="demo", handle="engineer")).member.unread)

    first = demo.post("@engineer @engineer#2").id
    demo.post("@engineer")
    assert unread() == 3
    demo.receive("engineer", "s")
    demo.mark(first, "engineer", "s", views_pb2.DELIVERY_STATE_ACKNOWLEDGED)
    demo.mark(first, "engineer", "s", views_pb2.DELIVERY_STATE_PARKED)
    assert unread() == 2


# --- what a wake costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [loads_deliveries.NEXT, loads_deliveries.NEXT_OF_THREAD])
def test_the_next_delivery_stands_at_the_front_of_an_index(demo: Hub, sql: str) -> None:
    """R8: nothing is sorted, nothing is scanned."""
    steps = [row[3] for row in demo.tables.all(f"EXPLAIN QUERY PLAN {sql}", "r", "q", "", "", "")]
    assert steps[0].startswith("SEARCH delivery USING INDEX delivery_")
    assert not [step for step in steps if "TEMP B-TREE" in step or step.startswith("SCAN")], steps


def test_a_hundred_thousand_unread_cost_a_wake_nothing(demo: Hub) -> None:
    """Counted by SQLite's own steps: to take, to take from a thread, to post, to list members."""
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id

    def costs() -> list[int]:
        take = pb.TakeDeliveryRequest(room="demo", new_call=True)
        of_thread = pb.TakeDeliveryRequest(room="demo", new_call=True, thread=THREAD)
        post = pb.PostMessageRequest(room="demo", content="@engineer @all")
        asked: list[tuple[Any, str]] = [(take, "engineer"), (of_thread, "engineer"), (post, "avery")]
        found = [demo.cost(partial(demo.decide, request, by)) for request, by in asked]
        return [*found, demo.cost(lambda: demo.ask(pb.ListMembersRequest(room="demo"), "avery"))]

    demo.post("@engineer hello")
    demo.post("@engineer in a thread", thread=THREAD)
    before = costs()
    demo.tables.execute(
        """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
           INSERT INTO delivery SELECT ?, 'engineer', 'm' || i, 'engineer', 1000 + i, 't' || i % 7, 1, '', 0, 0, 0, 0, 1
           FROM n""",
        room_id,
    )
    after = costs()
    assert all(now <= then + 200 for then, now in zip(before, after, strict=True)), (before, after)


def test_a_post_tells_which_engines_it_wakes(demo: Hub) -> None:
    """In the fact itself, seats too; what wakes nobody is not among them."""
    for handle in ("greeter", "other"):
        demo.agent(handle, kind=ENGINE, engine_kind=views_pb2.ENGINE_KIND_HELLO)
    demo.agent("aligner", kind=ENGINE)
    fact = demo.decide(pb.PostMessageRequest(room="demo", content="@greeter#2 @~other @engineer @aligner"), "avery")
    assert isinstance(fact, Fact)
    assert isinstance(fact.event, events_pb2.MessagePosted)
    assert list(fact.event.deliver_to) == ["greeter#2", "engineer", "aligner"]
    assert [(call.queue, call.kind) for call in fact.event.engines] == [("greeter#2", views_pb2.ENGINE_KIND_HELLO)]


def test_an_engines_words_wake_no_engine(demo: Hub) -> None:
    """Nor does what it amends; agents get its words like anybody's."""
    for handle in ("greeter", "other"):
        demo.agent(handle, kind=ENGINE, engine_kind=views_pb2.ENGINE_KIND_HELLO)
    words = pb.PostMessageRequest(room="demo", content="ask @other or @engineer")
    message = demo.ask(words, "greeter").message
    assert states(message.mentions) == {"other": "silent", "engineer": "queued"}
    amended = demo.decide(pb.AmendMessageRequest(room="demo", message=message.id, content="ask @other"), "greeter")
    assert isinstance(amended, Fact)
    assert isinstance(amended.event, events_pb2.MessageAmended)
    assert not amended.event.engines
    assert not amended.event.deliver_to
    demo.leave("greeter")
    assert states(demo.ask(words, "greeter").message.mentions) == {"other": "queued", "engineer": "queued"}


def test_an_engine_is_never_made_of_an_agent(demo: Hub) -> None:
    """Whoever wrote to the agent would get no answer any more; and which engine it is belongs to engines alone."""
    hello = views_pb2.ENGINE_KIND_HELLO
    demo.refused("handle.taken", pb.SaveMemberRequest(room="demo", handle="engineer", kind=ENGINE, engine_kind=hello))
    demo.refused("request.invalid", pb.SaveMemberRequest(room="demo", handle="new", engine_kind=hello))
    demo.agent("greeter", kind=ENGINE, engine_kind=hello)
    demo.ask(pb.SaveMemberRequest(room="demo", handle="greeter", description="kept"), "avery")
    assert demo.ask(pb.GetMemberRequest(room="demo", handle="greeter")).member.engine_kind == hello
    demo.ask(pb.SaveMemberRequest(room="demo", handle="greeter", kind=AGENT), "avery")
    assert demo.ask(pb.GetMemberRequest(room="demo", handle="greeter")).member.engine_kind == 0
