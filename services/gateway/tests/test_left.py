"""Clients that leave with more than one request on their line."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import uvloop

from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door
from services.gateway.tests.watching import watching

AVERY = {"Mycelium-Handle": "avery"}
COUNT = 40


async def post(hub: Door, text: str) -> None:
    answer = await hub.http.post("/api/rooms/demo/messages", json={"content": text}, headers=AVERY)
    assert answer.status_code == 201


def test_who_leaves_with_another_request_on_the_line_costs_nobody_a_fact(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On the loop that hubs run on: unlike asyncio's own, it does not take what is written to a line that is gone."""
    seen = uvloop.run(_seen_while_others_leave(tmp_path))

    assert seen == [str(number) for number in range(COUNT)]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def _seen_while_others_leave(folder: Path) -> list[str]:
    """What one watcher sees of posts, while before each another one leaves."""
    async with contextlib.AsyncExitStack() as stack:
        nats = await stack.enter_async_context(testing.nats_server(folder / "nats"))
        rooms = await run.start(rooms_service(), nats.settings("rooms"), folder / "tables")
        stack.push_async_callback(rooms.stop)
        hub = await stack.enter_async_context(opened(nats, GatewaySettings(port=0, stream_ping_s=0.2)))
        await hub.http.post("/api/rooms", json={"name": "demo"}, headers=AVERY)
        leaving = [await stack.enter_async_context(watching(hub.port, "demo")) for _ in range(COUNT)]
        stays = await stack.enter_async_context(watching(hub.port, "demo"))
        for one in leaving:
            one.ask_too("/api/rooms/demo/stream")
        await stays.ping()
        for number in range(COUNT):
            leaving[number].leave()
            await post(hub, str(number))
        seen = [event.data["content"] for event in await stays.facts(COUNT)]
        await stays.ping()
        return seen
