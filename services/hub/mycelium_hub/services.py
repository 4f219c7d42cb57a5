"""The services that run inside the hub's process, in the order of their start. A new service is one entry here."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_hub.home import Home
from mycelium_hub.nats_config import User
from mycelium_hub.settings import HubSettings

if TYPE_CHECKING:  # loaded with the first service, so that what is refused is refused at once
    from mycelium_kernel.connections import NatsSettings

Stop = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Surroundings:
    """What a service is started with."""

    home: Home
    settings: HubSettings
    nats: NatsSettings
    listener: socket.socket


@dataclass(frozen=True)
class Part:
    """A service: its NATS user, whose name is also that of its log, and how it starts."""

    user: User
    start: Callable[[Surroundings], Coroutine[None, None, Stop]]

    @property
    def name(self) -> str:
        return self.user.name


async def _rooms(given: Surroundings) -> Stop:
    from mycelium_kernel import run
    from mycelium_rooms.service import SERVICE

    runtime = await run.start(SERVICE, given.nats, given.home.tables)
    return runtime.stop


async def _gateway(given: Surroundings) -> Stop:
    from mycelium_gateway import service
    from mycelium_gateway.settings import GatewaySettings

    host, port = given.listener.getsockname()[:2]
    gateway = await service.start(GatewaySettings(host=host, port=port, listener=given.listener), given.nats)
    return gateway.stop


PARTS = (
    Part(User("rooms"), _rooms),
    Part(User("gateway", buckets=("gateway_waits",)), _gateway),
)
NAMES = tuple(part.name for part in PARTS)
