"""What follows from reservations: the room is told, and those that were made for a task end with it.

What is told goes the way of a task's notices (`notices`), so that it is told once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mycelium.board.v1 import events_pb2
from mycelium.board.v1 import reservations_pb2 as pb
from mycelium.rooms.v1 import notices_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_board.commands_reservations import MOST_OVER
from mycelium_board.model import BOARD, closes
from mycelium_board.model_reservations import RESERVATION
from mycelium_board.notices import TOLD, post
from mycelium_kernel import clock, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

CLAIMED, RELEASED, EXPIRED = "claimed", "released", "expired"
NAMED = 3  # patterns that a line names
Event = pb.PatternsReserved | pb.ReservationsEnded


async def _tell(runtime: Runtime, event: Event, stored: Stored) -> None:
    for number, notice in enumerate(notices(event)):
        await post(runtime, notice, stored.sequence, number)


def notices(event: Event) -> Iterator[notices_pb2.PostNoticeRequest]:
    """What the room is told: one line of what was reserved, and one of each holder whose reservations are over."""
    if isinstance(event, pb.PatternsReserved):
        yield _notice(event, CLAIMED, event.reserved, taken=event.taken)
        over, kind, note = event.expired, EXPIRED, ""
    else:
        over, kind, note = event.ended, RELEASED if event.by else EXPIRED, event.note
    groups: dict[tuple[str, str], list[pb.Reservation]] = {}
    for one in over:
        groups.setdefault((one.holder, one.thread), []).append(one)
    for group in groups.values():
        yield _notice(event, kind, group, note=note)


def _notice(
    event: Event,
    kind: str,
    reservations: Sequence[pb.Reservation],
    *,
    taken: Sequence[pb.Reservation] = (),
    note: str = "",
) -> notices_pb2.PostNoticeRequest:
    """What is told of reservations of one holder, and of one task or none; to others who lost theirs by it."""
    first, by = reservations[0], "" if kind == EXPIRED else event.by
    until = clock.rfc3339(clock.to_millis(first.expires_at)) if kind == CLAIMED else ""
    losers = {one.holder for one in taken} if kind == CLAIMED else {first.holder}
    lease = rooms_views_pb2.DELIVERY_REASON_LEASE
    return notices_pb2.PostNoticeRequest(
        room_id=event.room_id,
        message_type="notice",
        kind=kind,
        sender_handle=by,
        content=_line(kind, first.holder, _named(reservations), by, until, taken),
        metadata_json=_metadata(kind, by, reservations, until, note),
        deliveries=[notices_pb2.NoticeDelivery(handle=one, reason=lease) for one in sorted(losers - {by})],
    )


def _metadata(kind: str, by: str, reservations: Sequence[pb.Reservation], until: str, note: str) -> str:
    """As that of a task's notice, but for `sequence`: who waits for a task to change hands waits for no reservation."""
    first = reservations[0]
    told = {
        "task": first.task,
        "kind": kind,
        "thread": first.thread,
        "by": by,
        "title": _named(reservations),
        "row_kind": RESERVATION,
        "patterns": [one.pattern for one in reservations],
        "note": note or None,
        "holder": first.holder,
        "expires_at": until or None,
    }
    return json.dumps({name: value for name, value in told.items() if value is not None}, ensure_ascii=False)


def _line(kind: str, holder: str, what: str, by: str, until: str, taken: Sequence[pb.Reservation]) -> str:
    if kind == EXPIRED:
        return f"@{holder}'s reservation of {what} is over"
    if kind == RELEASED:
        return f"@{by} released {what}" if by == holder else f"@{holder}'s reservation of {what} ended with its task"
    holders = " and ".join(f"@{one}" for one in sorted({one.holder for one in taken})[:NAMED])
    return f"@{by} reserved {what} until {until}" + (f", taken from {holders}" if taken else "")


def _named(reservations: Sequence[pb.Reservation]) -> str:
    patterns = [one.pattern for one in reservations]
    more = f" and {len(patterns) - NAMED} more" if len(patterns) > NAMED else ""
    return ", ".join(patterns[:NAMED]) + more


async def close(runtime: Runtime, event: events_pb2.TaskMoved, stored: Stored) -> None:
    """End what was reserved for a task that was closed."""
    if not closes(event):
        return
    request = pb.EndReservationsOfTaskRequest(room_id=event.room_id, thread=event.thread, closed_by=stored.sequence)
    ended = MOST_OVER
    while ended == MOST_OVER:
        try:
            reply = await runtime.bus.ask(request, pb.EndReservationsOfTaskResponse, actor=Actor(event.by, ""))
        except Refusal as refusal:
            if refusal.slug not in TOLD:
                raise
            return
        ended = reply.message.ended


TELLER = Reaction(
    "reservation-notices",
    (pb.PatternsReserved, pb.ReservationsEnded),
    (subjects.of_kind(BOARD, RESERVATION),),
    _tell,
)
