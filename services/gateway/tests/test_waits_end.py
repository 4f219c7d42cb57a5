"""How long waits end other than by a mention, and what they outlive, against the rooms service on a real log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mycelium_gateway import waits
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import SOON_S, Door
from services.gateway.tests.waiting import (
    AVERY,
    DEMO,
    answer,
    known,
    make_room,
    post,
    wait,
    waiting,
)


@pytest.fixture(autouse=True)
async def room(hub: Door) -> None:
    await make_room(hub)


@pytest.mark.parametrize("path", ["await", "respond", "ack"])
async def test_an_unregistered_handle_is_told_how_to_register(hub: Door, path: str) -> None:
    """Posting is open to anybody, taking part is not."""
    ack = "0199f2a1-5b7c-7a10-8f42-3d1e9c04b7aa"
    bodies: dict[str, dict[str, Any]] = {
        "await": {"timeout_s": 0},
        "respond": {"content": "hi"},
        "ack": {"ack": ack, "outcome": "received"},
    }
    response = await hub.http.post(f"{DEMO}/{path}", json={"handle": "ci", **bodies[path]})
    assert (response.status_code, response.json()["slug"]) == (403, "handle.unregistered")
    assert response.json()["next"]


async def test_a_wait_ends_with_its_room(hub: Door) -> None:
    """The caller is told what happened."""
    async with waiting(hub.http) as task:
        await hub.http.delete(DEMO, headers=AVERY)
        body = await answer(task)
    assert (body["status"], body["slug"]) == (404, "room.not_found")
    assert body["detail"] == "room 'demo' was deleted while you waited, or is no longer for you"


async def test_a_paused_member_gets_nothing_until_it_is_resumed(hub: Door) -> None:
    """Then its open wait is woken."""
    path = f"{DEMO}/members/bob"
    paused = (await hub.http.patch(path, json={"paused": True}, headers=AVERY)).json()
    message = await post(hub.http, "@bob hi")
    assert (paused["paused"], message["mentions"][0]["state"]) == (True, "paused")
    async with waiting(hub.http) as task:
        resumed = (await hub.http.patch(path, json={"paused": False}, headers=AVERY)).json()
        got = await answer(task)

    assert (resumed["paused"], resumed["unread"]) == (False, 1)
    assert got["message"]["id"] == message["id"]


async def test_a_wait_ends_with_its_membership(hub: Door) -> None:
    """A removed member is nobody there."""
    async with waiting(hub.http) as task:
        await hub.http.delete(f"{DEMO}/members/bob", headers=AVERY)
        body = await answer(task)
    assert (body["status"], body["slug"]) == (403, "handle.unregistered")


async def test_a_wait_survives_a_restart_of_nats(nats_server: testing.NatsServer, hub: Door) -> None:
    """It stays open, is known as open again, and is woken by what comes then."""
    async with waiting(hub.http) as task:
        nats_server.kill()
        await nats_server.start()
        await known(hub.http)
        message = await post(hub.http, "@bob hi")
        got = await answer(task)

    assert got["message"]["id"] == message["id"]
    assert message["mentions"][0]["state"] == "woken"


async def test_a_wait_survives_a_restart_of_the_rooms_service(nats_server: testing.NatsServer, tmp_path: Path) -> None:
    """It asks again for as long as it lasts."""
    folder = tmp_path / "again"
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), folder)
    async with opened(nats_server, GatewaySettings(port=0)) as door, waiting(door.http) as task:
        message = await post(door.http, "@eve hi")
        await rooms.stop()
        rooms = await run.start(rooms_service(), nats_server.settings("rooms"), folder)
        message = await post(door.http, "@bob hi")
        got = await answer(task)
    await rooms.stop()

    assert got["message"]["id"] == message["id"]


async def test_a_hub_that_stops_sends_its_waits_to_the_next(nats_server: testing.NatsServer, hub: Door) -> None:
    """503 at once; nothing was received."""
    async with opened(nats_server, GatewaySettings(port=0)) as door, waiting(door.http) as task:
        stopping = asyncio.ensure_future(door.stop())
        async with asyncio.timeout(SOON_S):
            body = await answer(task)
            await stopping
    assert (body["status"], body["detail"]) == (503, "the hub is stopping")


async def test_an_answer_larger_than_the_sockets_buffers_arrives_whole(hub: Door) -> None:
    """Thirty messages of earlier talk with the mention."""
    for number in range(5):
        await post(hub.http, f"{number}" + "é" * 25_000)
    await post(hub.http, "@bob " + "😀" * 60_000)
    got = await wait(hub.http)

    assert got is not None
    assert len(got["message"]["content"]) == 60_005
    assert len(json.dumps(got["earlier"], ensure_ascii=False).encode()) > 200_000


@pytest.fixture
def last_s(monkeypatch: pytest.MonkeyPatch) -> float:
    """How long before its end a wait promises nothing; short, so that many can end in a test."""
    monkeypatch.setattr(waits, "LAST_S", 0.1)
    return 0.1


@pytest.mark.parametrize("longer_s", [-0.05, 0.01])
async def test_a_mention_after_a_wait_has_ended_is_not_told_woken(hub: Door, last_s: float, longer_s: float) -> None:
    """Who has its 204 in hand waits no more, whether or not it ever promised anything."""
    told = []
    for number in range(10):
        assert await wait(hub.http, timeout_s=last_s + longer_s) is None
        message = await post(hub.http, f"@bob {number}")
        told.append(message["mentions"][0]["state"])
        await wait(hub.http)

    assert set(told) == {"queued"}


async def test_a_mention_that_comes_as_the_time_ends_is_woken_only_if_it_is_answered(hub: Door, last_s: float) -> None:
    """A wait promises nothing in its last moments, and looks once more at its end."""
    lost = []
    for number in range(15):
        ends = last_s + 0.03 + number * 0.001
        waited, message = await asyncio.gather(wait(hub.http, timeout_s=ends), _post_until_over(hub, ends))
        if waited is None:
            lost += [mention["state"] for mention in message["mentions"] if mention["state"] == "woken"]
            await wait(hub.http)

    assert lost == []


async def test_a_mention_in_the_last_moments_of_a_wait_is_told_queued_and_given_to_it(
    hub: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more is claimed than was seen; who waits gets it all the same."""
    monkeypatch.setattr(waits, "LAST_S", 30.0)
    async with waiting(hub.http, timeout_s=20) as task:
        message = await post(hub.http, "@bob now")
        got = await answer(task)

    assert message["mentions"][0]["state"] == "queued"
    assert got["message"]["id"] == message["id"]


async def _post_until_over(hub: Door, ends: float) -> dict[str, Any]:
    """A mention at about the end of a wait, which other calls fill the time to."""
    loop = asyncio.get_running_loop()
    over = loop.time() + ends
    while loop.time() < over:
        await hub.http.get("/healthz")
    return await post(hub.http, "@bob now")
