"""A server or stream that can't keep the promises is refused with what to change."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from nats.js.api import RetentionPolicy, StorageType

from mycelium_kernel import connections, fitness, subjects, testing
from mycelium_kernel.connections import Connection, Unfit
from mycelium_kernel.errors import Unavailable
from services.kernel.tests import toy


async def refused(server: testing.NatsServer, **changes: Any) -> str:
    connection = await Connection.open(dataclasses.replace(server.settings(), **changes))
    try:
        with pytest.raises(Unfit) as unfit:
            await connection.prepare()
    finally:
        await connection.close()
    return str(unfit.value)


async def test_a_server_that_acknowledges_too_early_is_refused(tmp_path: Path) -> None:
    """Without `sync_interval: always` an acknowledged fact can be lost."""
    server = testing.NatsServer(tmp_path, sync='"2m"')
    await server.start()
    assert "sync_interval: always" in await refused(server)
    server.stop()


async def test_a_server_that_takes_small_messages_only_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large facts must fit."""
    monkeypatch.setattr(testing, "CONFIG", testing.CONFIG.replace("max_payload: 8388608", "max_payload: 1000000"))
    server = testing.NatsServer(tmp_path)
    await server.start()
    assert "max_payload: 8388608" in await refused(server)
    server.stop()


async def test_an_old_server_is_refused(nats_server: testing.NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is read from the server itself."""
    monkeypatch.setattr(fitness, "MIN_SERVER", (99, 0))
    assert "use 99.0 or later" in await refused(nats_server)


async def test_settings_that_cant_be_read_back_are_refused(nats_server: testing.NatsServer) -> None:
    """What can't be checked is not believed: no monitor user, a wrong password, a user who may not look."""
    assert "no monitor user" in await refused(nats_server, monitor_user="")
    assert "refuses the user 'monitor'" in await refused(nats_server, monitor_password="wrong")


async def test_a_monitor_without_rights_is_refused(
    nats_server: testing.NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user of another account gets no answer, and that is told."""
    monkeypatch.setattr(fitness, "MONITOR_S", 0.2)
    assert "system account" in await refused(nats_server, monitor_user="test", monitor_password=testing.PASSWORD)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("storage", StorageType.MEMORY),
        ("retention", RetentionPolicy.INTEREST),
        ("allow_atomic", False),
        ("subjects", ["evt.rooms.>"]),
        ("duplicate_window", 5.0),
        ("max_age", 3600.0),
        ("max_msgs", 10),
        ("max_bytes", 1_000_000),
        ("max_msgs_per_subject", 1),
        ("max_msg_size", 1000),
    ],
)
async def test_a_stream_that_would_lose_facts_is_refused(
    nats_server: testing.NatsServer, connection: Connection, name: str, value: Any
) -> None:
    """A stream that somebody made or changed by hand is looked at before it is trusted."""
    config = connections.fact_stream(1)
    setattr(config, name, value)
    if name == "max_age":
        config.duplicate_window = fitness.DEDUPLICATION_S
    await connection.jetstream.add_stream(config)
    assert name in await refused(nats_server)


async def test_too_few_replicas_are_refused(nats_server: testing.NatsServer, connection: Connection) -> None:
    """A log kept once is not taken for one that is kept three times."""
    await connection.prepare()
    assert "num_replicas" in await refused(nats_server, replicas=3)


async def test_the_same_log_has_the_same_epoch_and_another_one_another(
    nats_server: testing.NatsServer, connection: Connection
) -> None:
    """The epoch tells logs apart, over restarts."""
    await connection.prepare()
    first = connection.epoch
    nats_server.kill()
    await nats_server.start()
    await toy.until(lambda: connection.client.is_connected)
    await connection.prepare()
    assert connection.epoch == first
    assert await connection.look() == (first, 0)

    await connection.jetstream.delete_stream(subjects.STREAM)
    assert await connection.look() == ("", 0)
    await connection.prepare()
    assert connection.epoch != first


async def test_a_user_that_the_server_does_not_know_is_told_at_once(nats_server: testing.NatsServer) -> None:
    """A wrong password is no reason to try again."""
    with pytest.raises(Unfit, match="refuses the user 'nobody'"):
        await Connection.open(nats_server.settings("nobody"))


async def test_a_server_that_is_not_there_is_waited_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that comes up in time is connected to; one that does not is an error that says why."""
    monkeypatch.setattr(connections, "CONNECT_S", 0.3)
    server = testing.NatsServer(tmp_path)
    with pytest.raises((OSError, nats.errors.Error)):
        await Connection.open(server.settings())

    monkeypatch.setattr(connections, "CONNECT_S", 5.0)
    opening = asyncio.create_task(Connection.open(server.settings()))
    await asyncio.wait({opening}, timeout=0.05)
    await server.start()
    connection = await opening
    assert connection.client.is_connected
    await connection.close()
    server.stop()


async def test_reads_of_a_log_that_is_not_there_are_unavailable(connection: Connection) -> None:
    """No answer is an answer of its own kind, not an empty log."""
    for read in (connection.last_sequence(subjects.ALL_FACTS), connection.get(1)):
        with pytest.raises(Unavailable):
            await read


async def test_a_listener_that_left_is_not_called(nats_server: testing.NatsServer, connection: Connection) -> None:
    """Who asked to be told of reconnects is told, until it takes that back."""
    told: list[str] = []

    def one() -> None:
        told.append("one")

    def two() -> None:
        told.append("two")

    connection.on_reconnect(one)
    connection.on_reconnect(two)
    connection.off_reconnect(one)
    connection.off_reconnect(one)
    nats_server.kill()
    await nats_server.start()
    await toy.until(lambda: told)

    assert told == ["two"]


async def test_closing_does_not_wait_for_a_server_that_hangs(nats_server: testing.NatsServer) -> None:
    """A stop is quick whatever NATS does."""
    connection = await Connection.open(nats_server.settings())
    nats_server.pause()
    async with asyncio.timeout(connections.CLOSE_S + 1):
        await connection.close()
    nats_server.resume()


async def test_an_attempt_ends_when_the_connection_comes_back(
    connection: Connection, nats_server: testing.NatsServer
) -> None:
    """What was under way when the connection was lost is tried again at once, not after its own bound."""
    begun = asyncio.Event()

    async def wait_for_ever() -> None:
        async with connection.attempt(60):
            begun.set()
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait_for_ever())
    await begun.wait()
    nats_server.kill()
    await nats_server.start()

    with pytest.raises(TimeoutError):
        await waiting


async def test_a_connection_that_the_server_closes_for_good_says_so(connection: Connection) -> None:
    """Breaking the protocol ends a client of NATS for ever; whoever runs the service has to know."""
    assert not connection.lost.is_set()
    await connection.client.publish("x" * 5000, b"")

    async with asyncio.timeout(60):
        await connection.lost.wait()
