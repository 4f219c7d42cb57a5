"""Says of claims that their time is over, when it is. The tables know what is due, so nothing is to be armed again.

Everybody looks at the time themselves; this makes the fact that others are told by.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from mycelium.board.v1 import service_pb2
from mycelium_kernel import clock
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
LOOK_S = (0.05, 1.0)  # how soon the tables are looked at again: at least, at most
BATCH = 100
OF_ITSELF = Actor("", "")
DUE = "SELECT room_id, key, token FROM claim WHERE expires_at <= ? ORDER BY expires_at LIMIT ?"
NEXT = "SELECT min(expires_at) FROM claim"


async def watch_claims(runtime: Runtime) -> None:
    """Look for ever at what is due, at most a second late."""
    while True:  # noqa: ASYNC110 - the clock is what changes
        await asyncio.sleep(await _expire_due(runtime))


async def _expire_due(runtime: Runtime) -> float:
    """End what is due; returns in how many seconds to look again."""
    tables = runtime.tables
    assert tables is not None
    now = clock.to_millis(clock.to_timestamp(runtime.clock()))
    for room_id, key, token in tables.all(DUE, now, BATCH):
        request = service_pb2.ExpireClaimRequest(room_id=room_id, key=key, token=token)
        try:
            await runtime.bus.ask(request, service_pb2.ExpireClaimResponse, actor=OF_ITSELF)
        except (Refusal, Unavailable, Internal) as error:
            LOGGER.info("a claim can't be said to be over: %s", error)
            return LOOK_S[1]
    row = tables.one(NEXT)
    left_s = (row[0] - now) / 1000 if row and row[0] else LOOK_S[1]
    return min(max(left_s, LOOK_S[0]), LOOK_S[1])
