"""Says which task is meant, to who does something beside the board with it: waits for it, talks in its thread."""

from __future__ import annotations

from mycelium.board.v1 import finding_pb2
from mycelium_board import lookup
from mycelium_board.model import State, subject
from mycelium_kernel import rooms_seen
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables


def find_task(tables: Tables, request: finding_pb2.FindTaskRequest, context: Context) -> finding_pb2.FindTaskResponse:
    """The sequence is that of the task's own last fact, so whatever is done to it later has a greater one."""
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task)
    sequence = tables.entity(subject(room.id, task.document_id), State).sequence
    closed = task.status if task.is_closed else ""
    return finding_pb2.FindTaskResponse(key=task.key, thread=task.thread, sequence=sequence, closed=closed)
