"""Waits for a task to change hands: what is looked for, when to look, and the answer that tells it.

What is waited for are the notices that the board has said in the room's one order: they stay, so nothing is missed
between two waits, and a wait takes nothing from anybody's queue.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium.board.v1 import finding_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.rooms.v1 import events_pb2, leases_pb2
from mycelium_gateway import shapes
from mycelium_gateway.delivery import Taken, lease_token
from mycelium_kernel import events
from mycelium_kernel.bus import TIMEOUT_S
from mycelium_kernel.errors import Refusal
from mycelium_kernel.tail import RawFact

if TYPE_CHECKING:
    from mycelium_gateway.actor import Call

POSTED = events.type_name(events_pb2.MessagePosted)
REMOVED = events.type_name(memory_pb2.DocumentRemoved)
NOTICE = "notice"


@dataclass(frozen=True)
class Lease:
    """The task that a wait is for, and from where on its notices are wanted: of which moves, and standing where."""

    key: str
    thread: str
    since: int
    after: int


async def find(call: Call, room: str, task: str, since: int | None, after: int) -> Lease:
    """The task that is named. Without `since` it is waited for what is done from this moment on: not if it is over."""
    now = call.gateway.live.position  # as far as this gateway knows; the board may know of more
    request = finding_pb2.FindTaskRequest(room=room, task=task)
    found = (await call.ask(request, finding_pb2.FindTaskResponse)).message
    if since is None and found.closed:
        next_command = f"mycelium memory set {shlex.quote(found.key)} --room {shlex.quote(room)} -m status=open"
        raise Refusal("task.closed", f"{found.key} is {found.closed}, so it changes hands no more", next_command)
    return Lease(found.key, found.thread, max(now, found.sequence) if since is None else since, after)


async def take(call: Call, room: str, lease: Lease, timeout_s: float = TIMEOUT_S) -> Taken | None:
    """The next notice of the task; None when there is none yet. Refused when the task is gone."""
    request = leases_pb2.FindNoticeRequest(room=room, thread=lease.thread, since=lease.since, after=lease.after)
    found = (await call.ask(request, leases_pb2.FindNoticeResponse, timeout_s=timeout_s)).message
    if not found.HasField("message"):
        await _expect(call, room, lease, timeout_s)
        return None
    body = {
        "message": shapes.message(found.message),
        "earlier": [],
        "redelivered": False,
        "reason": "lease",
        "ack": lease_token(found.move),
        "attempt": 1,
        "sequence": found.move,
    }
    return Taken("", "", found.move, body)


async def _expect(call: Call, room: str, lease: Lease, timeout_s: float) -> None:
    """Refuse to wait for a task that was deleted meanwhile."""
    request = finding_pb2.FindTaskRequest(room=room, task=lease.thread)
    try:
        await call.ask(request, finding_pb2.FindTaskResponse, timeout_s=timeout_s)
    except Refusal as refusal:
        if refusal.slug != "task.not_found":
            raise
        raise Refusal(refusal.slug, f"{lease.key} was deleted while you waited", refusal.next) from None


def is_about(lease: Lease, fact: RawFact, event: Any) -> bool:
    """Whether a fact of the room may be what a wait is for; `event` is a post that was decoded already."""
    if fact.type == REMOVED:
        return bool(memory_pb2.DocumentRemoved.FromString(fact.data).key == lease.key)
    if fact.type != POSTED or event.message_type != NOTICE:
        return False
    with contextlib.suppress(ValueError, AttributeError):
        return bool(json.loads(event.metadata_json).get("thread") == lease.thread)
    return False
