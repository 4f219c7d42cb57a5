"""Gives up imports that do not go on, so that a caller who was killed leaves neither a hidden room nor its name."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import transfer_pb2
from mycelium_kernel import clock
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
LOOK_S = 5.0
STALE_MS = 600_000  # since the last step of an import
STALE = "SELECT room_id FROM room INDEXED BY room_importing WHERE importing > 0 AND importing < ?"


async def watch_imports(runtime: Runtime) -> None:
    """Look for ever."""
    assert runtime.tables is not None
    while True:
        for (room_id,) in runtime.tables.all(STALE, clock.millis(runtime.clock()) - STALE_MS):
            request = transfer_pb2.AbandonImportRequest(room_id=room_id)
            try:
                await runtime.bus.ask(request, transfer_pb2.AbandonImportResponse, actor=Actor("", ""))
            except (Refusal, Unavailable, Internal) as error:
                LOGGER.info("an import can't be given up: %s", error)
        await asyncio.sleep(LOOK_S)
