"""Fixtures: hubs of rooms in memory, and a real NATS server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mycelium_kernel import testing
from services.rooms.tests.hub import Hub, demo_hub
from services.rooms.tests.live import Ask, asking


@pytest.fixture
def hub() -> Hub:
    """An empty hub."""
    return Hub()


@pytest.fixture
def demo() -> Hub:
    """A hub with the room `demo`, the user avery and the agents engineer and reviewer."""
    return demo_hub()


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[testing.NatsServer]:
    async with testing.nats_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def ask(nats_server: testing.NatsServer) -> AsyncIterator[Ask]:
    """Asks the service on that server."""
    async with asking(nats_server) as asker:
        yield asker
