"""Who is woken by changes of which documents: the subscriptions, and what becomes of a change."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mycelium.memory.v1 import service_pb2 as pb
from mycelium.memory.v1 import subscriptions_pb2, views_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_pb
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_kernel import events, headers, testing
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Stored
from mycelium_memory import commands_subscriptions, queries_changes
from mycelium_memory.model import subject
from mycelium_memory.reactions import WAKER
from mycelium_memory.subscriptions import subscribers
from services.memory.tests.asking import Asker
from services.memory.tests.hub import Hub
from services.memory.tests.test_service import running

SUBSCRIBE, UNSUBSCRIBE = subscriptions_pb2.SubscribeRequest, subscriptions_pb2.UnsubscribeRequest
CHANGED = rooms_views_pb2.DELIVERY_REASON_CHANGED
BOUND_S = 60.0


def patterns(hub: Hub, handle: str, by: str = "avery") -> list[str]:
    """What a handle is subscribed to."""
    asked = subscriptions_pb2.ListSubscriptionsRequest(room="demo", handle=handle)
    return [one.pattern for one in hub.ask(asked, by).subscriptions]


def room_of(hub: Hub) -> str:
    row = hub.tables.one("SELECT room_id FROM room")
    assert row
    return str(row[0])


def told(hub: Hub, key: str, author: str = "avery", sequence: int = 0) -> list[str]:
    """Whom a change is for."""
    return subscribers(hub.tables, room_of(hub), key, sequence or len(hub.facts) + 1, author)


def test_a_subscription_is_kept_once_and_can_be_ended(demo: Hub) -> None:
    """Of patterns that fold alike there is one; ending what is not there is refused."""
    demo.join(room_of(demo), "sec")
    first = demo.ask(SUBSCRIBE(room="demo", pattern="Decisions/*"), "sec")
    again = demo.ask(SUBSCRIBE(room="demo", pattern="decisions/*"), "sec")
    assert (first.stood, again.stood, again.subscription) == (False, True, first.subscription)
    demo.ask(SUBSCRIBE(room="demo", pattern="work/"), "sec")
    assert patterns(demo, "sec") == ["Decisions/*", "work/"]
    assert patterns(demo, "", by="sec") == ["Decisions/*", "work/"]
    demo.ask(UNSUBSCRIBE(room="demo", pattern="decisions/*"), "sec")
    assert patterns(demo, "sec") == ["work/"]
    demo.refused("subscription.not_found", UNSUBSCRIBE(room="demo", pattern="decisions/*"), "sec")
    demo.ask(SUBSCRIBE(room="demo", pattern="decisions/*"), "sec")
    assert patterns(demo, "sec") == ["decisions/*", "work/"]


def test_who_is_nobody_here_is_told_how_to_register(demo: Hub) -> None:
    """Members may, and users of the hub; in a private room its members, and who made it."""
    refusal = demo.refused("handle.unregistered", SUBSCRIBE(room="demo", pattern="*"), "kim")
    assert refusal.next == "mycelium agent create kim --room demo"
    demo.refused("handle.missing", SUBSCRIBE(room="demo", pattern="*"), "")
    demo.refused("request.invalid", SUBSCRIBE(room="demo", pattern="/x"), "kim")
    demo.user("kim")
    demo.ask(SUBSCRIBE(room="demo", pattern="*"), "kim")
    vault = demo.room("vault", private=True)
    demo.ask(SUBSCRIBE(room="vault", pattern="*"), "avery")
    demo.join(vault, "kim")
    demo.ask(SUBSCRIBE(room="vault", pattern="*"), "kim")


def test_there_is_an_end_to_subscriptions(demo: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one handle in one room."""
    monkeypatch.setattr(commands_subscriptions, "MOST", 2)
    demo.user("kim")
    for pattern in ("a", "b"):
        demo.ask(SUBSCRIBE(room="demo", pattern=pattern), "kim")
    assert "at most 2" in demo.refused("request.invalid", SUBSCRIBE(room="demo", pattern="c"), "kim").detail
    assert demo.ask(SUBSCRIBE(room="demo", pattern="a"), "kim").stood


def test_a_change_is_for_who_subscribed_before_it_and_did_not_make_it(demo: Hub) -> None:
    """Each once, however many of its patterns match."""
    for handle in ("kim", "sec"):
        demo.user(handle)
    demo.ask(SUBSCRIBE(room="demo", pattern="work/*"), "kim")
    demo.ask(SUBSCRIBE(room="demo", pattern="*/api"), "kim")
    before = len(demo.facts)
    demo.ask(SUBSCRIBE(room="demo", pattern="Work/"), "sec")
    assert told(demo, "work/api") == ["kim", "sec"]
    assert told(demo, "work/api", sequence=before + 1) == ["kim"]
    assert told(demo, "work/api", author="kim") == ["sec"]
    assert told(demo, "notes/x") == []
    demo.ask(UNSUBSCRIBE(room="demo", pattern="work/"), "sec")
    assert told(demo, "work/x") == ["kim"]


def test_a_deleted_room_takes_its_subscriptions(demo: Hub) -> None:
    """At once."""
    demo.user("kim")
    demo.ask(SUBSCRIBE(room="demo", pattern="*"), "kim")
    demo.delete_room(room_of(demo))
    assert demo.tables.all("SELECT * FROM subscription") == []


def test_missed_changes_are_found_by_an_index(demo: Hub) -> None:
    """What was before costs nothing."""
    plan = [row[3] for row in demo.tables.all(f"EXPLAIN QUERY PLAN {queries_changes.VERSIONS}", "r", 0, 1)]
    assert "version_sequence (room_id=? AND sequence>? AND sequence<?)" in plan[0]
    assert not any("TEMP B-TREE" in step for step in plan)


async def next_of(ask: Asker, handle: str) -> tuple[str, Any]:
    """The next delivery, acknowledged: its reason and message. It may be on its way."""
    async with asyncio.timeout(BOUND_S):
        while True:
            taken = await ask(rooms_pb.TakeDeliveryRequest(room="demo", new_call=True), handle)
            if taken.message_id:
                break
            await asyncio.sleep(0.02)
    shown = await ask(rooms_pb.GetDeliveryRequest(room="demo", message=taken.message_id), handle)
    state = rooms_views_pb2.DELIVERY_STATE_ACKNOWLEDGED
    await ask(rooms_pb.MarkDeliveryRequest(room="demo", message=taken.message_id, state=state), handle)
    assert shown.reason == CHANGED
    return shown.message.content, shown.message


async def test_changes_wake_their_subscribers_once(nats_server: testing.NatsServer, tmp_path: Path, ask: Asker) -> None:
    """Two replicas, and one that starts again with no tables: every change once, in the document's thread."""
    await ask(rooms_pb.SaveMemberRequest(room="demo", handle="sec"))
    async with running(nats_server, tmp_path / "a"), running(nats_server, tmp_path / "b"):
        await ask(pb.WriteDocumentRequest(room="demo", key="decisions/db", body="before"))
        await ask(SUBSCRIBE(room="demo", pattern="decisions/*"), "sec")
        await ask(SUBSCRIBE(room="demo", pattern="decisions/db"), "sec")
        await ask(pb.WriteDocumentRequest(room="demo", key="decisions/db", body="the secret"), "julia")
        await ask(pb.WriteDocumentRequest(room="demo", key="decisions/db", body="mine"), "sec")
        await ask(pb.WriteDocumentRequest(room="demo", key="notes/x", body="x"))
        await ask(pb.RemoveDocumentRequest(room="demo", key="decisions/db"), "kim")
        given = dict([await next_of(ask, "sec"), await next_of(ask, "sec")])
    message = given["decisions/db is now at version 2, by julia"]
    assert set(given) == {message.content, "decisions/db was removed, by kim"}
    assert (message.sender_handle, message.message_type) == ("julia", "change")
    assert json.loads(message.metadata_json) == {
        "key": "decisions/db", "version": 2, "change": "written", "moved_from": None,
    }  # fmt: skip
    async with running(nats_server, tmp_path / "c"):
        await ask(pb.WriteDocumentRequest(room="demo", key="decisions/db", body="back"))
        assert (await next_of(ask, "sec"))[0] == "decisions/db is now at version 5, by avery"
        thread = (await ask(pb.GetDocumentRequest(room="demo", key="decisions/db"))).document.thread
        listed = await ask(rooms_pb.ListMessagesRequest(room="demo", thread=thread))
        assert (message.thread, len(listed.messages)) == (thread, 3)
        assert not (await ask(rooms_pb.ListMessagesRequest(room="demo"))).messages


async def react(runtime: Runtime, document: views_pb2.Document) -> None:
    """As if the service had not got to say that it is done with the fact of a version."""
    found = await runtime.connection.get(document.sequence)
    assert found
    stored = Stored(document.sequence, subject(document.room_id, document.key), "", "", "")
    await WAKER.run(runtime, events.decode(found[0][headers.TYPE], found[1]), stored)


async def test_a_change_is_told_once_however_often_it_is_reacted_to(
    nats_server: testing.NatsServer, tmp_path: Path, ask: Asker
) -> None:
    """A replica that dies before it could say that it is done: also when others have subscribed or left meanwhile."""
    for handle in ("sec", "ops"):
        await ask(rooms_pb.SaveMemberRequest(room="demo", handle=handle))
    async with running(nats_server, tmp_path) as runtime:
        for handle in ("sec", "ops"):
            await ask(SUBSCRIBE(room="demo", pattern="a"), handle)
        written = (await ask(pb.WriteDocumentRequest(room="demo", key="a", body="x"))).document
        first = await next_of(ask, "sec")
        await react(runtime, written)
        await ask(UNSUBSCRIBE(room="demo", pattern="a"), "ops")
        await ask(subscriptions_pb2.ListSubscriptionsRequest(room="demo"), "ops")  # the tables know
        await react(runtime, written)
        assert await next_of(ask, "ops") == first
        for handle in ("sec", "ops"):
            assert not (await ask(rooms_pb.TakeDeliveryRequest(room="demo", new_call=True), handle)).message_id
        await ask(rooms_pb.RemoveMemberRequest(room="demo", handle="sec"))
        await react(runtime, (await ask(pb.WriteDocumentRequest(room="demo", key="a", body="for nobody"))).document)
        listed = await ask(rooms_pb.ListMessagesRequest(room="demo", thread=written.thread))
        assert [message.id for message in listed.messages] == [first[1].id]
