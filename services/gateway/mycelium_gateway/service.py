"""The gateway's table of contents: it answers no requests of the bus and holds no tables; one worker serves HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from mycelium_gateway import app, server
from mycelium_gateway.gateway import Gateway
from mycelium_gateway.keys import Keys
from mycelium_gateway.live import Live
from mycelium_gateway.namesakes import Namesakes
from mycelium_gateway.origin import Names
from mycelium_gateway.presence import TELLING, Presence
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.tokens import Tokens
from mycelium_gateway.waits import Waits
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Service

LOGGER = logging.getLogger(__name__)
NAME = "gateway"
VERSION = "0.1.0"


def service(settings: GatewaySettings) -> Service:
    """The gateway as the kernel runs it."""

    async def http(runtime: Runtime) -> None:
        await serve(runtime, settings)

    return Service(name=NAME, version=VERSION, workers=(http,))


async def serve(runtime: Runtime, settings: GatewaySettings) -> None:
    """Answer HTTP until cancelled; then end waits and streams at once and give other requests a moment."""
    live = Live(runtime.connection, settings.stream_ping_s, settings.stream_recent_bytes)
    keys = Keys(runtime.connection, runtime.new_id(), lambda: int(runtime.clock().timestamp() * 1000))
    presence = Presence(runtime.connection, keys, live, runtime.clock)
    waits = Waits(runtime.connection, keys, presence)
    tokens = Tokens(settings.auth, now=lambda: runtime.clock().timestamp())
    namesakes = Namesakes(runtime.bus, settings.auth)
    live.on_fact, live.on_event, live.also = waits.on_fact, presence.happened, TELLING
    live.on_unwatched = presence.end
    gateway = Gateway(
        settings,
        VERSION,
        runtime.connection,
        runtime.bus,
        runtime.clock,
        live,
        waits,
        presence,
        runtime.health,
        tokens,
        namesakes,
    )
    for warning in (*settings.auth.warnings(), *settings.web.warnings(settings.auth)):
        LOGGER.warning("sign-in: %s", warning)
    names = Names(settings.host, settings.allowed_hosts)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(namesakes.stop)
        listener = stack.enter_context(server.bind(settings))
        for part in (keys, live, presence, waits):
            stack.push_async_callback(part.stop)
            await part.start()
        http = server.configure(app.create(names, VERSION, gateway), settings)
        serving = asyncio.create_task(http.serve(sockets=[listener]), name="http")
        try:
            await asyncio.shield(serving)
        finally:
            waits.end_all()
            live.end_all()
            http.stop()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
