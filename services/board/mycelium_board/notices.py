"""What the room is told of tasks: a line in its channel for each move, and a delivery to whom it concerns.

The rooms service stores both in one fact. Its key is made from the move's place in the log, so a move is told once,
however often this runs and on however many replicas. Nobody is told of what they did themselves.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mycelium.board.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import notices_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_board.model import BOARD, OF_ITSELF, TASK
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

TOLD = {"key.reused", "room.not_found"}  # told before, when others were there; nobody is left to be told
NOTE_CHARACTERS = 200  # of a note in a line
BROKEN = {"Cc", "Cs", "Zl", "Zp"}  # categories of characters that a line can't have
# By move: the kind of its notice, as in contracts/l9.json, and what it is called in a line.
SAID = {
    views_pb2.MOVE_FILED: ("filed", "filed"),
    views_pb2.MOVE_CLAIMED: ("claimed", "claimed"),
    views_pb2.MOVE_RELEASED: ("released", "gave back"),
    views_pb2.MOVE_RESOLVED: ("resolved", "resolved"),
    views_pb2.MOVE_PROMOTED: ("resolved", "promoted"),
    views_pb2.MOVE_DISMISSED: ("resolved", "dismissed"),
    views_pb2.MOVE_ANSWERED: ("resolved", "answered"),
    views_pb2.MOVE_EXPIRED: ("expired", ""),
    views_pb2.MOVE_BLOCKED: ("blocked", "blocked"),
    views_pb2.MOVE_UNBLOCKED: ("unblocked", "unblocked"),
    views_pb2.MOVE_ASSIGNED: ("filed", "assigned"),
    views_pb2.MOVE_REMOVED: ("released", "removed"),
}
# For whom they are, in the task's thread, and nothing for the channel.
FOR_SOME = (views_pb2.MOVE_ASSIGNED, views_pb2.MOVE_REMOVED)


async def _tell(runtime: Runtime, event: events_pb2.TaskMoved, stored: Stored) -> None:
    if event.move in SAID:
        await post(runtime, notice(event, stored.sequence), stored.sequence)


async def post(runtime: Runtime, request: notices_pb2.PostNoticeRequest, sequence: int, number: int = 0) -> None:
    """Tell the room what a fact at that place in the log did, once; `number` counts the notices of one fact."""
    key = f"notice-{sequence}" + (f"-{number}" if number else "")
    try:
        await runtime.bus.ask(request, notices_pb2.PostNoticeResponse, actor=OF_ITSELF, key=key)
    except Refusal as refusal:
        if refusal.slug not in TOLD:
            raise


def notice(event: events_pb2.TaskMoved, sequence: int) -> notices_pb2.PostNoticeRequest:
    """What is told of a move, and to whom."""
    kind, _ = SAID[event.move]
    lease = event.lease if event.HasField("lease") else event.ended
    told = {
        "task": event.key,
        "kind": kind,
        "thread": event.thread,
        "by": event.by,
        "sequence": sequence,
        "title": event.title,
        "row_kind": event.row_kind,
        "move": views_pb2.Move.Name(event.move).removeprefix("MOVE_").lower(),
        "on": _waited_for(event) or None,
        "answer": _became(event, "answer") or None,
        "note": _note(event) or None,
        "holder": _holder(event) or None,
        "expires_at": clock.rfc3339(clock.to_millis(lease.expires_at)) if event.HasField("lease") else None,
    }
    request = notices_pb2.PostNoticeRequest(
        room_id=event.room_id,
        message_type="notice",
        kind=kind,
        sender_handle=event.by,
        thread=event.thread if event.move in FOR_SOME else "",
        content=line(event),
        metadata_json=json.dumps({name: value for name, value in told.items() if value is not None}),
        for_its_deliveries=event.move in FOR_SOME,
    )
    for handle, reason in _deliveries(event):
        if names.HANDLE.fullmatch(handle) and handle != event.by:  # a document may be for anything
            request.deliveries.add(handle=handle, reason=reason)
    return request


def _deliveries(event: events_pb2.TaskMoved) -> Iterator[tuple[str, rooms_views_pb2.DeliveryReason.ValueType]]:
    """Whom a task is given to; and who held it, or holds it, while another does something to it or its time is over."""
    if event.move in {views_pb2.MOVE_FILED, views_pb2.MOVE_ASSIGNED}:
        for handle in event.assignee.split(", "):
            yield handle, rooms_views_pb2.DELIVERY_REASON_ASSIGNED
    if event.move == views_pb2.MOVE_CLAIMED:
        yield event.lease.holder, rooms_views_pb2.DELIVERY_REASON_ASSIGNED
    if event.HasField("ended") and event.ended.holder != event.lease.holder:
        yield event.ended.holder, rooms_views_pb2.DELIVERY_REASON_LEASE
    if event.move == views_pb2.MOVE_BLOCKED:
        yield event.lease.holder, rooms_views_pb2.DELIVERY_REASON_LEASE


def _holder(event: events_pb2.TaskMoved) -> str:
    """Who holds it then; a claim whose time is over is kept until that is said."""
    is_over = event.lease.expires_at.ToNanoseconds() <= event.at.ToNanoseconds()
    return "" if is_over else event.lease.holder


def _waited_for(event: events_pb2.TaskMoved) -> str:
    """What a task that is blocked by this waits for outside the board; empty when nobody named it."""
    if event.move != views_pb2.MOVE_BLOCKED:
        return ""
    return event.note if event.edit else _became(event, "blocked_by")  # of an edit no fields are told


def _note(event: events_pb2.TaskMoved) -> str:
    """What its mover said to it."""
    return "" if event.edit and event.move == views_pb2.MOVE_BLOCKED else event.note


def _became(event: events_pb2.TaskMoved, field: str) -> str:
    """What a field of the task's document became by a move."""
    fields = json.loads(event.fields_json) if event.fields_json else {}
    return str(fields.get(field) or "")


def line(event: events_pb2.TaskMoved) -> str:
    """What happened, in one line."""
    who, held, note = f"@{event.by}" if event.by else "", event.ended.holder, _note(event)
    _, done = SAID[event.move]
    text = f"{who} {done} {event.key}"
    if event.move == views_pb2.MOVE_EXPIRED:
        text = f"the time of @{held} for {event.key} is over" if held else f"nobody took up {event.key} in time"
    elif event.cause:
        text = f"{event.key} waits no longer: {event.cause} is {event.note or 'closed'}"
    elif event.move == views_pb2.MOVE_CLAIMED and event.lease.holder != event.by:
        text = f"{who} gave {event.key} to @{event.lease.holder}"
    elif event.move in {views_pb2.MOVE_FILED, views_pb2.MOVE_ASSIGNED} and event.assignee:
        named = (f"@{one}" if names.HANDLE.fullmatch(one) else one for one in event.assignee.split(", "))
        text += f" {'for' if event.move == views_pb2.MOVE_FILED else 'to'} {', '.join(named)}"
    elif on := _waited_for(event):
        text += f" on {on[:NOTE_CHARACTERS]}"
    elif answer := _became(event, "answer"):
        text += f": {answer[:NOTE_CHARACTERS]}"
    text += f" — {event.title}" if event.title else ""
    text += f" · {note[:NOTE_CHARACTERS]}" if note and not event.cause else ""
    return plain(text)


def plain(text: str) -> str:
    """A text as one line."""
    shown = (" " if unicodedata.category(character) in BROKEN else character for character in text)
    return " ".join("".join(shown).split())


NOTICES = Reaction("notices", (events_pb2.TaskMoved,), (subjects.of_kind(BOARD, TASK),), _tell)
