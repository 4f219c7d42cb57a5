"""The row of engines: a mention answered by hello, its model without delay, against an empty workflow.

Both stand on the Temporal server of one hub. What is more than the empty workflow is two activities, the model's
protocol, the mention's way through the log, and the reply's way back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from bench import servers
from bench.harness import Contender, Row, now_ms
from bench.wire import Wire
from e2e.model import Model

QUEUE = "bench"
ENGINES_S = 120.0


@workflow.defn(name="Empty")
class Empty:
    """Does nothing."""

    @workflow.run
    async def run(self) -> None:
        """Nothing."""


@contextlib.asynccontextmanager
async def mention_answered() -> AsyncIterator[Row]:
    """Post → the reply is in the room's stream."""
    with Model() as model:
        settings = {"MYCELIUM_RUNTIME_ENGINES": "true", "LLM_MODEL": "bench/none", "LLM_BASE_URL": model.url}
        async with servers.hub(**settings) as hub, _empty_worker(hub.home) as client:
            await _room(hub.port)

            async def empty(count: int) -> list[float]:
                return [await _empty(client) for _ in range(count)]

            async def mention(count: int) -> list[float]:
                return await _mentions(hub.port, count)

            yield Row(
                "Mention → hello's answer is in the room's stream, its model without delay",
                "at most 4 × an empty workflow",
                [
                    Contender("an empty workflow, start to result", "SQLite, synchronous=full", empty),
                    Contender("a mention of hello, answered", "the same, and on disk (sync always)", mention),
                ],
            )


@contextlib.asynccontextmanager
async def _empty_worker(home: Path) -> AsyncIterator[Client]:
    """A client of the hub's Temporal, with a worker beside it that does nothing."""
    client = await Client.connect(f"127.0.0.1:{await _port(home)}", namespace="mycelium")
    async with Worker(client, task_queue=QUEUE, workflows=[Empty], workflow_runner=UnsandboxedWorkflowRunner()):
        yield client


async def _port(home: Path) -> int:
    async with asyncio.timeout(ENGINES_S):
        while True:
            for one in json.loads((home / "run" / "processes.json").read_text(encoding="utf-8"))["items"]:
                with contextlib.suppress(RuntimeError):
                    if one["service"] == "temporal":
                        await Client.connect(f"127.0.0.1:{one['port']}", namespace="mycelium")
                        return int(one["port"])
            await asyncio.sleep(0.1)


async def _room(port: int) -> None:
    wire = Wire(port)
    await wire.request("POST", "/api/rooms", json.dumps({"name": "bench"}).encode())
    body = json.dumps({"handle": "greeter", "kind": "hello"}).encode()
    await wire.request("POST", "/api/rooms/bench/engines", body)
    async with asyncio.timeout(ENGINES_S):
        while (await wire.request("GET", "/health"))["services"]["engine"]["status"] != "ok":
            await asyncio.sleep(0.1)
    wire.close()
    await _mentions(port, 1)


async def _empty(client: Client) -> float:
    began = now_ms()
    handle: Any = await client.start_workflow("Empty", id=f"Empty:{uuid.uuid4()}", task_queue=QUEUE)
    await handle.result()
    return now_ms() - began


async def _mentions(port: int, count: int) -> list[float]:
    poster, watcher = Wire(port), Wire(port)
    await watcher.open_stream("/api/rooms/bench/stream")
    samples = []
    for _ in range(count):
        body = json.dumps({"content": "@greeter say hello"}).encode()
        began = now_ms()
        asked = await poster.request("POST", "/api/rooms/bench/messages", body, {"mycelium-handle": "bench"})
        async with asyncio.timeout(ENGINES_S):
            await watcher.event(f'"reply_to":"{asked["id"]}"'.encode())
        samples.append(now_ms() - began)
    poster.close()
    watcher.close()
    return samples
