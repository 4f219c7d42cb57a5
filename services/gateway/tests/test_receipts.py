"""What became of each mention of a message, as its sender reads it later."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from services.gateway.tests.door import Door

AVERY = {"Mycelium-Handle": "avery"}
DEMO = "/api/rooms/demo"


@pytest.fixture
async def http(hub: Door) -> httpx2.AsyncClient:
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    for handle in ("bob", "eve", "gone", "tired"):
        await hub.http.post(f"{DEMO}/members", json={"handle": handle}, headers=AVERY)
    await hub.http.delete(f"{DEMO}/members/gone", headers=AVERY)
    await hub.http.patch(f"{DEMO}/members/tired", json={"paused": True}, headers=AVERY)
    return hub.http


async def states(http: httpx2.AsyncClient, message: dict[str, Any]) -> dict[str, str]:
    receipts = (await http.get(f"{DEMO}/messages/{message['id']}/receipts")).json()["items"]
    return {receipt["handle"]: receipt["state"] for receipt in receipts}


async def take(http: httpx2.AsyncClient, session: str) -> dict[str, Any]:
    headers = {"Mycelium-Handle": "bob", "Mycelium-Session": session}
    taken = await http.post(f"{DEMO}/await", json={"timeout_s": 0, "confirm": True}, headers=headers)
    found: dict[str, Any] = taken.json()
    return found


async def test_every_mention_has_a_state_and_the_delivered_one_moves(http: httpx2.AsyncClient) -> None:
    """Offered, given out again, acknowledged; the others say why nothing came, or what stands in the way."""
    text = "@bob @~eve @gone @tired @avery @nobody"
    body = {"content": text, "allow_unknown": True}
    message = (await http.post(f"{DEMO}/messages", json=body, headers=AVERY)).json()
    others = {"eve": "silent", "gone": "left", "tired": "paused", "avery": "self", "nobody": "unknown"}

    assert await states(http, message) == {**others, "bob": "queued"}
    await take(http, "s1")
    assert await states(http, message) == {**others, "bob": "offered"}
    taken = await take(http, "s2")
    assert await states(http, message) == {**others, "bob": "redelivered"}
    ack = {"handle": "bob", "ack": taken["ack"], "outcome": "acknowledged"}
    done = await http.post(f"{DEMO}/ack", json=ack, headers={"Mycelium-Session": "s2"})
    assert done.status_code == 204
    assert await states(http, message) == {**others, "bob": "acknowledged"}
    await http.patch(f"{DEMO}/members/tired", json={"paused": False}, headers=AVERY)
    assert (await states(http, message))["tired"] == "queued"


async def test_everybody_s_mention_has_a_receipt_for_each(http: httpx2.AsyncClient) -> None:
    """`@all` names every agent of the room but who posts."""
    message = (await http.post(f"{DEMO}/messages", json={"content": "@all stop", "sender_handle": "bob"})).json()

    assert {one["handle"]: one["state"] for one in message["mentions"]} == {"eve": "queued", "tired": "paused"}
    assert await states(http, message) == {"eve": "queued", "tired": "paused"}
