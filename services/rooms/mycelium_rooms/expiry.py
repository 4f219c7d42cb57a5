"""What of rooms ends by itself: events whose time is over (`mycelium_kernel.due`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium.rooms.v1 import status_pb2
from mycelium_kernel import due

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime


def _event(room_id: str, message_id: str) -> status_pb2.ExpireEventRequest:
    return status_pb2.ExpireEventRequest(room_id=room_id, message_id=message_id)


EVENTS = due.Due(
    "an event",
    rows="""SELECT room_id, message_id FROM message INDEXED BY message_due JOIN room USING (room_id)
      WHERE expires_at > 0 AND status NOT IN ('resolved', 'expired') AND expires_at <= ? AND importing = 0
      ORDER BY expires_at LIMIT ?""",
    next="""SELECT min(expires_at) FROM message INDEXED BY message_due
      WHERE expires_at > 0 AND status NOT IN ('resolved', 'expired')""",
    request=_event,
)


async def watch_expiry(runtime: Runtime) -> None:
    """End events at their time."""
    await due.watch(runtime, EVENTS)
