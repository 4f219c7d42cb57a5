"""What gateways tell in memory comes back when no NATS server leads it any more, to all who follow it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mycelium_gateway.follow import Follower
from mycelium_gateway.keys import SAID, WAITS, Keys, OpenWait, Said
from mycelium_kernel import in_memory, run, subjects, tasks, testing
from mycelium_kernel.connections import NATS_ERRORS, Connection
from mycelium_rooms.presence import Presences
from mycelium_rooms.service import service
from mycelium_rooms.waits import Waits

ROOM = "01900000-0000-7000-8000-000000000001"
BOUND_S = 60.0


@dataclass
class Gateway:
    """What of a gateway tells others, and what it heard of the others and of its own trouble."""

    connection: Connection
    keys: Keys
    heard: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


@contextlib.asynccontextmanager
async def gateway(servers: list[testing.NatsServer], name: str) -> AsyncIterator[Gateway]:
    connection = await Connection.open(testing.settings_of(servers, "gateway", 2))
    made = Gateway(connection, Keys(connection, name, lambda: 0))
    follower = Follower(connection, SAID, lambda: None, lambda key, _value: made.heard.append(key), beats=False)
    await made.keys.start()
    looking = asyncio.create_task(
        in_memory.look_after(connection, lambda part, fault, _for_s: made.told.append(f"{part}: {fault}"))
    )
    following = asyncio.create_task(follower.follow())
    try:
        yield made
    finally:
        await tasks.end([looking, following])
        await made.keys.stop()
        await connection.close()


@contextlib.asynccontextmanager
async def connected(servers: list[testing.NatsServer], replicas: int) -> AsyncIterator[Connection]:
    connection = await Connection.open(testing.settings_of(servers, "test", replicas))
    try:
        yield connection
    finally:
        await connection.close()


async def spread(connection: Connection, servers: list[testing.NatsServer]) -> list[testing.NatsServer]:
    """Make both buckets, each on two servers; returns the servers but for one that has a copy of both."""
    peers = []
    for bucket in (WAITS, SAID):
        async with asyncio.timeout(BOUND_S):
            while True:
                try:
                    await in_memory.open_bucket(connection, bucket)
                    info = await connection.jetstream.stream_info(subjects.bucket(bucket))
                except NATS_ERRORS:  # the servers are still finding each other
                    await asyncio.sleep(0.05)
                    continue
                break
        assert info.cluster
        peers.append({info.cluster.leader, *(replica.name for replica in info.cluster.replicas or [])})
    shared = peers[0] & peers[1]
    return [server for server in servers if server.name != max(shared, key=str)]


@pytest.mark.timeout(240)
async def test_waits_and_what_members_said_are_told_again_after_their_leader_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two gateways see it at the same moment, and a third starts meanwhile.

    1. Each bucket lies on two of three servers; two gateways open waits, and a member says what it does
    2. a server that has a copy of both is killed, to which nobody is connected: the other copies may not lead alone
    3. a third gateway starts and opens a wait
    4. rooms sees all waits and what was said, and so do the gateways; each gateway has told of it, and that it is over
    """
    for name, seconds in (("LOOK_S", 0.5), ("PATIENCE_S", 1.0), ("SPREAD_S", 0.0)):
        monkeypatch.setattr(in_memory, name, seconds)
    async with contextlib.AsyncExitStack() as stack:
        servers = await stack.enter_async_context(testing.nats_cluster(tmp_path / "nats"))
        facts, hints = [await stack.enter_async_context(connected(servers, replicas)) for replicas in (3, 2)]
        await facts.prepare()
        left = await spread(hints, servers)
        waits = Waits()
        presences = Presences(waits)
        rooms = await run.start(service(waits, presences), testing.settings_of(left, "rooms", 2), None)
        stack.push_async_callback(rooms.stop)
        one, two = [await stack.enter_async_context(gateway(left, name)) for name in ("one", "two")]
        await one.keys.opened(OpenWait(ROOM, "bob", "w1", 600))
        await two.keys.opened(OpenWait(ROOM, "eve", "w2", 600))
        said = Said(ROOM, "bob", "working", "", 0, 10**15)
        await one.keys.say(said)
        await becomes(waits, "bob", "eve")

        next(server for server in servers if server not in left).kill()
        await becomes(waits)
        for made in (one, two):
            made.heard.clear()
        three = await stack.enter_async_context(gateway(left, "three"))
        await three.keys.opened(OpenWait(ROOM, "kim", "w3", 600))

        await becomes(waits, "bob", "eve", "kim")
        await holds(lambda: all(said.key in made.heard for made in (one, two, three)))
        await holds(lambda: said.key in presences._picture.said)
        await holds(lambda: {last_of(made.told, bucket) for made in (one, two) for bucket in (WAITS, SAID)} == {""})
    again = [line for line in caplog.messages if "made again and filled anew" in line]
    assert all(1 <= sum(bucket in line for line in again) <= 3 for bucket in (WAITS, SAID))


def last_of(told: list[str], bucket: str) -> str | None:
    """What was told of a bucket last; None when nothing was."""
    own = [line.partition(": ")[2] for line in told if line.startswith(subjects.bucket(bucket))]
    return own[-1] if own else None


async def becomes(waits: Waits, *handles: str) -> None:
    """Rooms sees waits of exactly these."""
    known = ("bob", "eve", "kim")
    await holds(lambda: {handle for handle in known if waits.is_open(ROOM, handle)} == set(handles))


async def holds(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - of other processes, and of many parts
            await asyncio.sleep(0.05)
