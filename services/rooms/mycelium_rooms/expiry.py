"""Says of events that their time is over, when it is. The tables know what is due, so nothing is to be armed again.

A hint for live streams: readers and commands look at the time themselves.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import status_pb2
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor
from mycelium_rooms.model import millis

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
LOOK_S = (0.05, 1.0)  # how soon the tables are looked at again: at least, at most
BATCH = 100
OF_ITSELF = Actor("", "")
DUE = """SELECT room_id, message_id FROM message INDEXED BY message_due JOIN room USING (room_id)
  WHERE expires_at > 0 AND status NOT IN ('resolved', 'expired') AND expires_at <= ? AND importing = 0
  ORDER BY expires_at LIMIT ?"""
NEXT = """SELECT min(expires_at) FROM message INDEXED BY message_due
  WHERE expires_at > 0 AND status NOT IN ('resolved', 'expired')"""


async def watch_expiry(runtime: Runtime) -> None:
    """Look for ever at what is due, at most a second late."""
    while True:  # noqa: ASYNC110 - the clock is what changes
        await asyncio.sleep(await _expire_due(runtime))


async def _expire_due(runtime: Runtime) -> float:
    """Expire what is due; returns in how many seconds to look again."""
    tables = runtime.tables
    assert tables is not None
    now = millis(runtime.clock())
    for room_id, message_id in tables.all(DUE, now, BATCH):
        request = status_pb2.ExpireEventRequest(room_id=room_id, message_id=message_id)
        try:
            await runtime.bus.ask(request, status_pb2.ExpireEventResponse, actor=OF_ITSELF)
        except (Refusal, Unavailable, Internal) as error:
            LOGGER.info("an event can't be said to be expired: %s", error)
            return LOOK_S[1]
    row = tables.one(NEXT)
    left_s = (row[0] - now) / 1000 if row and row[0] else LOOK_S[1]
    return min(max(left_s, LOOK_S[0]), LOOK_S[1])
