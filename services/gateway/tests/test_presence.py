"""Presence over HTTP and live: said, seen, changed, gone."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import testing
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import SOON_S, Door, until
from services.gateway.tests.waiting import BOB, DEMO, waiting
from services.gateway.tests.watching import Watching, watching

AVERY = {"Mycelium-Handle": "avery"}


@pytest.fixture
async def http(hub: Door) -> httpx2.AsyncClient:
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    for handle in ("bob", "eve"):
        await hub.http.post(f"{DEMO}/members", json={"handle": handle}, headers=AVERY)
    return hub.http


async def say(http: httpx2.AsyncClient, state: str, handle: str = "bob", **fields: Any) -> None:
    response = await http.post(f"{DEMO}/presence", json={"handle": handle, "state": state, **fields})
    assert response.status_code == 204, response.text


async def told(stream: Watching, count: int = 1) -> list[tuple[str, str, str]]:
    """The next changes of presence."""
    found = [await change(stream) for _ in range(count)]
    return [(data["handle"], data["presence"], data["note"]) for data in found]


async def change(stream: Watching) -> dict[str, Any]:
    """The next change of presence; other events are passed over."""
    while True:
        event = await stream.next()
        assert event is not None
        if event.name == "presence":
            assert (event.id, event.data["room"]) == ("", "demo")
            return dict(event.data)


async def member(http: httpx2.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await http.get(f"{DEMO}/members/bob")).json()
    return found


async def test_what_a_member_says_is_shown_and_told_when_it_changes(hub: Door, http: httpx2.AsyncClient) -> None:
    """A repeat tells nothing; the note is part of it; nothing of it is a fact."""
    async with watching(hub.port, "demo") as stream:
        place = (await stream.block()).decode()
        await say(http, "working", note="reviewing #48")
        await say(http, "working", note="reviewing #48")
        await say(http, "working", note="reviewing #49", ttl_s=600)
        await say(http, "blocked", "eve")
        assert await told(stream, 3) == [
            ("bob", "working", "reviewing #48"),
            ("bob", "working", "reviewing #49"),
            ("eve", "blocked", ""),
        ]

        async def is_shown() -> bool:
            shown = await member(http)
            return (shown["presence"], shown["presence_note"]) == ("working", "reviewing #49")

        await until(is_shown)
    assert (await member(http))["last_seen"] is not None
    async with watching(hub.port, "demo") as stream:
        assert (await stream.block()).decode() == place


async def test_an_agent_that_waits_takes_and_answers_is_seen_to(hub: Door, http: httpx2.AsyncClient) -> None:
    """Idle, then working, then offline, though it said nothing of itself."""
    async with watching(hub.port, "demo") as stream:
        async with waiting(http) as task:
            assert await told(stream) == [("bob", "idle", "")]
            await http.post(f"{DEMO}/messages", json={"content": "@bob hi"}, headers=AVERY)
            await task
        assert await told(stream) == [("bob", "working", "")]
        await http.post(f"{DEMO}/respond", json={"content": "done"}, headers=BOB)
        assert await told(stream) == [("bob", "offline", "")]


async def test_a_watcher_that_comes_later_hears_of_the_end_of_work_that_began_before(
    hub: Door, http: httpx2.AsyncClient
) -> None:
    """Nobody watched when the delivery was taken."""
    await http.post(f"{DEMO}/messages", json={"content": "@bob hi"}, headers=AVERY)
    await http.post(f"{DEMO}/await", json={"timeout_s": 0}, headers=BOB)
    async with watching(hub.port, "demo") as stream:
        await http.post(f"{DEMO}/respond", json={"content": "done"}, headers=BOB)
        assert await told(stream) == [("bob", "offline", "")]


async def test_a_killed_agent_is_offline_at_once(hub: Door, http: httpx2.AsyncClient) -> None:
    """Its connection is gone, and with it the wait: nobody waits until that would have ended by itself."""
    async with watching(hub.port, "demo") as stream:
        async with waiting(http):
            await told(stream)
        async with asyncio.timeout(SOON_S):
            assert await told(stream) == [("bob", "offline", "")]


async def test_who_is_not_heard_of_again_is_offline_when_its_time_is_over(hub: Door, http: httpx2.AsyncClient) -> None:
    """Not before; in the stream and in the room."""
    loop = asyncio.get_running_loop()
    async with watching(hub.port, "demo") as stream:
        began = loop.time()
        await say(http, "working", ttl_s=5)
        await told(stream)
        async with asyncio.timeout(60):
            while event := await stream.block():
                if b"presence" in event:
                    break
        assert b'"offline"' in event
        assert loop.time() - began > 4.9
        assert (await member(http))["presence"] == "offline"


async def test_a_loop_of_waits_does_not_flicker(hub: Door, http: httpx2.AsyncClient) -> None:
    """Between two waits nobody is told that the agent is gone."""
    async with watching(hub.port, "demo") as stream:
        for _ in range(4):
            await http.post(f"{DEMO}/await", json={"timeout_s": 0.05}, headers=BOB)
        await say(http, "blocked", "eve")
        assert await told(stream, 2) == [("bob", "idle", ""), ("eve", "blocked", "")]


async def test_another_gateways_waits_and_words_are_told_too(
    nats_server: testing.NatsServer, hub: Door, http: httpx2.AsyncClient
) -> None:
    """And its end: with a gateway that is gone, its waits are."""
    async with watching(hub.port, "demo") as stream:
        async with opened(nats_server, GatewaySettings(port=0)) as other:
            await say(other.http, "blocked", "eve")
            assert await told(stream) == [("eve", "blocked", "")]
            task = asyncio.create_task(other.http.post(f"{DEMO}/await", json={"timeout_s": 30}, headers=BOB))
            assert await told(stream) == [("bob", "idle", "")]
            await other.stop()
            await asyncio.gather(task, return_exceptions=True)
        gone = await change(stream)
        assert (gone["handle"], gone["presence"]) == ("bob", "offline")
        assert gone["last_seen"], "it was seen while its wait was open"


async def test_what_was_said_outlives_a_restart_of_nats(
    nats_server: testing.NatsServer, hub: Door, http: httpx2.AsyncClient
) -> None:
    """The buckets are in memory; who told puts it there again."""
    async with watching(hub.port, "demo") as stream:
        await say(http, "working", note="long", ttl_s=600)
        await told(stream)
        nats_server.kill()
        await nats_server.start()

        async def is_shown() -> bool:
            return bool((await member(http))["presence_note"] == "long")

        await until(is_shown)
        await say(http, "blocked", "eve")
        assert await told(stream) == [("eve", "blocked", "")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"state": "away"}, (422, "presence.invalid")),
        ({"state": "idle", "ttl_s": 4}, (422, "presence.invalid")),
        ({"state": "idle", "ttl_s": 601}, (422, "presence.invalid")),
        ({"state": "idle", "note": "x" * 501}, (422, "presence.invalid")),
        ({"state": "idle", "note": "a\nb"}, (422, "presence.invalid")),
        ({"state": "idle", "handle": "ci"}, (403, "handle.unregistered")),
        ({"state": "idle", "handle": None}, (422, "handle.missing")),
    ],
)
async def test_presence_that_can_not_be_is_refused(
    http: httpx2.AsyncClient, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    """Nothing is shown of it."""
    response = await http.post(f"{DEMO}/presence", json={"handle": "bob", **body})
    assert (response.status_code, response.json()["slug"]) == expected
    assert (await member(http))["presence"] == "offline"


async def test_a_person_of_the_hub_and_the_maker_of_a_private_room_may_say_what_they_do(
    http: httpx2.AsyncClient,
) -> None:
    """They take part without a record of their own in the room."""
    await http.post("/api/users", json={"handle": "una"})
    await say(http, "idle", "una")
    await http.post("/api/rooms", json={"name": "own", "private": True}, headers=AVERY)
    answer = await http.post("/api/rooms/own/presence", json={"state": "idle"}, headers=AVERY)
    assert answer.status_code == 204
