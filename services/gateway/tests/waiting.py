"""A room with two agents, and how they wait: for tests of long waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from services.gateway.tests.door import Door, metric, until

AVERY = {"Mycelium-Handle": "avery"}
BOB = {"Mycelium-Handle": "bob", "Mycelium-Session": "s1"}
BOB_AGAIN = {"Mycelium-Handle": "bob", "Mycelium-Session": "s2"}
DEMO = "/api/rooms/demo"


async def make_room(hub: Door) -> None:
    """The room, and bob and eve in it."""
    await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
    for handle in ("bob", "eve"):
        await hub.http.post(f"{DEMO}/members", json={"handle": handle}, headers=AVERY)


async def post(http: httpx2.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    response = await http.post(f"{DEMO}/messages", json={"content": text, **fields}, headers=AVERY)
    assert response.status_code == 201
    found: dict[str, Any] = response.json()
    return found


async def wait(http: httpx2.AsyncClient, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any] | None:
    """What a call of await got; None when nothing came in time."""
    response = await http.post(f"{DEMO}/await", json={"timeout_s": 0, **fields}, headers=headers or BOB)
    assert response.status_code in {200, 204}, response.text
    found: dict[str, Any] | None = response.json() if response.content else None
    return found


@contextlib.asynccontextmanager
async def waiting(
    http: httpx2.AsyncClient, headers: dict[str, str] | None = None, **fields: Any
) -> AsyncIterator[asyncio.Task[httpx2.Response]]:
    """A call of await that is open when the block begins."""
    body = {"timeout_s": 30, **fields}
    task = asyncio.create_task(http.post(f"{DEMO}/await", json=body, headers=headers or BOB))
    await metric(http, "mycelium_open_waits", 1.0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def answer(task: asyncio.Task[httpx2.Response]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        response = await task
    found: dict[str, Any] = response.json()
    return found


async def states(http: httpx2.AsyncClient, message: dict[str, Any]) -> dict[str, str]:
    receipts = (await http.get(f"{DEMO}/messages/{message['id']}/receipts")).json()["items"]
    return {receipt["handle"]: receipt["state"] for receipt in receipts}


async def known(http: httpx2.AsyncClient) -> None:
    """Wait until the rooms service has heard of the open wait."""

    async def is_known() -> bool:
        return bool((await http.get(f"{DEMO}/members/bob")).json()["waiting"])

    await until(is_known)
