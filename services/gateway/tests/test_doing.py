"""What members do, from what is heard of them. Pure: no clock, no server."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_gateway.doing import LIVE_MS, WORKING_MS, RoomDoing, Saying, Waiting, read_said, untoken
from mycelium_gateway.keys import OpenWait, Said
from mycelium_kernel import subjects
from mycelium_kernel.clock import from_millis

ROOM = "0199f2a0-4a51-7c3e-9d20-0c5b3a77e101"
NOW = 1_756_917_600_000


def said(state: str = "working", at: int = NOW, ttl: int = 60_000) -> Said:
    return Said(ROOM, "bob_1.x", state, "note é", at, at + ttl)


def offered(message: str, at: int = NOW, acknowledged: tuple[str, ...] = (), queue: str = "bob") -> Any:
    return events_pb2.DeliveryOffered(
        queue=queue, message_id=message, session="s", acknowledged=acknowledged, offered_at=from_millis(at)
    )


def marked(message: str, state: views_pb2.DeliveryState.ValueType, session: str = "s") -> Any:
    return events_pb2.DeliveryMarked(queue="bob", message_id=message, session=session, state=state)


def posted(reply_to: str = "", session: str = "other") -> Any:
    return events_pb2.MessagePosted(
        sender_handle="bob", reply_to=reply_to, session=session, created_at=from_millis(NOW)
    )


@pytest.mark.parametrize("text", ["bob", "b.o_b-1", "bob#review", "_5f_", "a__b"])
def test_a_token_is_read_as_it_was_written(text: str) -> None:
    """Keys hold tokens, watchers read handles."""
    assert untoken(subjects.token(text)) == text


def test_what_is_said_is_read_as_it_was_written() -> None:
    """And anything else is nothing."""
    assert read_said(said().key, said().value) == said()
    for value in (b"", b"[]", b"{}", b"\xff", b'{"state": "away", "until": 1}', b'{"state": "idle", "until": null}'):
        assert read_said(said().key, value) is None


def test_the_later_word_counts_until_its_time_is_over() -> None:
    """Whichever gateway it was told by, in whichever order it is heard."""
    saying = Saying()
    saying.put(said("blocked", NOW + 1))
    saying.put(said("working", NOW))
    found = saying.of(ROOM, "bob_1.x", NOW + 60_000)
    assert found is not None
    assert found.state == "blocked"
    assert saying.of(ROOM, "bob_1.x", NOW + 60_001) is None
    assert saying.of(ROOM, "eve", NOW) is None


def test_a_wait_counts_while_its_gateway_lives() -> None:
    """Of a seat too; with the gateway all its waits go."""
    waiting = Waiting()
    keys = [OpenWait(ROOM, queue, wait, 5).key for queue, wait in (("bob", "w1"), ("bob#a", "w2"), ("eve", "w3"))]
    assert [waiting.put(key, "g1", NOW) for key in keys] == [(ROOM, "bob"), (ROOM, "bob"), (ROOM, "eve")]
    assert not waiting.is_open(ROOM, "bob")
    assert waiting.put("instance.g1", "", NOW) is None
    assert (waiting.is_open(ROOM, "bob"), waiting.is_open(ROOM, "eve"), waiting.is_open(ROOM, "bo")) == (
        True,
        True,
        False,
    )
    assert waiting.remove(keys[0]) == [(ROOM, "bob")]
    assert waiting.is_open(ROOM, "bob")
    assert waiting.silent(NOW + LIVE_MS - 1) == []
    assert sorted(waiting.silent(NOW + LIVE_MS)) == [(ROOM, "bob"), (ROOM, "eve")]
    assert not waiting.is_open(ROOM, "eve")
    assert waiting.whose() == []


@pytest.mark.parametrize(
    "end",
    [
        [offered("m2", NOW - WORKING_MS, ("m1",))],
        [marked("m1", views_pb2.DELIVERY_STATE_ACKNOWLEDGED)],
        [marked("m1", views_pb2.DELIVERY_STATE_PARKED)],
        [posted(reply_to="m1")],
        [marked("m1", views_pb2.DELIVERY_STATE_DELIVERED, "s2"), posted(session="s2")],
        [events_pb2.MemberRemoved(handle="bob")],
    ],
)
def test_a_delivery_is_work_until_it_is_ended_or_answered(end: list[Any]) -> None:
    """By an acknowledgement, a reply, or anything said in the session that received it."""
    doing = RoomDoing()
    assert doing.happened(offered("m1")) == "bob"
    assert doing.is_working("bob", NOW)
    assert doing.seen("bob") == NOW
    assert [doing.happened(event) for event in end] == ["bob"] * len(end)
    assert not doing.is_working("bob", NOW)


def test_work_that_goes_on_is_work_for_ten_minutes() -> None:
    """What another session says, or only the receipt, does not end it."""
    doing = RoomDoing()
    for event in (offered("m1", queue="bob#seat"), marked("m1", views_pb2.DELIVERY_STATE_DELIVERED), posted()):
        assert doing.happened(event) == "bob"
    assert doing.is_working("bob", NOW + WORKING_MS - 1)
    assert not doing.is_working("bob", NOW + WORKING_MS)
    assert doing.happened(events_pb2.RoomChanged()) == ""


def test_who_worked_when_the_watching_began_is_believed_until_it_is_heard_of() -> None:
    """The log before that was not followed."""
    doing = RoomDoing()
    member = views_pb2.Member(
        handle="bob", presence=views_pb2.PRESENCE_WORKING, presence_note="n", last_seen=from_millis(NOW)
    )
    doing.begin([member], NOW)
    doing.begin([views_pb2.Member(handle="bob", presence=views_pb2.PRESENCE_IDLE)], NOW)
    assert (doing.shown["bob"], doing.seen("bob")) == (("working", "n"), NOW)
    assert doing.is_working("bob", NOW + WORKING_MS - 1)
    doing.happened(posted())
    assert not doing.is_working("bob", NOW)
