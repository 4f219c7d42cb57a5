"""Fixtures: a real NATS server a test, and a gateway on it that answers on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from e2e import oidc_server
from mycelium_gateway import server
from mycelium_gateway.service import service
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests.door import Door, client


@pytest.fixture(scope="session")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[oidc_server.OidcServer]:
    """An issuer that other tests use too: nobody stops it or changes its keys."""
    with oidc_server.started(tmp_path_factory.mktemp("idp")) as server:
        yield server


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[testing.NatsServer]:
    async with testing.nats_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def door(nats_server: testing.NatsServer) -> AsyncIterator[Door]:
    """A gateway alone: what it answers without asking anybody."""
    async with opened(nats_server, GatewaySettings(port=0)) as door:
        yield door


@contextlib.asynccontextmanager
async def opened(nats_server: testing.NatsServer, settings: GatewaySettings) -> AsyncIterator[Door]:
    """A gateway for the time of the block."""
    listener = server.bind(settings)
    listener.listen()  # calls wait in it until they are answered
    bound = dataclasses.replace(settings, listener=listener)
    runtime = await run.start(service(bound), nats_server.settings("gateway"), None)
    stopped: list[asyncio.Task[None]] = []

    async def stop() -> None:
        if not stopped:
            stopped.append(asyncio.create_task(runtime.stop()))
        await stopped[0]

    port = listener.getsockname()[1]
    try:
        async with client(port) as http:
            yield Door(port, http, stop)
    finally:
        await stop()
        listener.close()


@pytest.fixture
def recent_bytes() -> int:
    """How much of what happened the gateway of `hub` keeps in memory; a test may ask for another size."""
    return GatewaySettings.stream_recent_bytes


@pytest.fixture
async def hub(nats_server: testing.NatsServer, tmp_path: Path, recent_bytes: int) -> AsyncIterator[Door]:
    """A gateway and the rooms service behind it."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    try:
        settings = GatewaySettings(port=0, stream_ping_s=0.2, stream_recent_bytes=recent_bytes)
        async with opened(nats_server, settings) as door:
            yield door
    finally:
        await rooms.stop()


@pytest.fixture
async def http(door: Door) -> httpx2.AsyncClient:
    return door.http
