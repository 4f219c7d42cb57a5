"""History with its filters, texts before, and events with a status and an end, over HTTP and live."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from services.gateway.tests.door import BOUND_S, Door
from services.gateway.tests.watching import watching

AVERY = {"Mycelium-Handle": "avery"}
MESSAGES = "/api/rooms/demo/messages"


@pytest.fixture
async def http(hub: Door) -> httpx2.AsyncClient:
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    return hub.http


async def post(http: httpx2.AsyncClient, text: str, sender: str = "avery", **fields: Any) -> dict[str, Any]:
    body = {"content": text, "sender_handle": sender, **fields}
    response = await http.post(MESSAGES, json=body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def event(http: httpx2.AsyncClient, kind: str, **metadata: Any) -> dict[str, Any]:
    return await post(http, f"a {kind}", message_type="event", metadata={"kind": kind, **metadata})


async def texts(http: httpx2.AsyncClient, **query: Any) -> list[str]:
    response = await http.get(MESSAGES, params=query)
    assert response.status_code == 200, response.text
    return [message["content"] for message in response.json()["items"]]


async def test_history_is_filtered(http: httpx2.AsyncClient) -> None:
    """By sender, words, thread, everywhere; each filter reaches the tables."""
    root = await post(http, "cache is cold")
    await post(http, "cache TTL is 300s", thread=root["id"])
    await post(http, "bench is done", "bo")

    assert await texts(http) == ["bench is done", "cache is cold"]
    assert await texts(http, all=True) == ["bench is done", "cache TTL is 300s", "cache is cold"]
    assert await texts(http, sender="Bo") == ["bench is done"]
    assert await texts(http, q="cache", all=True) == ["cache TTL is 300s", "cache is cold"]
    assert await texts(http, q='"TTL is"', thread=root["id"][-8:]) == ["cache TTL is 300s"]
    assert await texts(http, since="yesterday", before="1h", tz="Pacific/Kiritimati") == []
    assert len(await texts(http, since="today", tz="Etc/GMT-14")) == 2


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"tz": "Mars/Olympus"}, "tz is 'Mars/Olympus'"),
        ({"status": "done"}, "status is 'done'"),
        ({"kind": "No Kind"}, "kind is 'No Kind'"),
        ({"since": "soon"}, "since"),
        ({"all": "perhaps"}, "query.all"),
    ],
)
async def test_a_filter_that_can_not_be_is_refused(
    http: httpx2.AsyncClient, query: dict[str, str], detail: str
) -> None:
    """With the name under which the caller sent it."""
    response = await http.get(MESSAGES, params=query)
    assert (response.status_code, response.json()["slug"]) == (422, "request.invalid")
    assert detail in response.json()["detail"]


async def test_an_amended_message_reads_as_one_and_keeps_its_texts(http: httpx2.AsyncClient) -> None:
    """The first with the time of the post, the others with those of the edits."""
    message = await post(http, "one")
    path = f"{MESSAGES}/{message['id']}"
    for text in ("two", "three"):
        await http.patch(path, json={"content": text}, headers=AVERY)
    shown = (await http.get(path)).json()
    full = (await http.get(path, params={"history": "true"})).json()
    first, *edits = full.pop("history")

    assert shown == full
    assert "history" not in shown
    assert first == {"content": "one", "created_at": message["created_at"]}
    assert [(edit["content"], "edited_at" in edit) for edit in edits] == [("two", True), ("three", True)]
    assert edits[-1]["edited_at"] == shown["edited_at"]


async def test_an_event_is_posted_found_and_closed(http: httpx2.AsyncClient) -> None:
    """Its kind, status, payload and source are kept; its end is told."""
    source = [{"type": "pr", "ref": "org/repo#48"}]
    posted = await event(http, "action", ttl_seconds=1209600, payload={"n": 48}, provenance=source)
    concern = await event(http, "concern")
    news = await event(http, "ci_result")
    path = f"{MESSAGES}/{posted['id'][-8:]}"

    assert (posted["status"], concern["status"], news["status"]) == ("open", "open", "")
    assert posted["metadata"]["provenance"] == source
    assert posted["expires_at"] > posted["created_at"]
    assert (concern["expires_at"], concern["edited_at"]) == (None, None)
    assert await texts(http, kind="action", status="open") == ["a action"]
    closed = await http.patch(path, json={"status": "resolved"}, headers=AVERY)
    assert (closed.json()["status"], closed.json()["content"]) == ("resolved", "a action")
    assert int(closed.headers["mycelium-sequence"]) > posted["seq"]
    assert await texts(http, kind="action", status="open") == []
    assert await texts(http, status="resolved") == ["a action"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": "resolved"}, (422, "event.not_an_event")),
        ({"status": "done"}, (422, "request.invalid")),
        ({}, (422, "request.invalid")),
        ({"status": "open", "content": "x"}, (422, "request.invalid")),
        ({"status": "open", "sender_handle": "bo"}, (403, "handle.mismatch")),
    ],
)
async def test_a_change_that_can_not_be_is_refused(
    http: httpx2.AsyncClient, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    """A message has a text, an event a status, and a request one change."""
    message = await post(http, "no event")
    response = await http.patch(f"{MESSAGES}/{message['id']}", json=body, headers=AVERY)
    assert (response.status_code, response.json()["slug"]) == expected


async def test_watchers_see_what_becomes_of_an_event(hub: Door, http: httpx2.AsyncClient) -> None:
    """Its new status with who set it, and its end when its time is over; after that it can't be changed."""
    async with watching(hub.port, "demo") as stream:
        lasting = await event(http, "action")
        brief = await event(http, "action", ttl_seconds=1)
        await http.patch(f"{MESSAGES}/{lasting['id']}", json={"status": "in_progress"}, headers=AVERY)
        async with asyncio.timeout(BOUND_S * 2):
            posted = await stream.some(2)
            changed, expired = await stream.some(2)
    late = await http.patch(f"{MESSAGES}/{brief['id']}", json={"status": "resolved"}, headers=AVERY)

    assert [one.data for one in posted] == [lasting, brief]
    assert (changed.name, changed.data["room"], changed.data["id"]) == ("event_status", "demo", lasting["id"])
    assert (changed.data["status"], changed.data["set_by"]) == ("in_progress", "avery")
    assert (expired.data["id"], expired.data["status"], expired.data["set_by"]) == (brief["id"], "expired", "")
    assert (late.status_code, late.json()["slug"]) == (409, "event.expired")
    assert await texts(http, status="expired") == ["a action"]
