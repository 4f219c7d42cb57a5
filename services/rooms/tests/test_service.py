"""The service on a real NATS server: a conversation over the bus, repeats, races, a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mycelium.rooms.v1 import service_pb2 as pb
from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import testing
from mycelium_kernel.errors import Refusal
from services.rooms.tests.live import Ask, running


async def begin(ask: Ask) -> None:
    await ask(pb.CreateRoomRequest(name="demo"))
    await ask(pb.SaveMemberRequest(room="demo", handle="engineer"))


async def test_a_conversation_survives_a_restart(nats_server: testing.NatsServer, tmp_path: Path, ask: Ask) -> None:
    """Create, join, post, take, receive; restart; the next call acknowledges; the tables come back from the log."""
    async with running(nats_server, tmp_path / "a"):
        await begin(ask)
        posted = (await ask(pb.PostMessageRequest(room="demo", content="@engineer hello"), session="s")).message
        assert posted.mentions[0].state == views_pb2.MENTION_STATE_QUEUED
        taken = await ask(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer", "t")
        assert taken == pb.TakeDeliveryResponse(message_id=posted.id, attempt=1)
        delivered = views_pb2.DELIVERY_STATE_DELIVERED
        await ask(pb.MarkDeliveryRequest(room="demo", message=posted.id, state=delivered), "engineer", "t")
        shown = await ask(pb.GetDeliveryRequest(room="demo", message=posted.id), "engineer", "t")
        assert shown.message == posted
    async with running(nats_server, tmp_path / "b") as runtime:
        assert (await ask(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer", "t")).message_id == ""
        receipts = (await ask(pb.ListReceiptsRequest(room="demo", message=posted.id))).receipts
        assert [receipt.state for receipt in receipts] == [views_pb2.DELIVERY_STATE_ACKNOWLEDGED]
        assert runtime.health()["status"] == "ok"


async def test_a_repeat_gets_the_first_answer(nats_server: testing.NatsServer, tmp_path: Path, ask: Ask) -> None:
    """The line was cut after the commit: the retry of each command changes nothing; another body is refused."""
    async with running(nats_server, tmp_path):
        await begin(ask)
        for request, handle in (
            (pb.CreateRoomRequest(name="x"), "avery"),
            (pb.ChangeRoomRequest(room="x", title="t"), "avery"),
            (pb.SaveUserRequest(handle="avery", name="A"), "avery"),
            (pb.SaveMemberRequest(room="demo", handle="bot"), "avery"),
            (pb.PostMessageRequest(room="demo", content="@engineer @bot"), "avery"),
            (pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer"),
            (pb.RemoveMemberRequest(room="demo", handle="bot"), "avery"),
            (pb.DeleteRoomRequest(room="x"), "avery"),
        ):
            key = f"key of {request.DESCRIPTOR.name}"
            first = await ask(request, handle, key=key)
            assert await ask(request, handle, key=key) == first, key
        listed = await ask(pb.ListMessagesRequest(room="demo"))
        assert len(listed.messages) == 1
        with pytest.raises(Refusal, match=r"key\.reused"):
            await ask(pb.PostMessageRequest(room="demo", content="other"), key="key of PostMessageRequest")


async def test_of_two_creates_of_one_name_one_wins(nats_server: testing.NatsServer, tmp_path: Path, ask: Ask) -> None:
    """Decided on one subject, whatever the tables held at that moment."""
    async with running(nats_server, tmp_path):
        creates = [ask(pb.CreateRoomRequest(name=name)) for name in ("Demo", "demo", "DEMO", "dEMO")]
        answers = await asyncio.gather(*creates, return_exceptions=True)
        refusals = [answer.slug for answer in answers if isinstance(answer, Refusal)]
        assert refusals == ["room.name_taken"] * 3
        assert len((await ask(pb.ListRoomsRequest())).rooms) == 1


async def test_sessions_that_take_at_once_take_one_after_the_other(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask
) -> None:
    """Every session gets the message, and its attempts are counted without a gap."""
    async with running(nats_server, tmp_path):
        await begin(ask)
        await ask(pb.PostMessageRequest(room="demo", content="@engineer hello"))
        takes = [ask(pb.TakeDeliveryRequest(room="demo"), "engineer", f"s{number}") for number in range(3)]
        answers = await asyncio.gather(*takes)
        assert sorted(answer.attempt for answer in answers) == [1, 2, 3]


async def test_posts_under_way_at_once_have_one_order(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Ask
) -> None:
    """And their mentions come in it."""
    async with running(nats_server, tmp_path):
        await begin(ask)
        posts = [ask(pb.PostMessageRequest(room="demo", content=f"@engineer {number}")) for number in range(100)]
        answers = await asyncio.gather(*posts)
        order = [answer.message.id for answer in sorted(answers, key=lambda answer: answer.message.sequence)]
        listed = await ask(pb.ListMessagesRequest(room="demo", limit=100))
        assert [message.id for message in reversed(listed.messages)] == order
        got = []
        for _ in range(5):
            got.append((await ask(pb.TakeDeliveryRequest(room="demo", new_call=True), "engineer")).message_id)
            delivered = views_pb2.DELIVERY_STATE_DELIVERED
            await ask(pb.MarkDeliveryRequest(room="demo", message=got[-1], state=delivered), "engineer")
        assert got == order[:5]
