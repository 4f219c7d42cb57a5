"""A service whose connection NATS has closed for good is started again by the hub, on the same port and tables."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from mycelium_hub import address, settings
from mycelium_hub.home import Home
from mycelium_hub.serve import Hub
from mycelium_hub.together import Together
from services.hub.tests import calls


def _nobody_leaves(_kept: object) -> NoReturn:
    raise AssertionError("nobody asked for other settings")


@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["rooms", "memory", "board", "gateway"])
async def test_a_service_that_lost_its_connection_is_started_again(tmp_path: Path, place: int) -> None:
    """Breaking the protocol once must not leave a hub that answers nothing for ever."""
    home = Home(tmp_path / "home")
    home.prepare()
    with home.owned() as lock, contextlib.closing(address.listen("127.0.0.1", 0)) as listener:
        hub = Hub(home, settings.load(home.path, {}), listener, lock, None, echo=False, leave=_nobody_leaves)
        together = hub._services
        assert isinstance(together, Together)
        running = asyncio.create_task(hub.run())
        async with asyncio.timeout(60):
            while home.running() is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await asyncio.to_thread(calls.call, hub.url, "POST", "/api/rooms", {"name": "demo"})
        before = together._running[place][1]
        await before.connection.client.publish("x" * 5000, b"")
        async with asyncio.timeout(60):
            await before.connection.lost.wait()
            while together._running[place][1] is before:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        posted = await asyncio.to_thread(calls.post, hub.url, "hi")
        signal.raise_signal(signal.SIGTERM)
        await running

    assert posted["content"] == "hi"
