"""Open waits: what a watch shows, whose gateway lives, and a real bucket through a restart of NATS."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from nats.js.api import KeyValueConfig, StorageType

from mycelium_kernel import run, subjects, testing
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_rooms.service import service
from mycelium_rooms.waits import BUCKET, LIVE_S, Picture, Waits

ROOM = "01900000-0000-7000-8000-000000000001"
BOUND_S = 60.0


def key(queue: str, wait: str = "w1") -> str:
    return f"{ROOM}.{subjects.token(queue)}.{wait}"


def picture() -> Picture:
    shown = Picture()
    shown.put("instance.g1", "g1", 0.0)
    shown.put(key("a.b"), "g1", 0.0)
    shown.put(key("a.b", "w2"), "g2", 0.0)
    return shown


def test_a_wait_counts_while_its_gateway_lives() -> None:
    """By our own clock: no news is no wait."""
    shown, queue = picture(), subjects.token("a.b")
    assert shown.is_open(ROOM, queue, LIVE_S - 0.1)
    assert not shown.is_open(ROOM, queue, LIVE_S)
    shown.put("instance.g2", "g2", LIVE_S)
    assert shown.is_open(ROOM, queue, LIVE_S)
    assert not shown.is_open("another", queue, 0.0)
    assert not shown.is_open(ROOM, subjects.token("a"), 0.0)


def test_a_wait_that_ended_and_those_of_a_gateway_that_died_are_gone() -> None:
    """Nothing is left of them."""
    shown, queue = picture(), subjects.token("a.b")
    shown.remove(key("a.b", "w2"))
    shown.remove(key("never", "was"))
    shown.remove("instance.never")
    assert shown.is_open(ROOM, queue, 0.0)
    shown.put(key("c"), "g2", 0.0)
    shown.remove("instance.g1")
    shown.put("instance.g1", "g1", 0.0)
    assert not shown.is_open(ROOM, queue, 0.0)
    shown.remove("instance.g2")
    assert shown._waits == {}


def test_a_handle_waits_by_its_own_queue_or_a_seats() -> None:
    """And not by that of a handle which begins like it."""
    waits = Waits(lambda: 1.0)
    waits._picture.put("instance.g1", "g1", 0.5)
    for queue in ("bot-2", "kim#2", "avery", "d.e"):
        waits._picture.put(key(queue), "g1", 0.5)
    waits._picture.put(key("ghost"), "g0", 0.5)
    assert [waits.is_waiting(ROOM, handle) for handle in ("bot", "kim", "avery", "d.e", "d", "ghost")] == [
        False, True, True, True, False, False,
    ]  # fmt: skip
    assert (waits.is_open(ROOM, "kim"), waits.is_open(ROOM, "kim#2")) == (False, True)


@contextlib.asynccontextmanager
async def watching(server: testing.NatsServer) -> AsyncIterator[tuple[Waits, Runtime]]:
    waits = Waits()
    runtime = await run.start(service(waits), server.settings("rooms"), None)
    try:
        yield waits, runtime
    finally:
        await runtime.stop()


async def becomes(condition: Callable[[], bool], *, now: bool) -> None:
    async with asyncio.timeout(BOUND_S):
        while condition() != now:  # noqa: ASYNC110 - what changes it is another process
            await asyncio.sleep(0.01)


@pytest.fixture
async def gateway(nats_server: testing.NatsServer) -> AsyncIterator[Connection]:
    connection = await Connection.open(nats_server.settings("gateway"))
    yield connection
    await connection.close()


async def put(gateway: Connection, name: str, ttl_s: float | None = None) -> None:
    """As a gateway does it: the bucket first, which a restart has emptied."""
    config = KeyValueConfig(bucket=BUCKET, storage=StorageType.MEMORY, history=1, limit_marker_ttl=5)
    async with asyncio.timeout(BOUND_S):
        while True:
            with contextlib.suppress(Exception):
                await gateway.jetstream.create_key_value(config)
                await gateway.jetstream.publish(f"$KV.{BUCKET}.{name}", b"g1", timeout=1, msg_ttl=ttl_s)
                return
            await asyncio.sleep(0.05)


async def test_a_gateways_waits_are_seen_and_end_with_it(nats_server: testing.NatsServer, gateway: Connection) -> None:
    """Opened, ended, opened again; then the gateway is heard of no more and its key expires."""
    async with watching(nats_server) as (waits, _runtime):
        await put(gateway, "instance.g1")
        await put(gateway, key("engineer"))
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=True)
        bucket = await gateway.jetstream.key_value(BUCKET)
        await bucket.delete(key("engineer"))
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=False)
        await put(gateway, key("engineer", "w2"))
        await put(gateway, "instance.g1", 1.0)
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=True)
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=False)


async def test_waits_are_seen_again_after_nats_was_killed(nats_server: testing.NatsServer, gateway: Connection) -> None:
    """The bucket is in memory, so both sides begin anew."""
    async with watching(nats_server) as (waits, runtime):
        await put(gateway, "instance.g1")
        await put(gateway, key("engineer"))
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=True)
        nats_server.kill()
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=False)
        await nats_server.start()
        await put(gateway, "instance.g1")
        await put(gateway, key("engineer"))
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=True)
        assert runtime.health()["status"] == "ok"


async def test_a_bucket_that_was_made_otherwise_is_used_as_it_is(
    nats_server: testing.NatsServer, gateway: Connection
) -> None:
    """Another version of the gateway may have made it."""
    await gateway.jetstream.create_key_value(KeyValueConfig(bucket=BUCKET, storage=StorageType.MEMORY, history=3))
    async with watching(nats_server) as (waits, _runtime):
        bucket = await gateway.jetstream.key_value(BUCKET)
        await bucket.put("instance.g1", b"g1")
        await bucket.put(key("engineer"), b"g1")
        await becomes(lambda: waits.is_open(ROOM, "engineer"), now=True)
