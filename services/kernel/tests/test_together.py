"""Facts that are stored in one step: all or none, in order, judged by the last one's entity."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import headers, subjects, testing
from mycelium_kernel.appending import Appended
from mycelium_kernel.bus import Bus
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import DeadlinePassed, Refusal, Unavailable, WrongSequence
from mycelium_kernel.log import Log
from mycelium_kernel.service import Also, Command, Context, Fact
from services.kernel.tests import toy
from services.kernel.tests.toy import ACTOR, Start

ENTITY = subjects.fact("test", "room", "thing", "one")
POSTS = subjects.posts("room")


@pytest.fixture
async def log(connection: Connection) -> AsyncIterator[Log]:
    await connection.prepare()
    writer = Log(connection, system_clock)
    writer.start()
    yield writer
    await writer.stop()


async def together(log: Log, expect: int, seconds: float = 10) -> Appended:
    stored = {headers.TYPE: "x"}
    group = [(POSTS, b"one", stored), (POSTS, b"two", stored), (ENTITY, b"last", stored)]
    return await log.append_together(group, expect=expect, deadline=system_clock() + timedelta(seconds=seconds))


async def test_a_group_is_stored_whole_or_not_at_all(log: Log, connection: Connection) -> None:
    """One that expects what is not so leaves nothing."""
    assert (await together(log, 0)).sequence == 3
    with pytest.raises(WrongSequence):
        await together(log, 0)
    assert await connection.last_sequence(None) == 3
    assert (await together(log, 3)).sequence == 6
    assert [(await connection.get(place) or ({}, b""))[1] for place in (4, 5, 6)] == [b"one", b"two", b"last"]


async def test_a_group_that_is_late_or_comes_to_a_stopped_log_is_not_stored(log: Log, connection: Connection) -> None:
    """The caller is told which."""
    with pytest.raises(DeadlinePassed):
        await together(log, 0, seconds=-1)
    await log.stop()
    with pytest.raises(Unavailable):
        await together(log, 0)
    assert await connection.last_sequence(None) == 0


async def test_a_command_may_bring_facts_with_its_own(start: Start, bus: Bus) -> None:
    """With the headers that it gives them; a repeat brings nothing twice."""

    def bring(entity: toy.UserEntity, request: service_pb2.SaveUserRequest, context: Context) -> Fact:
        if entity.state:
            raise Refusal("handle.taken", "it is there")
        event = events_pb2.MessagePosted(content="brought", created_at=events_pb2.MessagePosted().created_at)
        own = toy.save_user(entity, request, context)
        return Fact(own.event, on=entity, also=(Also(event, POSTS, {"Myc-Imported": "7"}),) * 3)

    command = Command(service_pb2.SaveUserRequest, toy.load_user, bring, toy.answer_user)
    async with start(toy.service(commands=(command,))) as runtime:
        first = await bus.ask(
            service_pb2.SaveUserRequest(handle="a"), service_pb2.SaveUserResponse, actor=ACTOR, key="k"
        )
        again = await bus.ask(
            service_pb2.SaveUserRequest(handle="a"), service_pb2.SaveUserResponse, actor=ACTOR, key="k"
        )
        assert first == again
        assert (first.sequence, await runtime.connection.last_sequence(None)) == (4, 4)
        found = await runtime.connection.get(1)
        assert found is not None
        assert found[0]["Myc-Imported"] == "7"
        with pytest.raises(Refusal):
            await toy.save(bus, "a")


async def test_each_fact_of_a_group_may_expect_its_own_place(log: Log, connection: Connection) -> None:
    """Two decisions on entities of their own that share a third: the second is refused, and leaves nothing."""
    shared = subjects.fact("test", "room", "look", "one")

    async def decided(entity: str, shared_at: int) -> int:
        group = [(shared, b"look", {headers.TYPE: "x", headers.EXPECTED: str(shared_at)}), (entity, b"it", {})]
        deadline = system_clock() + timedelta(seconds=10)
        return (await log.append_together(group, expect=0, deadline=deadline)).sequence

    entities = [subjects.fact("test", "room", "thing", name) for name in ("one", "two", "three")]
    answers = await asyncio.gather(*(decided(entity, 0) for entity in entities), return_exceptions=True)
    assert sorted(map(type, answers), key=str) == sorted([int, WrongSequence, WrongSequence], key=str)
    assert await connection.last_sequence(None) == 2
    assert await decided(entities[answers.index(2) - 1], 1) == 4


async def test_more_groups_at_once_than_the_server_takes_are_all_stored(log: Log, connection: Connection) -> None:
    """Each waits for its turn."""

    async def one(number: int) -> int:
        entity = subjects.fact("test", "room", "thing", f"n{number}")
        deadline = system_clock() + timedelta(seconds=10)
        return (
            await log.append_together([(POSTS, b"x", {}), (entity, b"y", {})], expect=0, deadline=deadline)
        ).sequence

    assert len(set(await asyncio.gather(*map(one, range(120))))) == 120
    assert await connection.last_sequence(None) == 240


async def test_a_group_waits_for_nats_like_a_fact_alone(
    log: Log, connection: Connection, nats_server: testing.NatsServer
) -> None:
    """A server that is away for a moment is asked again; nothing is stored twice."""
    nats_server.kill()
    asked = asyncio.create_task(together(log, 0))
    await asyncio.sleep(0)
    await nats_server.start()
    assert (await asked).sequence == 3
    with pytest.raises(WrongSequence):
        await together(log, 0)
