"""What starts once the hub answers, and whatever becomes of it, rooms go on: Temporal, and the engines on top of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mycelium_hub import address, apart, temporal_server
from mycelium_hub.home import Home
from mycelium_hub.roster import Roster
from mycelium_hub.services import Part, Surroundings, late_parts
from mycelium_hub.settings import HubSettings
from mycelium_hub.supervisor import Child, StartFailed
from mycelium_kernel import tasks

LOGGER = logging.getLogger(__name__)
AGAIN_S = (0.5, 15.0)  # between starts that failed: first, longest


class Late:
    """Those processes of one hub. Temporal's port is held from now on, so that others can be told of it already."""

    def __init__(self, home: Home, roster: Roster, settings: HubSettings) -> None:
        (self._port,) = address.free_ports(1)
        self._held = temporal_server.hold(self._port)
        self._roster = roster
        self._settings = settings
        self._server = Child(temporal_server.command(home, self._port, roster, settings.log_level))
        self._services: list[Child] = []
        self._starting: list[asyncio.Task[None]] = []

    @property
    def temporal(self) -> str:
        """Where Temporal is, or will be."""
        return f"127.0.0.1:{self._port}"

    def begin(self, given: Callable[[Part], Surroundings]) -> None:
        """Start them side by side, each again and again if need be. Nobody waits for them."""
        self._held.close()
        for group in apart.groups(late_parts(self._settings), given, self._roster):
            self._services += group
        children = (self._server, *self._services)
        self._starting = [asyncio.create_task(_insist(child), name=f"start {child.what.name}") for child in children]

    async def stop(self) -> None:
        """End the services, then what they stand on."""
        self._held.close()
        await tasks.end(self._starting)
        await asyncio.gather(*(child.stop() for child in self._services))
        await self._server.stop()


async def _insist(child: Child) -> None:
    pause_s = AGAIN_S[0]
    while True:
        try:
            await child.start()
        except (StartFailed, OSError) as error:
            LOGGER.error("%s; see `mycelium logs`", error)  # noqa: TRY400 - its own words are in its log
        else:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, AGAIN_S[1])
