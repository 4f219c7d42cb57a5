"""What a look at the log costs that a service takes before it answers, and what of others' facts it keeps."""

from __future__ import annotations

import asyncio
import dataclasses

from nats.aio.msg import Msg

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import subjects
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.service import Command
from services.kernel.tests import toy
from services.kernel.tests.toy import ROOM, Start

POSTED = events_pb2.MessagePosted(room_id=ROOM, content="x")
SEVERAL = tuple(subjects.of_service(name) for name in ("rooms", "memory", "board", "engine"))


async def test_facts_of_its_own_are_not_asked_for_again(start: Start, bus: Bus, connection: Connection) -> None:
    """A look that finds at the log's end what this process stored asks no more; for another's fact it asks once.

    However many filters there are. What is behind a fact that it does not read is still found.
    """
    asked: list[str] = []

    async def note(message: Msg) -> None:
        asked.append(message.subject.removeprefix("$JS.API.STREAM.").partition(".FACTS")[0])

    await connection.client.subscribe("$JS.API.STREAM.>", cb=note)
    projection = dataclasses.replace(toy.PROJECTION, filters=SEVERAL)
    async with start(toy.service(projection=projection)) as runtime:
        follower = runtime.projector
        assert follower

        async def look() -> list[str]:
            await connection.client.flush()
            asked.clear()
            await follower.catch_up()
            await connection.client.flush()
            return list(asked)

        with follower.held():
            await toy.save(bus, "a")
            reading = asyncio.create_task(look())
            await toy.until(lambda: follower._waiters)
        assert await reading == ["INFO"]
        with follower.held():
            stored = await toy.store(runtime, subjects.fact("memory", ROOM, "note", "1"), POSTED)
            reading = asyncio.create_task(look())
            await toy.until(lambda: follower._waiters)
        assert await reading == ["INFO", "MSG.GET"]
        assert follower.tables.position == stored
        with follower.held():
            stored = await toy.store(runtime, subjects.fact("board", ROOM, "task", "1"), POSTED)
            await toy.store(runtime, subjects.fact("status", ROOM, "light", "1"), POSTED)
            reading = asyncio.create_task(look())
            await toy.until(lambda: follower._waiters)
        assert set(await reading) == {"INFO", "MSG.GET"}
        assert follower.tables.position == stored


async def test_a_key_of_another_services_command_is_free(start: Start, bus: Bus) -> None:
    """Its facts are read, and kept for no repeat: the same key asks a new thing here."""
    filters = (subjects.of_service("rooms"), subjects.of_service("memory"))
    projection = dataclasses.replace(toy.PROJECTION, filters=filters, owner="rooms")
    fresh = Command(service_pb2.SaveUserRequest, toy.load_user, toy.save_user, toy.answer_user, fresh=True)
    async with start(toy.service(projection=projection, commands=(fresh,))) as runtime:
        assert runtime.tables
        subject = subjects.fact("memory", ROOM, "note", "1")
        await toy.store(runtime, subject, POSTED, key="k1", body="another", actor=toy.ACTOR.handle)
        await toy.save(bus, "a", key="k1")
        first = await toy.save(bus, "b", key="k2")
        assert (await toy.save(bus, "b", key="k2")).sequence == first.sequence
        assert runtime.tables.all("SELECT key FROM answered ORDER BY key") == [("k1",), ("k2",)]
