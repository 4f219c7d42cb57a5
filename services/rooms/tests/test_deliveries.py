"""Delivery: who gets what, when it ends, and what is given out again. The cases from the field."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as pb
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.service import Done, Fact
from services.rooms.tests.hub import USER, Hub

THREAD = "0190aaaa-0000-7000-8000-00000000beef"
DELIVERED, ACKNOWLEDGED = views_pb2.DELIVERY_STATE_DELIVERED, views_pb2.DELIVERY_STATE_ACKNOWLEDGED
PARKED = views_pb2.DELIVERY_STATE_PARKED


def test_three_mentions_before_the_first_wait_come_oldest_first(demo: Hub) -> None:
    """However long the agent was away."""
    sent = [demo.post(f"@engineer {number}").id for number in range(3)]
    assert [demo.receive("engineer") for _ in range(4)] == [*sent, ""]


def test_a_mention_between_two_waits_is_kept(demo: Hub) -> None:
    """Nothing is missed between calls."""
    first = demo.post("@engineer one").id
    assert demo.receive("engineer") == first
    second = demo.post("@engineer two").id
    assert demo.receive("engineer") == second


def test_only_whom_it_names_gets_a_message(demo: Hub) -> None:
    """The channel's other messages wake nobody."""
    demo.post("hello all")
    demo.post("@~engineer hello")
    assert demo.take("engineer").message_id == ""


def test_nothing_to_give_and_nothing_to_end_is_no_fact(demo: Hub) -> None:
    """A waiting agent writes nothing."""
    decided = demo.decide(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer")
    assert isinstance(decided, Done)
    assert decided.answer == pb.TakeDeliveryResponse()


def test_a_take_is_one_fact_on_the_subject_of_the_queue(demo: Hub) -> None:
    """Conditional on it, so that two sessions take one after the other."""
    first = demo.post("@engineer one").id
    demo.receive("engineer", "s1")
    second = demo.post("@engineer two").id
    demo.later(seconds=2)
    fact = demo.decide(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer", "s1")
    assert isinstance(fact, Fact)
    assert fact.on is not None
    room_id = demo.ask(pb.GetRoomRequest(room="demo")).room.id
    assert fact.on.subject == subjects.fact("rooms", room_id, "queue", "engineer")
    assert fact.answers
    assert fact.event == events_pb2.DeliveryOffered(
        room_id=room_id, queue="engineer", session="s1", acknowledged=[first], message_id=second, attempt=1,
        offered_at=clock.to_timestamp(demo.now),
    )  # fmt: skip


def test_a_repeat_must_not_be_answered_from_a_fact_that_only_acknowledges(demo: Hub) -> None:
    """The call got nothing, so the retry has to look again."""
    demo.post("@engineer one")
    demo.receive("engineer")
    fact = demo.decide(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer")
    assert isinstance(fact, Fact)
    assert not fact.answers
    assert demo.take("engineer") == pb.TakeDeliveryResponse()


def test_a_client_that_vanished_before_it_had_the_answer_gets_it_again_marked(demo: Hub) -> None:
    """Offered is not received."""
    message = demo.post("@engineer one").id
    assert demo.take("engineer") == pb.TakeDeliveryResponse(message_id=message, attempt=1)
    again = pb.TakeDeliveryResponse(message_id=message, redelivered=True, attempt=2)
    assert demo.receipts(message) == {"engineer": "offered"}
    assert demo.take("engineer") == again
    assert demo.receipts(message) == {"engineer": "redelivered"}


def test_an_agent_killed_after_it_got_a_mention_gets_it_again_marked(demo: Hub) -> None:
    """Its new session has received nothing yet."""
    message = demo.post("@engineer one").id
    assert demo.receive("engineer", "before") == message
    taken = demo.take("engineer", "after")
    assert (taken.message_id, taken.redelivered, taken.attempt) == (message, True, 2)


def test_two_sessions_do_not_acknowledge_for_each_other(demo: Hub) -> None:
    """A call ends only what its own session has received; what it received stays its own to end."""
    first = demo.post("@engineer one").id
    assert demo.receive("engineer", "a") == first
    assert demo.take("engineer", "b").message_id == first  # offered to b as well, not received by it
    demo.post("unrelated", "engineer", "b")
    assert demo.receipts(first) == {"engineer": "redelivered"}
    assert demo.take("engineer", "c").message_id == first
    assert demo.take("engineer", "a").message_id == ""  # a's new call ends it, though others got it later
    assert demo.receipts(first) == {"engineer": "acknowledged"}
    assert demo.take("engineer", "b").message_id == ""


def test_the_first_of_several_holders_ends_it_for_the_queue(demo: Hub) -> None:
    """The others' acknowledgements find it ended."""
    first = demo.post("@engineer one").id
    demo.receive("engineer", "a")
    demo.receive("engineer", "b")
    assert demo.mark(first, "engineer", "b", ACKNOWLEDGED) == ACKNOWLEDGED
    assert demo.mark(first, "engineer", "a", ACKNOWLEDGED) == ACKNOWLEDGED
    assert demo.mark(first, "engineer", "a", PARKED) == ACKNOWLEDGED
    assert demo.take("engineer", "a").message_id == ""


def test_a_wake_within_one_wait_acknowledges_nothing(demo: Hub) -> None:
    """Only a new call says that what came before was dealt with."""
    first = demo.post("@engineer one").id
    demo.receive("engineer")
    second = demo.post("@engineer two").id
    assert demo.take("engineer", new_call=False).message_id == second
    assert demo.receipts(first) == {"engineer": "delivered"}
    assert demo.take("engineer", new_call=False).attempt == 2


def test_a_call_may_name_what_it_acknowledges(demo: Hub) -> None:
    """By full or short id; naming it again changes nothing."""
    first = demo.post("@engineer one").id
    second = demo.post("@engineer two").id
    demo.take("engineer", "a")
    taken = demo.take("engineer", "b", new_call=False, acknowledge=names.short_id(first))
    assert taken.message_id == second
    assert demo.receipts(first) == {"engineer": "acknowledged"}
    demo.mark(second, "engineer", "b")
    assert demo.take("engineer", "b", acknowledge=second).message_id == ""
    assert demo.take("engineer", "b", acknowledge=second).message_id == ""


def test_what_was_never_given_out_can_not_be_acknowledged(demo: Hub) -> None:
    """Neither by a call nor by a mark."""
    queued = demo.post("@engineer one").id
    other = demo.post("@reviewer two").id
    for named in (queued, other, THREAD, "12345678", "nonsense"):
        request = pb.TakeDeliveryRequest(room="demo", acknowledge=named, new_call=True)
        demo.refused("delivery.not_found", request, "engineer")
        for state in (DELIVERED, ACKNOWLEDGED, PARKED):
            demo.refused(
                "delivery.not_found", pb.MarkDeliveryRequest(room="demo", message=named, state=state), "engineer"
            )


def test_only_the_session_that_was_given_a_message_has_received_it(demo: Hub) -> None:
    """The refusal says so."""
    message = demo.post("@engineer one").id
    demo.take("engineer", "a")
    request = pb.MarkDeliveryRequest(room="demo", message=message, state=DELIVERED)
    assert "to this session" in demo.refused("delivery.not_found", request, "engineer", "b").detail


@pytest.mark.parametrize("state", [0, 1, 2, 9])
def test_a_delivery_is_marked_as_delivered_acknowledged_or_parked(demo: Hub, state: int) -> None:
    """And as nothing else."""
    message = demo.post("@engineer one").id
    request = pb.MarkDeliveryRequest(room="demo", message=message, state=state)  # type: ignore[arg-type]
    demo.refused("request.invalid", request, "engineer")


def test_marking_twice_is_no_second_fact(demo: Hub) -> None:
    """A retry of the mark is free."""
    message = demo.post("@engineer one").id
    demo.take("engineer", "a")
    for state in (DELIVERED, ACKNOWLEDGED):
        request = pb.MarkDeliveryRequest(room="demo", message=message, state=state)
        assert isinstance(demo.decide(request, "engineer", "a"), Fact)
        assert demo.ask(request, "engineer", "a").state == state
        decided = demo.decide(request, "engineer", "a")
        assert isinstance(decided, Done)
        assert decided.answer == pb.MarkDeliveryResponse(state=state)


def test_a_delivery_that_was_offered_again_stays_delivered(demo: Hub) -> None:
    """A receipt never goes back."""
    message = demo.post("@engineer one").id
    demo.receive("engineer", "a")
    demo.take("engineer", "b")
    receipt = demo.ask(pb.ListReceiptsRequest(room="demo", message=message)).receipts[0]
    assert (receipt.state, receipt.attempts, receipt.session) == (views_pb2.DELIVERY_STATE_REDELIVERED, 2, "b")
    assert demo.mark(message, "engineer", "b") == DELIVERED


def test_a_parked_message_is_set_aside(demo: Hub) -> None:
    """The next one comes."""
    first, second = demo.post("@engineer one").id, demo.post("@engineer two").id
    demo.take("engineer", "a")
    demo.later(seconds=1)
    assert demo.mark(first, "engineer", "a", PARKED) == PARKED
    receipt = demo.ask(pb.ListReceiptsRequest(room="demo", message=first)).receipts[0]
    assert (receipt.state, receipt.ended_at) == (PARKED, clock.to_timestamp(demo.now))
    assert demo.take("engineer", "a").message_id == second


def test_a_post_acknowledges_what_its_session_has_received(demo: Hub) -> None:
    """In every queue of the handle in the room, and of no other handle, session or room."""
    demo.room("other")
    demo.agent("engineer", room="other")
    own = demo.post("@engineer one").id
    seat = demo.post("@engineer#2 two").id
    elsewhere = demo.post("@engineer three", room="other").id
    theirs = demo.post("@reviewer four").id
    demo.receive("engineer", "s")
    demo.receive("engineer", "s", seat="2")
    demo.receive("engineer", "s", room="other")
    demo.receive("reviewer", "s")
    demo.post("speaking", "engineer", "t")
    assert demo.receipts(own) == {"engineer": "delivered"}
    demo.post("speaking", "engineer", "s")
    assert demo.receipts(own) == {"engineer": "acknowledged"}
    assert demo.receipts(seat) == {"engineer#2": "acknowledged"}
    assert demo.receipts(elsewhere, "other") == {"engineer": "delivered"}
    assert demo.receipts(theirs) == {"reviewer": "delivered"}


def test_a_take_decided_before_a_post_ended_its_message_changes_nothing_back(demo: Hub) -> None:
    """Posts are free, so the two facts may stand in either order."""
    message = demo.post("@engineer one").id
    demo.receive("engineer", "a")
    take = demo.decide(pb.TakeDeliveryRequest(room="demo"), "engineer", "b")
    assert isinstance(take, Fact)
    demo.post("done", "engineer", "a", reply_to=message)
    demo.store(take)
    assert demo.receipts(message) == {"engineer": "acknowledged"}
    assert demo.take("engineer", "b").message_id == ""
    assert demo.post("x", "engineer", "b", respond=True).reply_to == ""


def test_seats_have_queues_of_their_own(demo: Hub) -> None:
    """A handle's own queue is not a seat's."""
    own, seat = demo.post("@engineer one").id, demo.post("@engineer#2 two").id
    assert demo.receive("engineer", seat="#2") == seat
    assert demo.receive("engineer") == own
    demo.refused("handle.invalid", pb.TakeDeliveryRequest(room="demo", seat="no seat"), "engineer")


def test_a_wait_for_a_thread_takes_only_what_is_in_it(demo: Hub) -> None:
    """The rest stays queued for it."""
    channel = demo.post("@engineer one").id
    thread = demo.post("@engineer two", thread=THREAD).id
    assert demo.receive("engineer", thread="0000beef") == thread
    assert demo.take("engineer", thread=THREAD).message_id == ""
    assert demo.receive("engineer") == channel
    demo.refused("thread.not_found", pb.TakeDeliveryRequest(room="demo", thread="12345678"), "engineer")


def test_a_mention_of_a_stopped_agent_waits_for_it_and_a_removed_members_queue_is_kept(demo: Hub) -> None:
    """The removed one may not take it until it has joined again."""
    message = demo.post("@engineer one").id
    demo.leave("engineer")
    demo.refused("handle.unregistered", pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer")
    demo.agent("engineer")
    assert demo.receive("engineer") == message


@pytest.mark.parametrize(
    "request_",
    [
        pb.TakeDeliveryRequest(room="demo", new_call=True),
        pb.MarkDeliveryRequest(room="demo", message=THREAD, state=ACKNOWLEDGED),
        pb.GetDeliveryRequest(room="demo", message=THREAD),
    ],
    ids=["take", "mark", "get"],
)
def test_only_registered_handles_have_a_queue(demo: Hub, request_: Any) -> None:
    """Users of the hub count in an open room."""
    assert (
        demo.refused("handle.unregistered", request_, "stranger").next == "mycelium agent create stranger --room demo"
    )
    demo.refused("handle.missing", request_)


def test_a_user_of_the_hub_takes_its_mentions_in_any_open_room(demo: Hub) -> None:
    """And in a private one as a member."""
    message = demo.post("@avery look", "engineer").id
    assert demo.receive("avery") == message
    demo.ask(pb.ChangeRoomRequest(room="demo", private=True), "avery")
    demo.agent("avery", kind=USER)
    assert demo.receive("avery") == ""


# --- GetDelivery ------------------------------------------------------------------------------------------------------


def delivered(hub: Hub, message: str, handle: str = "engineer", **fields: Any) -> tuple[str, list[str]]:
    answer = hub.ask(pb.GetDeliveryRequest(room="demo", message=message, **fields), handle)
    return answer.message.content, [earlier.content for earlier in answer.earlier]


def test_a_delivery_comes_with_what_was_said_since_the_receiver_last_spoke(demo: Hub) -> None:
    """In the same channel or thread, oldest first, events too."""
    demo.post("before")
    demo.post("elsewhere", "engineer", thread=THREAD)
    demo.post("mine", "engineer")
    demo.post("in a thread", thread=THREAD)
    demo.post("one")
    demo.post("two", message_type="event", metadata_json='{"kind": "note"}')
    message = demo.post("@engineer three").id
    demo.post("after")
    demo.post("mine again", "engineer")
    assert delivered(demo, message) == ("@engineer three", ["one", "two"])
    in_thread = demo.post("@engineer four", thread=THREAD).id
    assert delivered(demo, in_thread) == ("@engineer four", ["in a thread"])


def test_what_was_said_before_is_bounded(demo: Hub) -> None:
    """To thirty messages and 256 KB; the newest are kept."""
    for number in range(40):
        demo.post(str(number))
    message = demo.post("@engineer now").id
    assert delivered(demo, message)[1] == [str(number) for number in range(10, 40)]
    for number in range(3):
        demo.post(str(number) * 100_000)
    message = demo.post("@engineer and now").id
    assert [text[0] for text in delivered(demo, message)[1]] == ["1", "2"]


def test_a_delivery_is_shown_to_whom_it_is_for(demo: Hub) -> None:
    """By full or short id, in the queue of the right seat, as its text reads now."""
    message = demo.post("@engineer#2 one").id
    demo.refused("delivery.not_found", pb.GetDeliveryRequest(room="demo", message=message), "engineer")
    demo.ask(pb.AmendMessageRequest(room="demo", message=message, content="@engineer#2 changed"), "avery")
    assert delivered(demo, names.short_id(message), seat="2")[0] == "@engineer#2 changed"
    demo.refused("delivery.not_found", pb.GetDeliveryRequest(room="demo", message=message, seat="2"), "reviewer")


def test_a_short_id_of_several_is_refused_with_the_candidates(demo: Hub) -> None:
    """Also where a missing one would be no delivery."""
    first = demo.post("@engineer one").id
    second = demo.post("@engineer two").id
    twin = first.replace("0190", "0191", 1)
    demo.tables.execute("UPDATE message SET message_id = ? WHERE message_id = ?", twin, second)
    request = pb.GetDeliveryRequest(room="demo", message=names.short_id(first))
    assert demo.refused("id.ambiguous", request, "engineer").extras["candidates"] == [first, twin]
