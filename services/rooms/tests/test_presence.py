"""Presence: what is said, what is seen, and what is gone. In memory; a real bucket at the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from nats.js.api import KeyValueConfig, StorageType

from mycelium.rooms.v1 import service_pb2 as pb
from mycelium.rooms.v1 import views_pb2
from mycelium_kernel import clock, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.service import Actor
from mycelium_rooms import presence
from mycelium_rooms.service import service
from services.rooms.tests.hub import Hub


def member(hub: Hub, handle: str = "engineer") -> views_pb2.Member:
    answer: views_pb2.Member = hub.ask(pb.GetMemberRequest(room="demo", handle=handle)).member
    return answer


def doing(hub: Hub, handle: str = "engineer") -> str:
    return views_pb2.Presence.Name(member(hub, handle).presence)[9:].lower()


def room_id(hub: Hub) -> str:
    return str(hub.ask(pb.GetRoomRequest(room="demo")).room.id)


def say(hub: Hub, state: str, note: str = "", ttl_s: float = 60, handle: str = "engineer") -> None:
    """As a gateway writes it."""
    until = clock.millis(hub.now + timedelta(seconds=ttl_s))
    value = {"state": state, "note": note, "until": until, "at": clock.millis(hub.now)}
    hub.presences._picture.put(f"{room_id(hub)}.{subjects.token(handle)}", json.dumps(value), 0.0)


def test_a_member_of_whom_nothing_is_heard_is_offline(demo: Hub) -> None:
    """R11: having spoken before does not count."""
    demo.post("hello", "engineer")
    assert doing(demo) == "offline"
    assert member(demo).last_seen == clock.to_timestamp(demo.now)


def test_an_open_wait_is_idle(demo: Hub) -> None:
    """Until it ends, or its gateway is gone."""
    demo.waiting(room_id(demo), "engineer")
    assert (doing(demo), doing(demo, "reviewer")) == ("idle", "offline")
    demo.monotonic += 4
    assert doing(demo) == "offline"


def test_a_taken_delivery_is_work_until_it_is_answered(demo: Hub) -> None:
    """Or ten minutes have passed, or its session's next call has ended it."""
    message = demo.post("@engineer please").id
    assert doing(demo) == "offline"
    demo.receive("engineer")
    assert doing(demo) == "working"
    demo.later(seconds=599)
    assert doing(demo) == "working"
    demo.later(seconds=1)
    assert doing(demo) == "offline"
    demo.take("engineer", "other")
    assert doing(demo) == "working"
    demo.post("done", "engineer", "other", reply_to=message)
    assert doing(demo) == "offline"
    demo.post("@engineer again")
    demo.receive("engineer")
    demo.take("engineer")
    assert doing(demo) == "offline"


@pytest.mark.parametrize("state", ["idle", "working", "blocked"])
def test_what_a_member_says_counts_until_its_time_is_over(demo: Hub, state: str) -> None:
    """More than what is seen, and by our own clock."""
    demo.waiting(room_id(demo), "engineer")
    say(demo, state, "waits for the key", 60)
    demo.later(seconds=59)
    assert (doing(demo), member(demo).presence_note) == (state, "waits for the key")
    assert clock.from_timestamp(member(demo).last_seen) == demo.now - timedelta(seconds=59)
    demo.later(seconds=1)
    assert (doing(demo), member(demo).presence_note) == ("idle", "")
    demo.monotonic += 4
    assert doing(demo) == "offline"


def test_it_is_shown_in_the_room_and_in_the_list(demo: Hub) -> None:
    """Of everybody."""
    say(demo, "blocked", handle="reviewer")
    for answer in (demo.ask(pb.GetRoomRequest(room="demo")), demo.ask(pb.ListMembersRequest(room="demo"))):
        assert [shown.presence for shown in answer.members] == [4, 3]


@pytest.mark.parametrize("value", ["", "x", "[]", "{}", '{"state": "idle"}', '{"state": "away", "until": 1}', "1"])
def test_a_value_that_can_not_be_read_is_nothing(value: str) -> None:
    """Another version may have written it."""
    assert presence.read(value) is None


@contextlib.asynccontextmanager
async def told(server: testing.NatsServer) -> AsyncIterator[tuple[Bus, Connection]]:
    """A running service, a room with an agent, and a gateway."""
    runtime = await run.start(service(), server.settings("rooms"), None)
    connection = await Connection.open(server.settings("gateway"))
    bus, avery = Bus(connection, "gateway"), Actor("avery", "")
    await bus.ask(pb.CreateRoomRequest(name="demo"), pb.CreateRoomResponse, actor=avery)
    await bus.ask(pb.SaveMemberRequest(room="demo", handle="bot"), pb.SaveMemberResponse, actor=avery)
    try:
        yield bus, connection
    finally:
        await connection.close()
        await runtime.stop()


async def test_a_key_is_seen_while_it_lives(nats_server: testing.NatsServer) -> None:
    """Written with a time to live of a second: then the member is offline."""
    async with told(nats_server) as (bus, connection):
        room = await bus.ask(pb.GetRoomRequest(room="demo"), pb.GetRoomResponse, actor=Actor("", ""))
        config = KeyValueConfig(bucket=presence.BUCKET, storage=StorageType.MEMORY, history=1, limit_marker_ttl=5)
        with contextlib.suppress(Exception):
            await connection.jetstream.create_key_value(config)
        now = clock.millis(clock.system_clock())
        value = json.dumps({"state": "working", "note": "", "until": now + 1000, "at": now}).encode()
        subject = f"$KV.{presence.BUCKET}.{room.message.room.id}.bot"
        await connection.jetstream.publish(subject, value, msg_ttl=1)
        for wanted in (views_pb2.PRESENCE_WORKING, views_pb2.PRESENCE_OFFLINE):
            async with asyncio.timeout(60):
                while True:
                    request = pb.GetMemberRequest(room="demo", handle="bot")
                    shown = await bus.ask(request, pb.GetMemberResponse, actor=Actor("", ""))
                    if shown.message.member.presence == wanted:
                        break
                    await asyncio.sleep(0.02)
