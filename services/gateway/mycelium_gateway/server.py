"""uvicorn as a part of a process that has other things to do: no signals, no lifespan, an end that does not dawdle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from mycelium_gateway import protocol
from mycelium_gateway.accepting import Accepting
from mycelium_gateway.settings import GatewaySettings

KEEP_ALIVE_S = 75
BACKLOG = 2048
TICK_S = 1.0


class HttpServer(uvicorn.Server):
    """Serves until told to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stop = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's business."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to let connections in."""
        config, state = self.config, self.server_state

        def make() -> asyncio.Protocol:
            protocol: Callable[..., asyncio.Protocol] = config.http_protocol_class
            return protocol(config=config, server_state=state, app_state=self.lifespan.state)

        # What uvicorn does with a server is to close it.
        self.servers = [cast("Any", Accepting(listener, make, config.backlog)) for listener in sockets or []]
        self.started = True

    async def main_loop(self) -> None:
        """Tick once a second for the Date header, and notice at once when told to stop."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), TICK_S)

    def stop(self) -> None:
        """Take no new connections and end."""
        self.should_exit = True
        self._stop.set()


def configure(app: FastAPI, settings: GatewaySettings) -> HttpServer:
    """A server for `app`. What it would log about single requests is ours to log (`guard.py`)."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=protocol.of(settings),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings.stop_s),
    )
    return HttpServer(config)


def bind(settings: GatewaySettings) -> socket.socket:
    """A listening socket: the one that was given, or a new one. Raises `OSError` when the address is taken."""
    if settings.listener is not None:
        return settings.listener.dup()
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Said to be TCP, which asyncio must read there to send answers at once; without, each small one waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
