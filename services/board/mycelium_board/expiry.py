"""What of the board ends by itself: claims whose time is over (`mycelium_kernel.due`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium.board.v1 import service_pb2
from mycelium_kernel import due

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime


def _claim(room_id: str, key: str, token: int) -> service_pb2.ExpireClaimRequest:
    return service_pb2.ExpireClaimRequest(room_id=room_id, key=key, token=token)


CLAIMS = due.Due(
    "a claim",
    rows="SELECT room_id, key, token FROM claim WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
    next="SELECT min(expires_at) FROM claim",
    request=_claim,
    response=service_pb2.ExpireClaimResponse,
)


async def watch_claims(runtime: Runtime) -> None:
    """End claims at their time."""
    await due.watch(runtime, CLAIMS)
