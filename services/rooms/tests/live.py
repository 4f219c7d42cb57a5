"""The service on a real NATS server, asked over the bus as the gateway asks it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from mycelium_kernel import events, run, subjects, testing
from mycelium_kernel.bus import Bus
from mycelium_kernel.connections import Connection
from mycelium_kernel.run import Runtime
from mycelium_kernel.service import Actor
from mycelium_rooms.service import service

Ask = Callable[..., Any]


@contextlib.asynccontextmanager
async def running(server: testing.NatsServer, folder: Path) -> AsyncIterator[Runtime]:
    """The service, for the time of the block."""
    runtime = await run.start(service(), server.settings("rooms"), folder)
    try:
        yield runtime
    finally:
        await runtime.stop()


@contextlib.asynccontextmanager
async def asking(server: testing.NatsServer) -> AsyncIterator[Ask]:
    """A client; the type of an answer follows from its request's."""
    connection = await Connection.open(server.settings("gateway"))
    bus = Bus(connection, "gateway")

    async def ask(request: Message, handle: str = "avery", session: str = "", key: str = "") -> Any:
        response = events.message_type(subjects.method_of(request.DESCRIPTOR).output_type.full_name)
        return (await bus.ask(request, response, actor=Actor(handle, session), key=key)).message

    try:
        yield ask
    finally:
        await connection.close()
