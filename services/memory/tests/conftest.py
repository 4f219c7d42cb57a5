"""Fixtures: hubs of rooms with memory, and a real NATS server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mycelium.rooms.v1 import service_pb2 as rooms_pb
from mycelium_kernel import run, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_rooms.service import service as rooms_service
from services.memory.tests.asking import Asker
from services.memory.tests.hub import Hub, demo_hub


@pytest.fixture
def demo() -> Hub:
    """A hub with the room `demo`, made by avery."""
    return demo_hub()


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[testing.NatsServer]:
    async with testing.nats_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def ask(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[Asker]:
    """Asks over the bus; the rooms service is there, with the room `demo`."""
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "rooms")
    connection = await Connection.open(nats_server.settings("gateway"))
    asker = Asker(Bus(connection, "gateway"))
    await asker(rooms_pb.CreateRoomRequest(name="demo"))
    try:
        yield asker
    finally:
        await connection.close()
        await rooms.stop()
