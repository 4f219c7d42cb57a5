"""A room out of a hub and into one, over HTTP: whole or not at all, hidden until complete, for whom it is."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_kernel.run import Runtime
from mycelium_memory.service import service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door, until

AVERY = {"Mycelium-Handle": "avery"}
BOB = {"Mycelium-Handle": "bob", "Mycelium-Session": "s1"}
DEMO = "/api/rooms/demo"
IMPORT = "/api/rooms/import"
# Any header of a proxy: the request is not the operator's then.
ABROAD = {"X-Forwarded-For": "203.0.113.7"}


@pytest.fixture
async def memory(nats_server: testing.NatsServer) -> AsyncIterator[Runtime]:
    runtime = await run.start(service(), nats_server.settings("memory"), None)
    yield runtime
    await runtime.stop()


@pytest.fixture
async def http(hub: Door, memory: Runtime) -> httpx2.AsyncClient:
    """A hub with a private room: an agent with unread mentions, an amended text, a resolved event, some memory."""
    http = hub.http
    await http.post("/api/rooms", json={"name": "demo", "title": "Demo", "private": True}, headers=AVERY)
    await http.post(f"{DEMO}/members", json={"handle": "bob", "notes": "n"}, headers=AVERY)
    first = await post(http, "@bob one")
    await post(http, "@bob two", thread=first["id"])
    await http.patch(f"{DEMO}/messages/{first['id']}", json={"content": "@bob 1"}, headers=AVERY)
    event = await post(http, "a risk", message_type="event", metadata={"kind": "concern"})
    await http.patch(f"{DEMO}/messages/{event['id']}", json={"status": "resolved"}, headers=AVERY)
    for value in ("one", "two", {"n": [3]}):
        await http.put(f"{DEMO}/memory/work%2Fapi", json={"value": value, "meta": {"a": 1}}, headers=AVERY)
    await http.put(f"{DEMO}/memory/gone", json={"value": "x", "tags": ["t"]}, headers=AVERY)
    await http.delete(f"{DEMO}/memory/gone", headers=AVERY)
    return http


async def post(http: httpx2.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    response = await http.post(f"{DEMO}/messages", json={"content": text, **fields}, headers=AVERY)
    found: dict[str, Any] = response.json()
    return found


async def export(http: httpx2.AsyncClient, accept: str = "application/gzip") -> bytes:
    response = await http.get(f"{DEMO}/export", headers={**AVERY, "Accept": accept})
    assert response.status_code == 200
    return response.content


async def bring(
    http: httpx2.AsyncClient, content: Any, name: str = "copy", headers: dict[str, str] | None = None
) -> httpx2.Response:
    return await http.post(
        IMPORT, params={"name": name}, content=content, headers=AVERY if headers is None else headers
    )


async def history(http: httpx2.AsyncClient, room: str) -> list[dict[str, Any]]:
    page = await http.get(f"/api/rooms/{room}/messages", params={"all": "true"}, headers=AVERY)
    return [
        {name: value for name, value in message.items() if name not in {"room", "seq"}}
        for message in page.json()["items"]
    ]


async def names(http: httpx2.AsyncClient) -> list[str]:
    return [room["name"] for room in (await http.get("/api/rooms", headers=AVERY)).json()["items"]]


async def test_memory_comes_with_its_room(http: httpx2.AsyncClient) -> None:
    """Every version with its author, time and thread, what was removed as such; each says that it was brought."""
    assert (await bring(http, await export(http))).status_code == 201
    copy = "/api/rooms/copy/memory"
    for key in ("work%2Fapi", "gone"):
        query = {"view": "versions"}
        before, after = [
            (await http.get(f"{base}/{key}", params=query, headers=AVERY)).json() for base in (f"{DEMO}/memory", copy)
        ]
        assert after == {**before, "items": [{**row, "origin": "import"} for row in before["items"]]}
    here, there = [(await http.get(f"{base}/work%2Fapi", headers=AVERY)).json() for base in (f"{DEMO}/memory", copy)]
    assert here == there
    was = (await http.get(f"{copy}/work%2Fapi", params={"version": 1}, headers=AVERY)).json()
    assert (was["value"], was["updated_by"]) == ("one", "avery")
    assert (await http.get(f"{copy}/gone", headers=AVERY)).json()["slug"] == "memory.not_found"


@pytest.mark.parametrize("accept", ["application/gzip", "application/x-ndjson"])
async def test_a_room_comes_out_and_in_as_it_was(http: httpx2.AsyncClient, accept: str) -> None:
    """Messages with ids, times, authors, texts, statuses; members; what is unread."""
    content = await export(http, accept)
    brought = await bring(http, content)
    room = brought.json()

    assert (brought.status_code, brought.headers["location"]) == (201, "/api/rooms/copy"), brought.text
    assert (room["name"], room["title"], room["private"], room["created_by"]) == ("copy", "Demo", True, "avery")
    assert int(brought.headers["mycelium-sequence"]) > 0
    assert await history(http, "copy") == await history(http, "demo")
    member = (await http.get("/api/rooms/copy/members/bob", headers=AVERY)).json()
    assert (member["notes"], member["unread"]) == ("n", 2)
    got = await http.post("/api/rooms/copy/await", json={"timeout_s": 0}, headers=BOB)
    assert got.json()["message"]["content"] == "@bob 1"
    assert (await http.get("/api/rooms/copy", headers={"Mycelium-Handle": "eve"})).status_code == 404


async def test_a_bundle_says_what_it_is(http: httpx2.AsyncClient) -> None:
    """Lines that a person can look into."""
    packed = await export(http)
    head, *facts, end = map(json.loads, gzip.decompress(packed).splitlines())

    assert (head["format"], head["version"], head["room"]["name"], head["members"]) == (
        "mycelium-room",
        1,
        "demo",
        ["bob"],
    )
    assert end["end"] == len(facts)
    assert facts[0]["entity"] == "member.bob"
    assert {"sequence", "type", "entity", "at", "data"} == set(facts[0])


async def test_a_bundle_that_is_not_whole_leaves_nothing(http: httpx2.AsyncClient) -> None:
    """No room, no taken name; a whole one may follow."""
    content = await export(http, "application/x-ndjson")
    for broken in (
        content[: len(content) // 2],
        content[:-30],
        content.replace(b'"at":"2', b'"at":"1', 1),
        b"",
        b"{}\n",
    ):
        response = await bring(http, broken)
        assert (response.status_code, response.json()["slug"]) == (422, "room.import_refused"), response.text
        assert await names(http) == ["demo"]
    assert (await bring(http, content)).status_code == 201
    assert (await bring(http, content)).json()["slug"] == "room.name_taken"


async def test_a_client_that_vanishes_leaves_nothing(hub: Door, http: httpx2.AsyncClient) -> None:
    """And may come back, also under its key."""
    content = await export(http, "application/x-ndjson")
    head = f"POST {IMPORT}?name=copy HTTP/1.1\r\nHost: localhost\r\nMycelium-Handle: avery\r\nIdempotency-Key: k\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content[:-100])

    async def is_taken() -> bool:
        made = await http.post("/api/rooms", json={"name": "copy"}, headers=AVERY)
        if made.status_code == 201:
            await http.delete("/api/rooms/copy", headers=AVERY)
        return made.status_code == 409

    async def is_free() -> bool:
        return not await is_taken()

    await until(is_taken)
    writer.transport.abort()
    await until(is_free)
    again = await bring(http, content, headers={**AVERY, "Idempotency-Key": "k"})
    assert again.status_code == 201, again.text


async def test_a_repeat_under_one_key_makes_one_room(http: httpx2.AsyncClient) -> None:
    """The first answer again."""
    content = await export(http)
    headers = {**AVERY, "Idempotency-Key": "k"}
    first, again = [await bring(http, content, headers=headers) for _ in range(2)]

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert (await bring(http, content, "other", headers)).json()["slug"] == "key.reused"
    assert await names(http) == ["copy", "demo"]


async def test_a_room_is_brought_by_its_people_and_by_the_hubs_operator(http: httpx2.AsyncClient) -> None:
    """A request over loopback through no proxy is the operator's."""
    content = await export(http)
    strangers = [{**ABROAD, "Mycelium-Handle": "eve"}, {"Forwarded": "for=_x", "Mycelium-Handle": "eve"}]
    refused = [await bring(http, content, headers=headers) for headers in strangers]
    assert [(one.status_code, one.json()["slug"]) for one in refused] == [(422, "room.import_refused")] * 2
    assert (await bring(http, content, headers=ABROAD)).json()["slug"] == "handle.missing"
    for name, headers in (("a", {**ABROAD, **BOB}), ("b", {**ABROAD, **AVERY}), ("c", {}), ("d", strangers[0])):
        response = await bring(http, content, name, {} if name == "c" else headers)
        assert response.status_code == (422 if name == "d" else 201), (name, response.text)
    assert (await bring(http, content, "e", {"Mycelium-Handle": "eve"})).json()["members"] == 1
    assert await names(http) == ["a", "b", "c", "demo", "e"]


async def test_a_bundle_larger_than_the_limit_is_refused(
    nats_server: testing.NatsServer, hub: Door, http: httpx2.AsyncClient
) -> None:
    """By its length at once, or while it unpacks; the limit for other bodies does not count."""
    for number in range(8):
        await post(http, f"{number}" + "x" * 200_000)
    packed, plain = await export(http), await export(http, "application/x-ndjson")
    assert len(plain) > 1024 * 1024
    async with opened(nats_server, GatewaySettings(port=0, bundle_bytes=len(plain) - 1)) as door:
        for content in (packed, plain):
            response = await bring(door.http, content)
            assert (response.status_code, response.json()["slug"]) == (413, "content.too_large")
    assert await names(http) == ["demo"]
    assert (await bring(http, plain)).status_code == 201


async def test_a_room_of_many_pages_is_moved_whole_while_others_post(http: httpx2.AsyncClient) -> None:
    """What is posted during the export is not in it, what was before is; the body comes without a length."""
    for start in range(0, 700, 70):
        await asyncio.gather(*(post(http, f"{number} " + "x" * 2_000) for number in range(start, start + 70)))
    before = await http.get(f"{DEMO}/messages", params={"limit": 1}, headers=AVERY)
    latest = before.json()["items"][0]["content"]

    async def moved() -> AsyncIterator[bytes]:
        async with http.stream("GET", f"{DEMO}/export", headers={**AVERY, "Accept": "application/gzip"}) as response:
            async for chunk in response.aiter_raw():
                yield chunk
                await post(http, "meanwhile")

    brought = await bring(http, moved())
    assert brought.status_code == 201, brought.text
    page = (await http.get("/api/rooms/copy/messages", params={"limit": 1, "all": "true"}, headers=AVERY)).json()
    count = len(page["items"])
    while page["next"]:
        query = {"limit": 500, "before": page["older_before"], "all": "true"}
        page = (await http.get("/api/rooms/copy/messages", params=query, headers=AVERY)).json()
        count += len(page["items"])
    assert count == 703
    assert latest in [one["content"] for one in await history(http, "copy")]


async def test_an_export_that_fails_in_the_middle_is_cut(http: httpx2.AsyncClient) -> None:
    """Its reader sees that its end is missing."""
    for number in range(20):
        await post(http, f"{number}" + "x" * 250_000)

    async def deleting() -> None:
        async with http.stream("GET", f"{DEMO}/export", headers=AVERY) as response:
            async for _chunk in response.aiter_raw():
                await http.delete(DEMO, headers=AVERY)

    with pytest.raises(httpx2.RemoteProtocolError):
        await deleting()
