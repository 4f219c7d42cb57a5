"""Fixtures: a real NATS server a test, the toy service on it, and a client that asks it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mycelium_kernel import run, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Service
from services.kernel.tests import toy
from services.kernel.tests.toy import Start


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[testing.NatsServer]:
    async with testing.nats_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MB."""
    try:
        with testing.small_disk(tmp_path / "disk", 24) as folder:
            yield folder
    except PermissionError as error:
        pytest.skip(f"no small disk can be mounted ({error}); try as root, or under `unshare -Urm`")


@pytest.fixture
async def connection(nats_server: testing.NatsServer) -> AsyncIterator[Connection]:
    connection = await Connection.open(nats_server.settings("test"))
    yield connection
    await connection.close()


@pytest.fixture
def bus(connection: Connection) -> Bus:
    return Bus(connection, "test")


@pytest.fixture
def start(nats_server: testing.NatsServer, tmp_path: Path) -> Start:
    @contextlib.asynccontextmanager
    async def starter(service: Service | None = None, folder: str = "tables") -> AsyncIterator[Runtime]:
        runtime = await run.start(service or toy.service(), nats_server.settings("rooms"), tmp_path / folder)
        try:
            yield runtime
        finally:
            await runtime.stop()

    return starter
