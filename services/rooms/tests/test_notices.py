"""What other services have said in a room: stored in its order, given to whom it is for, and nobody's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mycelium.rooms.v1 import notices_pb2, service_pb2, views_pb2
from mycelium_kernel import testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor
from services.rooms.tests.hub import ENGINE, USER, Hub, demo_hub
from services.rooms.tests.live import Ask, running

THREAD = "01900000-0000-7000-8000-00000000abcd"
CHANGED, ASSIGNED = views_pb2.DELIVERY_REASON_CHANGED, views_pb2.DELIVERY_REASON_ASSIGNED


@pytest.fixture
def demo() -> Hub:
    return demo_hub()


def notice(hub: Hub, *handles: str, **fields: Any) -> notices_pb2.PostNoticeRequest:
    """A change of a document, for some."""
    row = hub.tables.one("SELECT room_id FROM room WHERE name = 'demo'")
    assert row
    request = notices_pb2.PostNoticeRequest(
        room_id=row[0], message_type="change", kind="written", sender_handle="avery", thread=THREAD, content="a is new"
    )
    request.deliveries.extend(notices_pb2.NoticeDelivery(handle=handle, reason=CHANGED) for handle in handles)
    request.MergeFrom(notices_pb2.PostNoticeRequest(**fields))
    return request


def tell(hub: Hub, *handles: str, **fields: Any) -> notices_pb2.PostNoticeResponse:
    response: notices_pb2.PostNoticeResponse = hub.ask(notice(hub, *handles, **fields))
    return response


def test_a_change_is_given_to_those_it_is_for(demo: Hub) -> None:
    """With the reason, like a mention: kept, given again, acknowledged; it stands in its thread alone."""
    told = tell(demo, "engineer", "reviewer", "engineer", metadata_json='{"key": "a"}')
    assert list(told.delivered_to) == ["engineer", "reviewer"]
    taken = demo.take("engineer", "s1")
    assert taken.message_id == told.message_id
    shown = demo.ask(service_pb2.GetDeliveryRequest(room="demo", message=told.message_id), "engineer", "s1")
    assert (shown.reason, shown.message.content, shown.message.message_type) == (CHANGED, "a is new", "change")
    assert (shown.message.thread, shown.message.metadata_json) == (THREAD, '{"key": "a"}')
    assert demo.take("engineer", "s2").redelivered
    demo.mark(told.message_id, "engineer", "s2", views_pb2.DELIVERY_STATE_ACKNOWLEDGED)
    assert demo.take("engineer", "s3").message_id == ""
    assert demo.receipts(told.message_id) == {"engineer": "acknowledged", "reviewer": "queued"}

    listed = demo.ask(service_pb2.ListMessagesRequest(room="demo"), "avery")
    assert not listed.messages
    assert len(demo.ask(service_pb2.ListMessagesRequest(room="demo", thread=THREAD), "avery").messages) == 1
    said = demo.post("@engineer hi")
    assert demo.receive("engineer", "s3") == said.id
    reason = demo.ask(service_pb2.GetDeliveryRequest(room="demo", message=said.id), "engineer", "s3").reason
    assert reason == views_pb2.DELIVERY_REASON_MENTION


def test_a_notice_stands_in_the_channel_and_wakes_whom_it_names_to_it(demo: Hub) -> None:
    """In the room's one order; whom its text names is not woken, and it may be for nobody."""
    demo.post("one")
    fields: dict[str, Any] = {"message_type": "notice", "kind": "filed", "content": "@reviewer: work/x is filed"}
    request = notice(demo, **fields)
    request.ClearField("thread")
    request.deliveries.add(handle="engineer", reason=ASSIGNED)
    told = demo.ask(request)
    silent = notice(demo, **fields, sender_handle="")
    silent.ClearField("thread")
    silent.ClearField("sender_handle")
    demo.ask(silent)
    demo.post("two")
    listed = demo.ask(service_pb2.ListMessagesRequest(room="demo"), "avery").messages
    assert [message.message_type for message in listed] == ["message", "notice", "notice", "message"]
    assert demo.receipts(told.message_id) == {"engineer": "queued"}
    assert demo.take("reviewer").message_id == ""
    shown = demo.ask(service_pb2.GetDeliveryRequest(room="demo", message=told.message_id), "engineer")
    assert shown.reason == ASSIGNED


def test_a_notice_is_nothing_that_was_said_before(demo: Hub) -> None:
    """However many there are, a mention comes with the talk that led up to it."""
    said = [demo.post(f"talk {number}").id for number in range(3)]
    for _ in range(40):
        request = notice(demo, message_type="notice", kind="claimed")
        request.ClearField("thread")
        demo.ask(request)
    said.append(demo.post("more talk").id)
    mention = demo.post("@engineer now")
    shown = demo.ask(service_pb2.GetDeliveryRequest(room="demo", message=mention.id), "engineer")
    assert [message.id for message in shown.earlier] == said


def test_who_is_no_member_is_passed_over(demo: Hub) -> None:
    """Who left, who never was; nothing is stored when it would be for nobody, if that was asked."""
    demo.agent("gone")
    demo.leave("gone")
    assert list(tell(demo, "gone", "stranger", "engineer").delivered_to) == ["engineer"]
    assert tell(demo, "gone", for_its_deliveries=True).message_id == ""
    assert tell(demo, "gone").message_id


def test_nobody_has_said_it(demo: Hub) -> None:
    """It ends no delivery of who did it, is no sign of life, hides nothing that was said, and nobody amends it."""
    demo.agent("kim")
    first = demo.post("@kim first", thread=THREAD)
    assert demo.receive("kim", "kim") == first.id
    told = tell(demo, "engineer", sender_handle="kim")
    assert demo.receipts(first.id) == {"kim": "delivered"}
    assert demo.tables.one("SELECT at FROM seen WHERE handle = 'reviewer'") is None
    tell(demo, "engineer", sender_handle="reviewer")
    assert demo.tables.one("SELECT at FROM seen WHERE handle = 'reviewer'") is None
    later = demo.post("@kim second", thread=THREAD)
    shown = demo.ask(service_pb2.GetDeliveryRequest(room="demo", message=later.id), "kim", "kim")
    assert first.id in {message.id for message in shown.earlier}
    amend = service_pb2.AmendMessageRequest(room="demo", message=told.message_id, content="b")
    assert "nobody can amend it" in demo.refused("message.not_yours", amend, "kim").detail


def test_an_engine_runs_for_a_notice_and_not_for_a_change(demo: Hub) -> None:
    """Nor for what another engine did: two can't keep each other going."""
    for handle in ("hello", "other"):
        demo.agent(handle, kind=ENGINE, engine_kind=views_pb2.ENGINE_KIND_HELLO)
    assert list(tell(demo, "hello").delivered_to) == []
    fact: Any = demo.decide(notice(demo, "hello", message_type="notice"))
    assert [call.queue for call in fact.event.engines] == ["hello"]
    fact = demo.decide(notice(demo, "hello", message_type="notice", sender_handle="other"))
    assert not fact.event.engines


def test_what_is_no_notice_is_refused(demo: Hub) -> None:
    """The service that asks has a fault."""
    for fields in (
        {"message_type": "message"}, {"kind": "No kind"}, {"content": "two\nlines"}, {"content": "x" * 1_001},
        {"thread": "abc"}, {"metadata_json": "["},
    ):  # fmt: skip
        demo.refused("request.invalid", notice(demo, **fields))
    demo.refused("request.invalid", notice(demo, *(f"h{number}" for number in range(1_001))))
    request = notice(demo)
    request.room_id = THREAD
    demo.refused("room.not_found", request)


def test_a_user_is_told_too(demo: Hub) -> None:
    """Every user of the hub is one of a room that is not private."""
    demo.user("julia")
    demo.user("sam")
    assert list(tell(demo, "julia").delivered_to) == ["julia"]
    demo.agent("sam", kind=USER)
    demo.ask(service_pb2.ChangeRoomRequest(room="demo", private=True), "avery")
    assert list(tell(demo, "julia", "sam", "avery").delivered_to) == ["sam", "avery"]


async def test_only_the_services_that_may_can_ask(nats_server: testing.NatsServer, tmp_path: Path, ask: Ask) -> None:
    """The gateway can't: a client has no way to a notice. A repeat under its key is told once."""
    async with running(nats_server, tmp_path):
        room = (await ask(service_pb2.CreateRoomRequest(name="demo"))).room
        await ask(service_pb2.SaveMemberRequest(room="demo", handle="engineer"))
        request = notices_pb2.PostNoticeRequest(
            room_id=room.id, message_type="change", kind="written", content="a is new", thread=THREAD
        )
        request.deliveries.add(handle="engineer", reason=CHANGED)
        with pytest.raises(Refusal, match=r"auth\.refused"):
            await ask(request)
        connection = await Connection.open(nats_server.settings("memory"))
        try:
            bus, response = Bus(connection, "memory"), notices_pb2.PostNoticeResponse
            told = [await bus.ask(request, response, actor=Actor("", ""), key="k") for _ in range(2)]
        finally:
            await connection.close()
        assert told[0] == told[1]
        assert list(told[0].message.delivered_to) == ["engineer"]
