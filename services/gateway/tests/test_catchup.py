"""Catching up over HTTP: composed of rooms and memory, bounded, and nothing of a private room for a stranger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mycelium_gateway import shapes_catchup
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_memory.service import service as memory_service
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened

DEMO = "/api/rooms/demo"
AVERY = {"Mycelium-Handle": "avery"}
BOB = {"Mycelium-Handle": "bob"}


@pytest.fixture
async def http(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """A gateway, rooms and memory behind it, and the room `demo` of avery and bob."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    memory = await run.start(memory_service(), nats_server.settings("memory"), tmp_path / "tables")
    try:
        async with opened(nats_server, GatewaySettings(port=0)) as door:
            await door.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
            await door.http.post(f"{DEMO}/members", json={"handle": "bob"}, headers=AVERY)
            yield door.http
    finally:
        await memory.stop()
        await rooms.stop()


async def caught_up(http: httpx2.AsyncClient, headers: dict[str, str] = AVERY, **query: str | int) -> dict[str, Any]:
    response = await http.get(f"{DEMO}/catchup", params=query, headers=headers)
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


async def say(http: httpx2.AsyncClient, content: str, **fields: object) -> None:
    response = await http.post(f"{DEMO}/messages", json={"content": content, **fields}, headers=AVERY)
    assert response.status_code == 201


async def put(http: httpx2.AsyncClient, key: str, value: str) -> None:
    assert (await http.put(f"{DEMO}/memory/{key}", json={"value": value}, headers=AVERY)).is_success


async def test_what_changed_since_the_synthesis(http: httpx2.AsyncClient) -> None:
    """What was said and written after it; events that are open, whenever they were posted."""
    event = {"message_type": "event", "metadata": {"kind": "concern"}}
    await say(http, "the backup was never restored", **event)
    await say(http, "in hand", message_type="event", metadata={"kind": "action", "status": "in_progress"})
    await say(http, "done", message_type="event", metadata={"kind": "action", "status": "resolved"})
    await say(http, "@bob ready?")
    before = await caught_up(http, BOB)
    await put(http, "context/synthesis", "# Where we are")
    await put(http, "decisions/db", "Postgres")
    await say(http, "and now?")
    found = await caught_up(http, BOB)

    assert (before["since_what"], before["synthesis"], before["documents"]["items"]) == ("last_days", None, [])
    assert before["messages"]["items"][0]["content"] == "@bob ready?"
    assert (found["room"], found["since_what"], found["unread"]) == ("demo", "synthesis", 1)
    assert found["since"] == found["synthesis"]["updated_at"]
    assert (found["synthesis"]["value"], found["synthesis"]["cut"]) == ("# Where we are", False)
    assert [one["content"] for one in found["messages"]["items"]] == ["and now?"]
    assert [one["content"] for one in found["events"]["items"]] == ["in hand", "the backup was never restored"]
    assert [(one["key"], one["version"], one["updated_by"]) for one in found["documents"]["items"]] == [
        ("decisions/db", 1, "avery")
    ]
    assert not any(found[part]["more"] for part in ("here", "events", "documents", "messages"))


async def test_every_part_is_bounded_and_says_so(http: httpx2.AsyncClient) -> None:
    """So many of each; of a long text the beginning, of messages the place to go on from."""
    for number in range(3):
        await say(http, f"{number}" * (shapes_catchup.TEXT_CHARACTERS + 1))
        await say(http, f"{number}", message_type="event", metadata={"kind": "action"})
        await put(http, f"notes/{number}", "x")
    found = await caught_up(http, limit=2)

    for part in ("events", "documents", "messages"):
        assert (len(found[part]["items"]), found[part]["more"]) == (2, True)
    older = await http.get(f"{DEMO}/messages", params={"before": found["messages"]["older_before"]})
    assert found["messages"]["items"][-1]["content"][0] == "2"
    assert older.json()["items"][0]["content"] == "1"
    long = [one for one in found["messages"]["items"] if one["cut"]]
    assert [len(one["content"]) for one in long] == [shapes_catchup.TEXT_CHARACTERS]


async def test_who_is_here_is_who_says_so_or_waits(http: httpx2.AsyncClient) -> None:
    """Not who is offline, and no engine."""
    await http.post(f"{DEMO}/engines", json={"handle": "greeter", "kind": "hello"}, headers=AVERY)
    assert (await caught_up(http))["here"]["items"] == []
    await http.post(f"{DEMO}/presence", json={"state": "working", "note": "the migration"}, headers=BOB)
    (here,) = (await caught_up(http))["here"]["items"]
    assert (here["handle"], here["presence"], here["presence_note"]) == ("bob", "working", "the migration")


async def test_nothing_is_unread_for_who_is_no_member(http: httpx2.AsyncClient) -> None:
    """Nobody, and somebody whom the room does not know, may read a shared room all the same."""
    assert (await caught_up(http, {}))["unread"] is None
    assert (await caught_up(http, {"Mycelium-Handle": "eve"}))["unread"] is None
    assert (await caught_up(http, BOB))["unread"] == 0


async def test_a_moment_may_be_asked_for(http: httpx2.AsyncClient) -> None:
    """For messages and documents alike; what is no time is refused."""
    await say(http, "hi")
    await put(http, "a", "x")
    ahead = await caught_up(http, since="2199-01-01T00:00:00Z")
    assert (ahead["since"], ahead["since_what"]) == ("2199-01-01T00:00:00.000Z", "asked")
    assert (ahead["messages"]["items"], ahead["documents"]["items"]) == ([], [])
    back = await caught_up(http, since="1h")
    assert (len(back["messages"]["items"]), len(back["documents"]["items"])) == (1, 1)
    refused = await http.get(f"{DEMO}/catchup", params={"since": "soon"})
    assert (refused.status_code, refused.json()["slug"]) == (422, "request.invalid")


@pytest.mark.parametrize("stranger", [{}, {"Mycelium-Handle": "eve"}], ids=["nobody", "a stranger"])
async def test_a_private_room_is_none_to_a_stranger(http: httpx2.AsyncClient, stranger: dict[str, str]) -> None:
    """The answer is that of a room that is not there."""
    await http.patch(DEMO, json={"private": True}, headers=AVERY)
    answers = [await http.get(f"/api/rooms/{room}/catchup", headers=stranger) for room in ("demo", "none")]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].text.replace("demo", "none") == answers[1].text
    assert (await caught_up(http, BOB))["unread"] == 0
