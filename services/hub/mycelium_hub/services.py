"""The services of a hub, in the order of their start. A new service is one entry here."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_board.settings import GATE
from mycelium_engine.settings import NONE, spending_settings
from mycelium_gateway.auth_settings import AUTH_SETTINGS
from mycelium_gateway.web_settings import WEB_SETTINGS
from mycelium_hub import temporal_server
from mycelium_hub.home import Home
from mycelium_hub.nats_config import User
from mycelium_hub.settings import HubSettings
from mycelium_memory.settings import SEARCH_SETTINGS

if TYPE_CHECKING:  # loaded with the first service, so that what is refused is refused at once
    from mycelium_kernel.connections import NatsSettings
    from mycelium_kernel.run import Runtime
    from mycelium_kernel.service import Projection


@dataclass(frozen=True)
class Surroundings:
    """What a service is started with."""

    home: Home
    settings: HubSettings
    nats: NatsSettings
    listener: socket.socket
    temporal: str = ""  # where Temporal is; empty when engines are off


@dataclass(frozen=True)
class Part:
    """A service: its NATS user, whose name is also that of its log, and how it starts in the hub's process.

    For a process of its own: the module that is run, and the settings that it gets beside those of every service;
    the replica's number comes from 1. Without a `start` it always is one, and starts once the hub answers.
    """

    user: User
    start: Callable[[Surroundings], Coroutine[None, None, Runtime]] | None
    module: str
    settings: Callable[[Surroundings, int], dict[str, str]]

    @property
    def name(self) -> str:
        return self.user.name


async def _rooms(given: Surroundings) -> Runtime:
    from mycelium_kernel import run
    from mycelium_rooms.service import service

    return await run.start(service(rooms_folder=given.home.rooms), given.nats, given.home.tables)


def _rooms_settings(given: Surroundings, replica: int) -> dict[str, str]:
    """One replica keeps the folders of rooms."""
    folder = str(given.home.rooms) if replica == 1 else ""
    return {"service.tables": str(given.home.tables_of(replica)), "rooms.folder": folder}


async def _memory(given: Surroundings) -> Runtime:
    from mycelium_kernel import run
    from mycelium_kernel import settings as kernel_settings
    from mycelium_memory.service import service
    from mycelium_memory.settings import SERVICE_SETTINGS, index_settings

    own = kernel_settings.load(SERVICE_SETTINGS, given.home.path, os.environ)
    values = {key: sourced.value for key, sourced in {**own, **given.settings.found}.items()}
    made = service(index_settings(values, given.home.index), given.home.rooms)
    return await run.start(made, given.nats, given.home.tables)


def _memory_settings(given: Surroundings, replica: int) -> dict[str, str]:
    """One replica keeps the index of meaning; whichever has the tree's lock keeps that, and another after it."""
    found = given.settings.found  # what the hub was started with, whatever its file says by now
    return {
        "service.tables": str(given.home.tables_of(replica)),
        "memory.tree": str(given.home.rooms),
        "memory.index_folder": str(given.home.index) if replica == 1 else "",
        **{setting.key: str(found[setting.key].value) for setting in SEARCH_SETTINGS if setting.key in found},
    }


async def _board(given: Surroundings) -> Runtime:
    from mycelium_board.service import service
    from mycelium_kernel import run

    is_gated = bool(given.settings.found[GATE.key].value)
    return await run.start(service(is_gated=is_gated), given.nats, given.home.tables)


def _board_settings(given: Surroundings, replica: int) -> dict[str, str]:
    """The gate as the hub was started with, whatever its file says by now."""
    gate = str(given.settings.found[GATE.key].value)
    return {"service.tables": str(given.home.tables_of(replica)), GATE.key: gate}


async def _gateway(given: Surroundings) -> Runtime:
    from mycelium_gateway.service import service
    from mycelium_gateway.settings import GatewaySettings
    from mycelium_kernel import run

    settings = GatewaySettings(
        host=given.settings.host,
        port=given.listener.getsockname()[1],
        listener=given.listener,
        allowed_hosts=given.settings.allowed_hosts,
        auth=given.settings.auth,
        web=given.settings.web,
        trusted_proxies=given.settings.trusted_proxies,
        services=dict.fromkeys(_asked(given.settings), 1),
        late=frozenset(part.name for part in late_parts(given.settings)),
    )
    return await run.start(service(settings), given.nats, None)


def _gateway_settings(given: Surroundings, _replica: int) -> dict[str, str]:
    """Every gateway takes calls from the one listening socket, so that a dead or frozen one holds none that wait.

    What seals the web app's cookies goes by the environment of the gateways alone, which only their own user can read.
    """
    asked, found = _asked(given.settings), {**given.settings.found, **given.settings.secrets}
    told = [setting for setting in (*AUTH_SETTINGS, *WEB_SETTINGS) if setting.key in found]
    if given.settings.replicas > 1:  # the only gateway need not ask itself
        asked = (*asked, "gateway")
    return {
        "gateway.host": given.settings.host,
        "gateway.port": str(given.listener.getsockname()[1]),
        "gateway.listener": str(given.listener.fileno()),
        "gateway.allowed_hosts": ",".join(given.settings.allowed_hosts),
        # As the hub was started, whatever its file says by now: a blank is there, and means none.
        **{setting.key: str(found[setting.key].value) or " " for setting in told},
        "gateway.services": ",".join(f"{name}={given.settings.replicas}" for name in asked),
        "gateway.late": ",".join(part.name for part in late_parts(given.settings)),
    }


def _engine_settings(given: Surroundings, _replica: int) -> dict[str, str]:
    """The model's key goes by the environment of this service alone, which only its own user can read."""
    model = given.settings.model
    return {
        "temporal.address": given.temporal,
        "temporal.namespace": temporal_server.NAMESPACE,
        "temporal.key_file": str(temporal_server.key_file(given.home)),
        "llm.model": model.model or NONE,  # what the hub was started with, whatever its file says by now
        "llm.base_url": model.base_url or NONE,
        "llm.timeout_s": f"{model.timeout_s:.0f}",
        "llm.max_tokens": str(model.max_tokens),
        **spending_settings(model),
        "llm.api_key_file": str(temporal_server.told_key(given.home, model.api_key)),
    }


PARTS = (
    Part(User("rooms", erases=True), _rooms, "mycelium_rooms", _rooms_settings),
    Part(User("memory"), _memory, "mycelium_memory", _memory_settings),
    Part(User("board"), _board, "mycelium_board", _board_settings),
    Part(User("engine"), None, "mycelium_engine", _engine_settings),
    Part(
        User("gateway", buckets=("gateway_waits", "gateway_presence", "gateway_sessions")),
        _gateway,
        "mycelium_gateway",
        _gateway_settings,
    ),
)
NAMES = tuple(part.name for part in PARTS if part.start)


def late_parts(settings: HubSettings) -> tuple[Part, ...]:
    """Those that start once the hub answers: they take seconds to load, and would hold up everybody else's thread."""
    return tuple(part for part in PARTS if part.start is None and settings.engines)


def _asked(settings: HubSettings) -> tuple[str, ...]:
    """What the gateway's /health asks."""
    return (*(name for name in NAMES if name != "gateway"), *(part.name for part in late_parts(settings)))


def projections() -> dict[str, Projection]:
    """The services that keep tables, and how each makes them from which facts."""
    from mycelium_board.service import PROJECTION as BOARD
    from mycelium_memory.service import PROJECTION as MEMORY
    from mycelium_rooms.service import PROJECTION as ROOMS

    return {"rooms": ROOMS, "memory": MEMORY, "board": BOARD}
