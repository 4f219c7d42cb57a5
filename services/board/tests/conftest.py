"""Fixtures: a real NATS server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mycelium_kernel import testing


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[testing.NatsServer]:
    async with testing.nats_server(tmp_path / "nats") as server:
        yield server
