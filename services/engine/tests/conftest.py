"""A Temporal server of the tests' own, and NATS with the rooms service for those that need them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from e2e.model import Model
from mycelium_kernel import temporal
from mycelium_kernel.testing import NatsServer, nats_server

KEY = bytes(range(32))
NAMESPACE = "mycelium"


@pytest.fixture
async def server() -> AsyncIterator[Client]:
    """A client of the server as somebody without the hub's key has it."""
    program = str(Path(sys.executable).parent / "temporal")
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=program, ip="127.0.0.1", namespace=NAMESPACE, dev_server_log_level="error"
    )
    yield environment.client
    await environment.shutdown()


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    path = tmp_path / "temporal.key"
    path.write_bytes(KEY)
    return str(path)


@pytest.fixture
async def client(server: Client, key_file: str) -> Client:
    """A client of the server as the engine service has it."""
    address = server.service_client.config.target_host
    return await temporal.connect(temporal.TemporalSettings(address, NAMESPACE, key_file))


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as scripted:
        yield scripted


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[NatsServer]:
    async with nats_server(tmp_path / "nats") as running:
        yield running
