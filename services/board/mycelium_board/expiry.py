"""What of the board ends by itself: claims and reservations whose time is over, concerns that nobody took up."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mycelium.board.v1 import reservations_pb2, service_pb2
from mycelium_board.commands_edits import CONCERN_LASTS
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
)


def _concern(room_id: str, document_id: str) -> service_pb2.ExpireConcernRequest:
    return service_pb2.ExpireConcernRequest(room_id=room_id, document_id=document_id)


UNCLAIMED = """SELECT {} FROM task INDEXED BY task_concern WHERE kind = 'concern' AND closed_at = 0 AND NOT EXISTS (
  SELECT 1 FROM claim WHERE claim.room_id = task.room_id AND claim.document_id = task.document_id)"""
LASTS_MS = CONCERN_LASTS // timedelta(milliseconds=1)
CONCERNS = due.Due(
    "a concern",
    rows=f"{UNCLAIMED.format('room_id, document_id')} AND touched_at <= ? - {LASTS_MS} ORDER BY touched_at LIMIT ?",
    next=UNCLAIMED.format(f"min(touched_at) + {LASTS_MS}"),
    request=_concern,
)


async def watch_claims(runtime: Runtime) -> None:
    """End claims at their time."""
    await due.watch(runtime, CLAIMS)


async def watch_concerns(runtime: Runtime) -> None:
    """Close concerns that nobody took up."""
    await due.watch(runtime, CONCERNS)


def _reservations(room_id: str, _first: int) -> reservations_pb2.ExpireReservationsRequest:
    return reservations_pb2.ExpireReservationsRequest(room_id=room_id)


RESERVATIONS = due.Due(
    "a reservation",
    # Those of a room end together, but not all by one fact: while more are over, the first is another one each time.
    rows="SELECT room_id, min(token) FROM reservation WHERE expires_at <= ? GROUP BY room_id ORDER BY 2 LIMIT ?",
    next="SELECT min(expires_at) FROM reservation",
    request=_reservations,
)


async def watch_reservations(runtime: Runtime) -> None:
    """End reservations at their time."""
    await due.watch(runtime, RESERVATIONS)
