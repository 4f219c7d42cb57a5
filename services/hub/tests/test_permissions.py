"""What the server lets a service do, asked of a real server: only its own requests, facts, inbox and buckets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import KeyValueConfig, StorageType

from mycelium_hub import nats_config, nats_server
from mycelium_hub.home import Home
from mycelium_hub.roster import Roster
from mycelium_hub.services import PARTS
from mycelium_kernel import subjects, tasks
from mycelium_kernel.clock import system_clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.timers import Timers

BOUND_S = 60.0


@dataclass
class Caller:
    """A client, and what the server said against it."""

    client: Client
    refused: asyncio.Queue[str] = field(default_factory=asyncio.Queue)


Server = tuple[Home, tuple[nats_config.Place, ...]]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    home = Home(tmp_path / "home")
    home.prepare()
    servers = await nats_server.start(home, tuple(part.user for part in PARTS), Roster(home))
    yield home, servers.places
    await servers.stop()


async def _connect(server: Server, user: str) -> Caller:
    home, (place,) = server
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def on_error(error: Exception) -> None:
        refused.put_nowait(str(error))

    client = await nats.connect(
        f"nats://127.0.0.1:{place.port}",
        user=user,
        password=nats_config.passwords(home, (user,))[user],
        inbox_prefix=f"_INBOX_{user}".encode(),
        error_cb=on_error,
    )
    return Caller(client, refused)


@pytest.fixture
async def rooms(server: Server) -> AsyncIterator[Caller]:
    caller = await _connect(server, "rooms")
    yield caller
    await caller.client.close()


@pytest.fixture
async def gateway(server: Server) -> AsyncIterator[Caller]:
    caller = await _connect(server, "gateway")
    yield caller
    await caller.client.close()


@pytest.mark.parametrize("user", ["rooms", "gateway"])
async def test_the_kernel_finds_the_server_fit(server: Server, user: str) -> None:
    """The kernel reads back that facts are synced, and makes the stream of facts."""
    connection = await Connection.open(nats_server.settings(*server, user))
    await connection.prepare()
    await connection.close()


async def test_a_request_in_ones_own_name_is_answered(rooms: Caller, gateway: Caller) -> None:
    """The gateway asks, rooms hears it and answers on the gateway's inbox."""

    async def answer(message: Msg) -> None:
        await message.respond(b"here")

    await rooms.client.subscribe("svc.rooms.get_room.*", queue="q", cb=answer)
    async with asyncio.timeout(BOUND_S):
        while True:  # the server may hear of the subscription after the request: the client's flush overtakes it
            with contextlib.suppress(nats.errors.NoRespondersError):
                answered = await gateway.client.request("svc.rooms.get_room.gateway", b"", timeout=BOUND_S)
                break
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


async def _refusal(caller: Caller) -> str:
    return (await asyncio.wait_for(caller.refused.get(), BOUND_S)).lower()


@pytest.mark.parametrize("verb", ["DELETE", "PURGE", "UPDATE", "RESTORE"])
@pytest.mark.parametrize("user", ["rooms", "gateway"])
async def test_no_service_changes_or_deletes_the_log(server: Server, user: str, verb: str) -> None:
    """The stream of facts is appended to and read, whatever a service's code does."""
    caller = await _connect(server, user)
    await caller.client.publish(f"$JS.API.STREAM.{verb}.FACTS", b"")
    assert "permissions violation for publish" in await _refusal(caller)
    await caller.client.close()


async def test_only_the_service_that_erases_rooms_deletes_a_fact(
    server: Server, rooms: Caller, gateway: Caller
) -> None:
    """Rooms overwrites one; the gateway, which can read it, can't."""
    connection = await Connection.open(nats_server.settings(*server, "rooms"))
    await connection.prepare()
    stored = await rooms.client.jetstream().publish(subjects.posts("room"), b"text")
    await gateway.client.publish("$JS.API.STREAM.MSG.DELETE.FACTS", b'{"seq": 1}')
    assert "permissions violation for publish" in await _refusal(gateway)
    assert (await gateway.client.jetstream().get_msg("FACTS", stored.seq)).data == b"text"
    assert await rooms.client.jetstream().delete_msg("FACTS", stored.seq)
    await connection.close()


async def test_the_doctor_looks_and_touches_nothing(server: Server) -> None:
    """It reads the state of the log; it appends, deletes and asks nothing."""
    connection = await Connection.open(nats_server.settings(*server, "rooms"))
    await connection.prepare()
    doctor = await _connect(server, nats_config.DOCTOR)
    assert (await doctor.client.jetstream().stream_info("FACTS")).state.messages == 0
    for subject in (
        "$JS.API.STREAM.MSG.DELETE.FACTS",
        "$JS.API.STREAM.NAMES",
        subjects.posts("room"),
        "svc.rooms.x.doctor",
    ):
        await doctor.client.publish(subject, b"")
        assert "permissions violation for publish" in await _refusal(doctor)
    await doctor.client.close()
    await connection.close()


async def test_a_service_arms_its_timers_and_hears_them(server: Server) -> None:
    """Under the permissions of rooms: the stream is made, a timer is set, fires, and another is cancelled."""
    connection = await Connection.open(nats_server.settings(*server, "rooms"))
    fired: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    timers = Timers(connection, "rooms")

    async def on_due(room: str, data: bytes) -> None:
        fired.put_nowait((room, data))

    await timers.prepare()
    await timers.arm("room", "late", system_clock() + timedelta(hours=1), b"late")
    await timers.cancel("room", "late")
    await timers.arm("room", "soon", system_clock(), b"soon")
    following = asyncio.create_task(timers.follow(on_due, None, lambda _fault, _for_s: None))
    assert await asyncio.wait_for(fired.get(), BOUND_S) == ("room", b"soon")
    await tasks.end([following])
    await connection.close()


@pytest.mark.parametrize("name", ["gateway_waits", "gateway_presence", "gateway_sessions"])
async def test_the_buckets_owner_writes_and_others_watch(rooms: Caller, gateway: Caller, name: str) -> None:
    """The gateway's open waits and what it heard of presence are seen by rooms, which can't change them."""
    bucket = await gateway.client.jetstream().create_key_value(KeyValueConfig(bucket=name, storage=StorageType.MEMORY))
    await bucket.put("a.b", b"1")
    seen = await rooms.client.jetstream().key_value(name)
    assert (await seen.get("a.b")).value == b"1"
    watcher = await seen.watchall()
    entry = await watcher.updates(timeout=BOUND_S)
    assert entry is not None
    assert entry.key == "a.b"
    await watcher.stop()
    await rooms.client.publish(f"$KV.{name}.a.b", b"2")
    assert "publish" in await _refusal(rooms)


async def test_a_stranger_is_not_let_in(server: Server) -> None:
    """Without the password that lies in the home, nobody connects."""
    client, (place,) = Client(), server[1]
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
        await client.connect(f"nats://127.0.0.1:{place.port}", user="rooms", password="guess", allow_reconnect=False)
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
