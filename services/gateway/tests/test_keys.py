"""The keys of open waits: none stands for longer than its wait is open, whatever came between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from nats.js.api import KeyValueConfig, StorageType
from nats.js.errors import NoKeysError

from mycelium_gateway.keys import WAITS, Keys, OpenWait
from mycelium_kernel import testing
from mycelium_kernel.connections import Connection
from mycelium_kernel.in_memory import open_bucket
from services.gateway.tests.door import until

WAIT = OpenWait("room", "bob", "wait", 60)


@pytest.fixture
async def connection(nats_server: testing.NatsServer) -> AsyncIterator[Connection]:
    made = await Connection.open(nats_server.settings("gateway"))
    yield made
    await made.close()


async def standing(connection: Connection) -> list[str]:
    """The keys of waits that stand now."""
    bucket = await open_bucket(connection, WAITS)
    try:
        return [key for key in await bucket.keys() if not key.startswith("instance.")]
    except NoKeysError:
        return []


async def test_a_wait_that_ends_while_its_key_is_put_leaves_none(connection: Connection) -> None:
    """Keys are put anew when the server was away; one that ended meanwhile must not come back to life."""
    keys = Keys(connection, "me", lambda: 0)
    await keys.start()
    await keys.opened(WAIT)
    assert await standing(connection) == [WAIT.key]
    await keys.closed(WAIT)
    await keys._put_wait(WAIT)  # by who had listed the open ones before
    assert await standing(connection) == []
    await keys.stop()


async def test_a_wait_whose_end_could_not_be_told_is_told_later(connection: Connection) -> None:
    """Without it others would take it for open for as long as it might have lasted."""
    await open_bucket(connection, WAITS)
    keys = Keys(connection, "me", lambda: 0)
    await keys.opened(WAIT)
    await keys.closed(WAIT)  # before this gateway could remove a key
    assert await standing(connection) == [WAIT.key]
    await keys.start()

    async def gone() -> bool:
        return await standing(connection) == []

    async with asyncio.timeout(10):
        await until(gone)
    await keys.stop()


async def test_a_bucket_that_takes_nothing_keeps_no_gateway_from_its_start(connection: Connection) -> None:
    """As one does that lost its leader when all servers were restarted; the keys come as soon as it takes some."""
    await connection.jetstream.create_key_value(KeyValueConfig(bucket=WAITS, storage=StorageType.MEMORY, max_bytes=1))
    keys = Keys(connection, "me", lambda: 0)
    await keys.start()
    await keys.opened(WAIT)
    assert await standing(connection) == []
    await connection.jetstream.delete_key_value(WAITS)

    async def told() -> bool:
        return await standing(connection) == [WAIT.key]

    async with asyncio.timeout(10):
        await until(told)
    await keys.stop()


async def test_waits_are_put_anew_when_the_gateway_was_silent_for_too_long(connection: Connection) -> None:
    """Its own key has expired, and whoever watches has dropped its waits with it; they would be missing for ever."""
    keys = Keys(connection, "me", lambda: 0)
    await keys.start()
    await keys.opened(WAIT)
    bucket = await open_bucket(connection, WAITS)
    before = (await bucket.get(WAIT.key)).revision or 0
    await bucket.delete("instance.me")  # which an expired key looks like to a watcher

    async def anew() -> bool:
        return ((await bucket.get(WAIT.key)).revision or 0) > before

    async with asyncio.timeout(10):
        await until(anew)
    await keys.stop()
