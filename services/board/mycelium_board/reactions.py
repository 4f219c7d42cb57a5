"""What follows from moves and edits, once, whatever dies meanwhile and on however many replicas.

A move's task has in its document what the move asks for. An edit of a task's document is told as a move. Who waited for
a task that is closed or gone waits no longer. The command that made a move waits for the first (`follow`); should it
not come to that, the reaction does it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import Message

from mycelium.board.v1 import events_pb2, service_pb2
from mycelium.memory.v1 import events_pb2 as memory_events_pb2
from mycelium.memory.v1 import moves_pb2
from mycelium_board import lookup, readiness
from mycelium_board.edits import asked_of
from mycelium_board.model import BOARD, OF_ITSELF, PREFIXES, TASK, Task, closes
from mycelium_board.reactions_reservations import close
from mycelium_kernel import subjects
from mycelium_kernel.errors import BUSY, Refusal, Unavailable
from mycelium_kernel.service import Reaction, Stored
from mycelium_kernel.tables import Tables

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
R = TypeVar("R", bound=Message)
Event = memory_events_pb2.DocumentWritten | memory_events_pb2.DocumentRemoved


async def follow(runtime: Runtime, event: events_pb2.TaskMoved, sequence: int) -> None:
    """Change the document as the move asks, after all moves before it. Each has a key, so that it has one effect."""
    if not event.fields_json:
        return
    tables = await _tables(runtime, sequence)
    for request in asked_of(tables, event.room_id, lookup.document_of(event.key), sequence):
        key = f"move-{request.moved.sequence}"
        try:
            await runtime.bus.ask(request, moves_pb2.FollowMoveResponse, actor=OF_ITSELF, key=key)
        except Refusal as refusal:  # the document or its room is gone, or has no room for it
            if refusal.slug == BUSY.slug:
                raise
            LOGGER.info("%s can't be changed as it was moved: %s", request.key, refusal)


async def _after(runtime: Runtime, event: events_pb2.TaskMoved, stored: Stored) -> None:
    """All that follows from a move, side by side: what can't be done holds up nothing else, and all is tried again.

    One reaction rather than three, since from most moves nothing follows, and to be given one costs the most.
    """
    if not event.fields_json and not closes(event):
        return
    steps = follow(runtime, event, stored.sequence), _free(runtime, event, stored), close(runtime, event, stored)
    came_to = await asyncio.gather(*steps, return_exceptions=True)
    errors = [error for error in came_to if error]
    for error in sorted(errors, key=lambda error: isinstance(error, Unavailable)):  # a bug comes before what may pass
        raise error


async def _tell(runtime: Runtime, event: Event, stored: Stored) -> None:
    """What this edit did, and those before it of which nobody has told yet."""
    if not event.key.startswith(PREFIXES):
        return
    document_id = subjects.identifier_of(stored.subject)
    tables = await _tables(runtime, stored.sequence)
    sql = """SELECT sequence, move FROM edit WHERE room_id = ? AND document_id = ? AND sequence <= ?
      ORDER BY sequence, move"""
    for sequence, move in tables.all(sql, event.room_id, document_id, stored.sequence):
        request = service_pb2.RecordEditRequest(
            room_id=event.room_id, document_id=document_id, edit=sequence, move=move
        )
        await _ask(runtime, request, service_pb2.RecordEditResponse, f"edit-{sequence}-{move}")


async def _free(runtime: Runtime, event: events_pb2.TaskMoved, stored: Stored) -> None:
    """Tell who waited for a task that is closed or gone, and waits for nothing else."""
    if not closes(event):
        return
    tables = await _tables(runtime, stored.sequence)
    closed = event.edit or stored.sequence
    task = Task(subjects.identifier_of(stored.subject), event.key, event.thread, event.title, "")
    for waiting in readiness.waited(tables, event.room_id, task, closed):
        request = service_pb2.UnblockTaskRequest(
            room_id=event.room_id, document_id=waiting.document_id, cause=event.key, closed=closed, by=event.by
        )
        key = f"free-{stored.sequence}-{waiting.document_id}"
        await _ask(runtime, request, service_pb2.UnblockTaskResponse, key)


async def _tables(runtime: Runtime, sequence: int) -> Tables:
    """The tables, which hold a fact by now."""
    assert runtime.projector is not None
    await runtime.projector.wait(sequence)
    return runtime.projector.tables


async def _ask(runtime: Runtime, request: Message, response: type[R], key: str) -> None:
    """Ask the board itself. So many may move one task at once that it has to be tried again."""
    try:
        await runtime.bus.ask(request, response, actor=OF_ITSELF, key=key)
    except Refusal as refusal:
        if refusal.slug == "conflict":
            raise Unavailable("others move the same task") from None
        if refusal.slug != "key.reused":  # told before, as of another state
            raise


AFTER = Reaction("moves", (events_pb2.TaskMoved,), (subjects.of_kind(BOARD, TASK),), _after)
TELLER = Reaction(
    "edits",
    (memory_events_pb2.DocumentWritten, memory_events_pb2.DocumentRemoved),
    (subjects.of_kind("memory", "document"),),
    _tell,
)
