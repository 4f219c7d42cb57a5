"""More than can be done: what is refused says when to come back, nothing acknowledged is lost, all recovers alone."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from nats.js.api import DiscardPolicy

from mycelium_gateway import load
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import subjects, testing
from mycelium_kernel.connections import Connection
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door, metric, until
from services.gateway.tests.watching import watching

AVERY = {"Mycelium-Handle": "avery"}
MESSAGES = "/api/rooms/demo/messages"
STREAMS = 500


@pytest.fixture(autouse=True)
async def room(hub: Door) -> None:
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)


async def post(http: httpx2.AsyncClient, text: str, handle: str = "avery") -> httpx2.Response:
    return await http.post(MESSAGES, json={"content": text}, headers={"Mycelium-Handle": handle})


def refused(response: httpx2.Response) -> tuple[int, str, bool]:
    return response.status_code, response.json()["slug"], int(response.headers["retry-after"]) > 0


async def test_one_request_too_many_is_told_when_to_come_back(nats_server: testing.NatsServer, hub: Door) -> None:
    """Nothing acknowledged is lost, and probes are answered meanwhile."""
    settings = GatewaySettings(port=0, requests_at_once=8, requests_of_one=8)
    async with opened(nats_server, settings) as door:
        answers = await asyncio.gather(
            *(post(door.http, f"{number}") for number in range(100)),
            door.http.get("/healthz"),
            door.http.get("/health"),
        )
        kinds = Counter(answer.status_code for answer in answers[:100])
        acknowledged = {answer.json()["content"] for answer in answers[:100] if answer.status_code == 201}
        stored = (await door.http.get(MESSAGES, params={"limit": 500})).json()["items"]
        assert (await post(door.http, "after")).status_code == 201

    assert set(kinds) == {201, 429}
    assert kinds[201] >= 8
    assert {refused(answer) for answer in answers[:100] if answer.status_code == 429} == {(429, "rate.limited", True)}
    assert {message["content"] for message in stored} == acknowledged
    assert [answer.status_code for answer in answers[100:]] == [200, 200]


async def test_one_caller_can_not_keep_the_others_out(nats_server: testing.NatsServer, hub: Door) -> None:
    """Its own bound is reached first; waits and streams are bounded by themselves."""
    settings = GatewaySettings(port=0, requests_of_one=1, lasting_of_one=2, lasting_at_once=3)
    async with opened(nats_server, settings) as door:
        http = door.http
        assert (await post(http, "hi")).status_code == 201
        async with watching(door.port, "demo", headers=AVERY), watching(door.port, "demo", headers=AVERY):
            third = await http.get("/api/rooms/demo/stream", headers=AVERY)
            wait = await http.post("/api/rooms/demo/await", json={"timeout_s": 0}, headers=AVERY)
            assert [refused(third), refused(wait)] == [(429, "rate.limited", True)] * 2
            assert third.json()["detail"] == "2 streams and waits of this caller are open"
            async with watching(door.port, "demo", headers={"Mycelium-Handle": "bo"}):
                other = await http.get("/api/rooms/demo/stream", headers={"Mycelium-Handle": "eve"})
                assert other.json()["detail"] == "3 streams and waits are open at this hub"
                assert (await post(http, "hi")).status_code == 201

        async def is_free() -> bool:
            async with http.stream("GET", "/api/rooms/demo/stream", headers=AVERY) as response:
                return response.status_code == 200

        await until(is_free)


async def test_a_store_that_is_full_says_so_and_recovers(nats_server: testing.NatsServer, hub: Door) -> None:
    """507; reading goes on; what was acknowledged is there, and writing goes on when there is room again."""
    connection = await Connection.open(nats_server.settings("test"))
    try:
        config = (await connection.jetstream.stream_info(subjects.STREAM)).config
        config.discard = DiscardPolicy.NEW
        config.max_bytes = 40_000
        await connection.jetstream.update_stream(config)
        acknowledged: list[str] = []
        while (answer := await post(hub.http, f"{len(acknowledged)}" + "x" * 5_000)).status_code == 201:
            acknowledged.append(answer.json()["id"])
        assert refused(answer) == (507, "store.full", True)
        stored = (await hub.http.get(MESSAGES)).json()["items"]
        assert [message["id"] for message in reversed(stored)] == acknowledged
        config.max_bytes = -1
        await connection.jetstream.update_stream(config)
    finally:
        await connection.close()

    async def is_taken() -> bool:
        return (await post(hub.http, "again")).status_code == 201

    await until(is_taken)


async def test_without_nats_it_says_so_and_recovers_alone(nats_server: testing.NatsServer, hub: Door) -> None:
    """503 for requests, a reason in health, and nothing to be done by anybody when NATS is back."""
    assert (await hub.http.get("/health")).json()["status"] == "ok"
    nats_server.kill()

    async def is_red() -> bool:
        body: dict[str, Any] = (await hub.http.get("/health")).json()
        assert not body["warnings"] or body["status"] == "degraded"
        warnings: list[str] = body["warnings"]
        return "the gateway has no connection to NATS" in warnings

    await until(is_red)
    assert refused(await post(hub.http, "lost")) == (503, "unavailable", True)
    said = await hub.http.post("/api/rooms/demo/presence", json={"state": "idle"}, headers=AVERY)
    assert refused(said) == (503, "unavailable", True)
    await nats_server.start()

    async def is_well() -> bool:
        body: dict[str, Any] = (await hub.http.get("/health")).json()
        return bool(body["status"] == "ok" and body["warnings"] == [])

    await until(is_well)
    assert (await post(hub.http, "back")).status_code == 201
    async with watching(hub.port, "demo") as stream:
        await post(hub.http, "live")
        event = await stream.next()
    assert event is not None
    assert event.data["content"] == "live"


def test_streams_leave_half_of_the_files_to_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that can open no more can't reach its own log."""
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 4096))
    assert (load.lasting_most(4_000), load.lasting_most(100)) == (512, 100)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert load.lasting_most(4_000) == 4_000


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
async def test_500_streams_opened_and_killed_leave_nothing_open(hub: Door) -> None:
    """Half of them by a reset in the middle of a message; the gateway runs in this process, so both ends count."""

    def handles() -> int:
        return len(os.listdir("/proc/self/fd"))

    head = b"GET /api/rooms/demo/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        writer.write(head)
        await reader.readuntil(b": connected\n\n")
        return reader, writer

    await metric(hub.http, "mycelium_live_watchers", 0.0)
    gc.collect()  # what tests before this one have left closes now, not in between
    before = handles()
    streams = [await connect() for _ in range(STREAMS)]
    assert handles() >= before + 2 * STREAMS
    await metric(hub.http, "mycelium_live_watchers", float(STREAMS))
    await post(hub.http, "x" * 200_000)
    for number, (_reader, writer) in enumerate(streams):
        if number % 2:
            writer.transport.abort()
        else:
            writer.close()
    streams.clear()

    async def is_back() -> bool:
        return handles() <= before

    await until(is_back)
    await metric(hub.http, "mycelium_live_watchers", 0.0)
