"""Boards as processes of their own, on real NATS servers, with what other services would have stored there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_kernel import testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor
from services.board.tests.hub import Hub

START_S = 90.0
BOARDS = 3


@contextlib.asynccontextmanager
async def log(folder: Path, replicas: int) -> AsyncIterator[list[testing.NatsServer]]:
    """One server, or three that replicate."""
    if replicas == 1:
        async with testing.nats_server(folder / "nats") as server:
            yield [server]
    else:
        async with testing.nats_cluster(folder / "nats") as servers:
            yield servers


@dataclass
class Boards:
    """Several boards, and somebody who asks them."""

    bus: Bus
    connection: Connection
    processes: list[Process]

    async def claim(self, task: str, by: str) -> views_pb2.Claim | Refusal:
        """The claim, or why not."""
        request = service_pb2.ClaimTaskRequest(room="demo", task=task)
        try:
            reply = await self.bus.ask(request, service_pb2.ClaimTaskResponse, actor=Actor(by, by), timeout_s=30)
        except Refusal as refusal:
            return refusal
        return reply.message.claim

    async def claim_at_once(self, task: str, handles: Sequence[str]) -> dict[str, views_pb2.Claim | Refusal]:
        """What each is told; no board goes on before all have asked."""
        for process in self.processes:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # noqa: ASYNC222 - at once
        asking = [asyncio.create_task(self.claim(task, handle)) for handle in handles]
        await asyncio.wait(asking, timeout=0)
        await self.connection.client.flush()
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
        return dict(zip(handles, await asyncio.gather(*asking), strict=True))

    async def release(self, task: str, by: str, token: int) -> None:
        request = service_pb2.ReleaseTaskRequest(room="demo", task=task, token=token)
        await self.bus.ask(request, service_pb2.ReleaseTaskResponse, actor=Actor(by, by))


@contextlib.asynccontextmanager
async def boards(folder: Path, servers: Sequence[testing.NatsServer], hub: Hub) -> AsyncIterator[Boards]:
    """Three boards, each at a server of its own where there are several; the log begins with the facts of `hub`."""
    replicas = len(servers)
    connection = await Connection.open(servers[0].settings("test", replicas))
    processes: list[Process] = []
    try:
        await connection.prepare()
        for fact in hub.facts:
            await connection.jetstream.publish(fact.subject, fact.data, headers=fact.headers)
        for number in range(BOARDS):
            processes.append(await _board(servers[number % replicas], replicas, folder / f"board{number}"))
        bus = Bus(connection, "test")
        async with asyncio.timeout(START_S):
            while len(await bus.health("board", replicas=BOARDS)) < BOARDS:
                pass
        yield Boards(bus, connection, processes)
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            await process.wait()
        await connection.close()


async def _board(server: testing.NatsServer, replicas: int, folder: Path) -> Process:
    said = {
        "MYCELIUM_NATS_SERVERS": server.url,
        "MYCELIUM_NATS_PASSWORD": testing.PASSWORD,
        "MYCELIUM_NATS_MONITOR_PASSWORD": testing.PASSWORD,
        "MYCELIUM_NATS_REPLICAS": str(replicas),
        "MYCELIUM_SERVICE_TABLES": str(folder),
        "MYCELIUM_SERVICE_PROBE_PORT": str(testing.free_port()),
        "MYCELIUM_LOG_LEVEL": "error",
    }
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "mycelium_board", env=kept | said)
