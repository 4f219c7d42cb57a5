"""The services that run inside the hub's process, in the order of their start. A new service is one entry here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_hub.home import Home
from mycelium_hub.nats_config import User
from mycelium_hub.settings import HubSettings

if TYPE_CHECKING:  # loaded with the first service, so that what is refused is refused at once
    from mycelium_kernel.connections import NatsSettings
    from mycelium_kernel.run import Runtime


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
    start: Callable[[Surroundings], Coroutine[None, None, Runtime]]

    @property
    def name(self) -> str:
        return self.user.name


async def _rooms(given: Surroundings) -> Runtime:
    from mycelium_kernel import run
    from mycelium_rooms.service import service

    return await run.start(service(rooms_folder=given.home.rooms), given.nats, given.home.tables)


async def _gateway(given: Surroundings) -> Runtime:
    from mycelium_gateway.service import service
    from mycelium_gateway.settings import GatewaySettings
    from mycelium_kernel import run

    settings = GatewaySettings(
        host=given.settings.host,
        port=given.listener.getsockname()[1],
        listener=given.listener,
        allowed_hosts=given.settings.allowed_hosts,
        services=tuple(name for name in NAMES if name != "gateway"),
    )
    return await run.start(service(settings), given.nats, None)


PARTS = (
    Part(User("rooms", erases=True), _rooms),
    Part(User("gateway", buckets=("gateway_waits", "gateway_presence")), _gateway),
)


def projections() -> dict[str, tuple[str, ...]]:
    """The services that keep tables, and the facts that each reads."""
    from mycelium_rooms.service import PROJECTION

    return {"rooms": PROJECTION.filters}


NAMES = tuple(part.name for part in PARTS)
