"""A private room is to a stranger one that is not there: in answers, in open streams, in open waits."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from services.gateway.tests.door import BOUND_S, Door, metric
from services.gateway.tests.watching import Watching, watching

AVERY = {"Mycelium-Handle": "avery"}
BOB = {"Mycelium-Handle": "bob"}
DEMO = "/api/rooms/demo"
STRANGERS: list[dict[str, str]] = [{}, {"Mycelium-Handle": "eve"}]


@pytest.fixture
async def http(hub: Door) -> httpx2.AsyncClient:
    """A client of a hub with a room of avery and bob, and a user of the hub."""
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    await hub.http.post(f"{DEMO}/members", json={"handle": "bob"}, headers=AVERY)
    await hub.http.post("/api/users", json={"handle": "eve"})
    return hub.http


async def change(http: httpx2.AsyncClient, **fields: Any) -> None:
    assert (await http.patch(DEMO, json=fields, headers=AVERY)).status_code == 200


async def post(http: httpx2.AsyncClient, text: str, room: str = "demo") -> dict[str, Any]:
    response = await http.post(f"/api/rooms/{room}/messages", json={"content": text}, headers=AVERY)
    found: dict[str, Any] = response.json()
    return found


def shown(response: httpx2.Response, room: str) -> tuple[int, str, dict[str, str]]:
    """An answer as its reader sees it, whatever the room is called."""
    kept = {name: value for name, value in response.headers.items() if name not in {"date", "content-length"}}
    return response.status_code, response.text.replace(room, "ROOM"), kept


@pytest.mark.parametrize("stranger", STRANGERS, ids=["nobody", "a user"])
async def test_every_request_of_a_stranger_is_answered_as_for_a_room_that_is_not_there(
    http: httpx2.AsyncClient, stranger: dict[str, str]
) -> None:
    """Same status, slug, words, headers: for each address of a room."""
    message = await post(http, "@bob secret")
    await change(http, private=True)
    short = message["id"][-8:]
    who = {"handle": "eve"} if stranger else {"handle": "ci"}
    requests: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("PATCH", "", {"title": "x"}),
        ("PATCH", "", {"folder": "x", **who}),
        ("DELETE", "", None),
        ("GET", "/messages", None),
        ("GET", f"/messages?q=secret&all=true&thread={short}", None),
        ("POST", "/messages", {"content": "hi", "sender_handle": who["handle"]}),
        ("GET", f"/messages/{short}?history=true", None),
        ("PATCH", f"/messages/{short}", {"content": "x", "sender_handle": who["handle"]}),
        ("PATCH", f"/messages/{short}", {"status": "open", "sender_handle": who["handle"]}),
        ("GET", f"/messages/{short}/receipts", None),
        ("GET", "/members", None),
        ("POST", "/members", {"handle": "new"}),
        ("GET", "/members/bob", None),
        ("PATCH", "/members/bob", {"notes": "x"}),
        ("DELETE", "/members/bob", None),
        ("POST", "/await", {"timeout_s": 5, **who}),
        ("POST", "/respond", {"content": "hi", **who}),
        ("POST", "/ack", {"ack": message["id"], "outcome": "received", **who}),
        ("POST", "/presence", {"state": "idle", **who}),
        ("GET", "/stream", None),
        ("GET", "/export", None),
    ]
    for method, path, body in requests:
        answers = [
            shown(await http.request(method, f"/api/rooms/{room}{path}", json=body, headers=stranger), room)
            for room in ("demo", "none")
        ]
        assert answers[0] == answers[1], (method, path)
        assert answers[0][0] == 404, (method, path, answers[0])
    streams = [shown(await http.get(f"/api/stream?room={room}", headers=stranger), room) for room in ("demo", "none")]
    assert streams[0] == streams[1]
    assert (await http.get("/api/rooms", headers=stranger)).json()["items"] == []
    assert (await http.get(DEMO, headers=AVERY)).json()["members_list"][0]["unread"] == 1


async def ends(stream: Watching) -> list[tuple[str, str]]:
    """The names and ids of what still comes; fails when the stream does not end."""
    seen = []
    async with asyncio.timeout(BOUND_S):
        while event := await stream.next():
            seen.append((event.name, event.id))
    return seen


@pytest.mark.parametrize("resumed", [False, True])
async def test_the_open_stream_of_a_stranger_ends_when_the_room_becomes_private(
    hub: Door, http: httpx2.AsyncClient, resumed: bool
) -> None:
    """It is told that the room is gone, not what happens there; members go on."""
    async with watching(hub.port, "demo", headers=BOB) as member, watching(hub.port, "demo", headers=BOB) as first:
        place = (await first.block()).decode().removeprefix("id: ") if resumed else ""
        for handle in ("eve", ""):
            headers = {"Mycelium-Handle": handle} if handle else {}
            async with watching(hub.port, "demo", headers=headers, last_id=place) as stranger:
                await change(http, private=True, title=f"secret of {handle}")
                await post(http, "secret")
                assert await ends(stranger) == [("room_deleted", "")]
            events = await member.some(2)
            assert [event.name for event in events] == ["room_changed", "message"]
            await change(http, private=False)
            (shared,) = await member.some(1)
            assert shared.name == "room_changed"
            place = shared.id if resumed else ""


async def test_the_open_stream_of_a_removed_member_goes_on_with_what_it_may_see(
    hub: Door, http: httpx2.AsyncClient
) -> None:
    """Of several rooms, the one that is lost is told as gone, once; nothing else is left out."""
    await http.post("/api/rooms", json={"name": "other"}, headers=AVERY)
    await change(http, private=True)
    async with watching(hub.port, "demo", "other", headers=BOB) as both, watching(hub.port, "demo", headers=BOB) as one:
        await post(http, "before")
        await http.delete(f"{DEMO}/members/bob", headers=AVERY)
        posted = [await post(http, text, room) for room, text in (("demo", "secret"), ("other", "open"))]
        seen = await both.some(3)
        assert [name for name, _id in await ends(one)] == ["message", "room_deleted"]
    late = await http.get(f"{DEMO}/stream", headers=BOB)

    assert [event.name for event in seen] == ["message", "room_deleted", "message"]
    assert (seen[1].data, seen[1].id) == ({"room": "demo"}, "")
    assert seen[2].data["seq"] == posted[1]["seq"]
    assert (late.status_code, late.json()["slug"]) == (404, "room.not_found")


async def test_a_removed_member_of_a_shared_room_goes_on_watching(hub: Door, http: httpx2.AsyncClient) -> None:
    """Anybody may see it."""
    async with watching(hub.port, "demo", headers=BOB) as stream:
        await http.delete(f"{DEMO}/members/bob", headers=AVERY)
        await post(http, "after")
        assert [event.name for event in await stream.some(2)] == ["member_left", "message"]


@pytest.mark.parametrize("by", ["removal", "privacy", "deletion"])
async def test_an_open_wait_of_a_stranger_ends_alike_whatever_made_it_one(http: httpx2.AsyncClient, by: str) -> None:
    """The room was deleted, or is not for the caller any more: it can't tell."""
    handle = "eve" if by == "privacy" else "bob"
    if by == "removal":
        await change(http, private=True)
    body = {"handle": handle, "timeout_s": 30}
    task = asyncio.create_task(http.post(f"{DEMO}/await", json=body))
    await metric(http, "mycelium_open_waits", 1.0)
    if by == "removal":
        await http.delete(f"{DEMO}/members/bob", headers=AVERY)
    elif by == "privacy":
        await change(http, private=True)
    else:
        await http.delete(DEMO, headers=AVERY)
    async with asyncio.timeout(BOUND_S):
        ended = (await task).json()

    assert (ended["status"], ended["slug"]) == (404, "room.not_found")
    assert ended["detail"] == "room 'demo' was deleted while you waited, or is no longer for you"
    assert ended["next"] == "mycelium room create demo"
