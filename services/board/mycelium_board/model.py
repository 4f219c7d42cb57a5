"""The state that commands decide from, how each event changes it, and the words that commands share.

Pure: nothing here reads a clock, a table or the bus.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from mycelium.board.v1 import events_pb2, views_pb2
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Actor, Entity

BOARD = "board"  # the service, as its subjects name it
TASK = "task"
PREFIXES = ("work/", "decisions/", "status/", "failed/")  # a document under one of them is a task
CLOSED = ("resolved", "dismissed")
OPEN = "open"
BLOCKED = "blocked"
REVIEW = "in_review"
WORKING = "in_progress"
BEGUN = (OPEN, WORKING)  # statuses of what somebody can work on now
OF_ITSELF = Actor("board:", "")  # no handle is written so: nobody outside can use up a key of ours

State = events_pb2.TaskState
# After these nothing is left to do in a task; also when an edit did it, of which no field is told.
LAST_MOVES = (
    views_pb2.MOVE_RESOLVED,
    views_pb2.MOVE_PROMOTED,
    views_pb2.MOVE_DISMISSED,
    views_pb2.MOVE_ANSWERED,
    views_pb2.MOVE_REMOVED,
)


class Standing:
    """What two fields of a task say of it, whoever has them."""

    status: str
    blocked_by: str

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to do in it."""
        return self.status in CLOSED

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for something outside the board."""
        return not self.is_closed and (self.status == BLOCKED or bool(self.blocked_by))


@dataclass(frozen=True)
class Task(Standing):
    """A task's document as the tables have it."""

    document_id: str
    key: str
    thread: str
    title: str
    status: str  # after every move, whether or not the document has it by now
    kind: str = ""
    assignee: str = ""
    blocked_by: str = ""


def closes(event: events_pb2.TaskMoved) -> bool:
    """Whether nothing is left to do in a task after that, or it is gone."""
    status = json.loads(event.fields_json).get("status") if event.fields_json else ""
    return status in CLOSED or event.move in LAST_MOVES


def unblocked(task: Task) -> dict[str, None]:
    """What the fields of a task that is closed become besides: who opens it again finds it as if nothing had been."""
    return {"blocked_by": None} if task.blocked_by else {}


def subject(room_id: str, document_id: str) -> str:
    """Subject of a task's facts."""
    return subjects.fact(BOARD, room_id, TASK, document_id)


def live(entity: Entity[State], now: datetime) -> views_pb2.Lease | None:
    """The claim that stands at this moment, with its token; None when nobody holds the task.

    Its end is looked at here and by every read, so whether somebody has said that it is over makes no difference.
    """
    lease = latest(entity)
    return lease if lease and clock.to_millis(lease.expires_at) > clock.millis(now) else None


def latest(entity: Entity[State]) -> views_pb2.Lease | None:
    """The last claim, with its token, even if its time is over; None when it was ended otherwise."""
    state = entity.state
    if state is None or not state.HasField("lease"):
        return None
    lease = views_pb2.Lease()
    lease.CopyFrom(state.lease)
    lease.token = lease.token or entity.sequence
    return lease


def move(_before: State | None, event: events_pb2.TaskMoved) -> State:
    """The state after something was done."""
    return State(lease=event.lease if event.HasField("lease") else None)


def renew(_before: State | None, event: events_pb2.ClaimRenewed) -> State:
    """The state after a renewal, which carries the token."""
    return State(lease=event.lease)
