"""What the routes of one gateway share. Made by the worker in `service.py`, read through `app.state.gateway`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycelium_gateway.live import Live
from mycelium_gateway.presence import Presence
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.waits import Waits
from mycelium_kernel.bus import Bus
from mycelium_kernel.clock import Clock
from mycelium_kernel.connections import Connection


@dataclass(frozen=True)
class Gateway:
    """The bus to ask, the log's end for live streams, the open waits, what members do."""

    settings: GatewaySettings
    version: str
    connection: Connection
    bus: Bus
    clock: Clock
    live: Live
    waits: Waits
    presence: Presence
    health: Callable[[], dict[str, Any]]  # what the kernel says of this process
