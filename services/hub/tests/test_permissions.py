"""What the server lets a service do, asked of a real server: only its own requests, facts, inbox and buckets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import KeyValueConfig, StorageType

from mycelium_hub import nats_config, nats_server
from mycelium_hub.home import Home
from mycelium_hub.services import PARTS
from mycelium_kernel.connections import Connection

BOUND_S = 10.0


@dataclass
class Caller:
    """A client, and what the server said against it."""

    client: Client
    refused: asyncio.Queue[str] = field(default_factory=asyncio.Queue)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[Home, int]]:
    home = Home(tmp_path / "home")
    home.prepare()
    child, port = await nats_server.start(home, tuple(part.user for part in PARTS))
    yield home, port
    await child.stop()


async def _connect(server: tuple[Home, int], user: str) -> Caller:
    home, port = server
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def on_error(error: Exception) -> None:
        refused.put_nowait(str(error))

    client = await nats.connect(
        f"nats://127.0.0.1:{port}",
        user=user,
        password=nats_config.passwords(home, (user,))[user],
        inbox_prefix=f"_INBOX_{user}".encode(),
        error_cb=on_error,
    )
    return Caller(client, refused)


@pytest.fixture
async def rooms(server: tuple[Home, int]) -> AsyncIterator[Caller]:
    caller = await _connect(server, "rooms")
    yield caller
    await caller.client.close()


@pytest.fixture
async def gateway(server: tuple[Home, int]) -> AsyncIterator[Caller]:
    caller = await _connect(server, "gateway")
    yield caller
    await caller.client.close()


@pytest.mark.parametrize("user", ["rooms", "gateway"])
async def test_the_kernel_finds_the_server_fit(server: tuple[Home, int], user: str) -> None:
    """The kernel reads back that facts are synced, and makes the stream of facts."""
    connection = await Connection.open(nats_server.settings(*server, user))
    await connection.prepare()
    await connection.close()


async def test_a_request_in_ones_own_name_is_answered(rooms: Caller, gateway: Caller) -> None:
    """The gateway asks, rooms hears it and answers on the gateway's inbox."""

    async def answer(message: Msg) -> None:
        await message.respond(b"here")

    await rooms.client.subscribe("svc.rooms.get_room.*", queue="q", cb=answer)
    await rooms.client.flush()
    answered = await gateway.client.request("svc.rooms.get_room.gateway", b"", timeout=BOUND_S)
    assert answered.data == b"here"


@pytest.mark.parametrize(
    "subject",
    [
        "svc.rooms.get_room.rooms",
        "evt.rooms.x.message",
        "timer.set.rooms.x.y",
        "$KV.rooms_x.y",
        "_INBOX_rooms.x",
        "free",
    ],
)
async def test_nothing_is_published_under_anothers_name(gateway: Caller, subject: str) -> None:
    """Requests, facts, timers, buckets and answers of another are refused by the server."""
    await gateway.client.publish(subject, b"")
    refusal = await asyncio.wait_for(gateway.refused.get(), BOUND_S)
    assert "permissions violation for publish" in refusal.lower()


@pytest.mark.parametrize(
    "subject", ["_INBOX_gateway.>", "_INBOX_gateway.x.y", "svc.gateway.>", "evt.>", ">", "_INBOX.>"]
)
async def test_nobody_listens_on_anothers_inbox(rooms: Caller, subject: str) -> None:
    """Neither answers nor requests meant for another can be overheard."""
    await rooms.client.subscribe(subject)
    refusal = await asyncio.wait_for(rooms.refused.get(), BOUND_S)
    assert "permissions violation for subscription" in refusal.lower()


@pytest.mark.parametrize("verb", ["DELETE", "PURGE"])
async def test_no_service_deletes_the_log(rooms: Caller, verb: str) -> None:
    """The stream of facts is appended to and read, whatever a service's code does."""
    await rooms.client.publish(f"$JS.API.STREAM.{verb}.FACTS", b"")
    refusal = await asyncio.wait_for(rooms.refused.get(), BOUND_S)
    assert "permissions violation for publish" in refusal.lower()


async def test_the_buckets_owner_writes_and_others_watch(rooms: Caller, gateway: Caller) -> None:
    """The gateway's open waits are seen by rooms, which can't change them."""
    bucket = await gateway.client.jetstream().create_key_value(
        KeyValueConfig(bucket="gateway_waits", storage=StorageType.MEMORY)
    )
    await bucket.put("a.b", b"1")
    seen = await rooms.client.jetstream().key_value("gateway_waits")
    assert (await seen.get("a.b")).value == b"1"
    watcher = await seen.watchall()
    entry = await watcher.updates(timeout=BOUND_S)
    assert entry is not None
    assert entry.key == "a.b"
    await watcher.stop()
    await rooms.client.publish("$KV.gateway_waits.a.b", b"2")
    assert "publish" in (await asyncio.wait_for(rooms.refused.get(), BOUND_S)).lower()


async def test_a_stranger_is_not_let_in(server: tuple[Home, int]) -> None:
    """Without the password that lies in the home, nobody connects."""
    client = Client()
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
        await client.connect(f"nats://127.0.0.1:{server[1]}", user="rooms", password="guess", allow_reconnect=False)
    await client.close()


def test_passwords_are_private_and_stay(tmp_path: Path) -> None:
    """Made once, 0600; a service that is added later gets its own without changing the others."""
    home = Home(tmp_path / "home")
    home.prepare()
    first = nats_config.passwords(home, ("rooms",))
    later = nats_config.passwords(home, ("rooms", "board"))
    assert later["rooms"] == first["rooms"]
    assert len(set(later.values())) == len(later)
    assert (home.secrets / "nats.json").stat().st_mode & 0o777 == 0o600
