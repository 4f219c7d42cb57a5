"""What follows from a move: the task's document has the fields that the move asks for, once, whatever dies meanwhile.

The command that made the move waits for it (`follow`); should it not come to that, the reaction does it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mycelium.board.v1 import events_pb2
from mycelium.memory.v1 import service_pb2 as memory_pb2
from mycelium_board.model import BOARD
from mycelium_board.projection import key_of_move
from mycelium_kernel import subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)


async def follow(runtime: Runtime, event: events_pb2.TaskMoved, sequence: int) -> None:
    """Change the document as the move asks. The key is the move's own, so that it has one effect."""
    if not event.fields_json:
        return
    request = memory_pb2.WriteDocumentRequest(room=event.room_id, key=event.key, fields_json=event.fields_json)
    try:
        await runtime.bus.ask(
            request, memory_pb2.WriteDocumentResponse, actor=Actor(event.by, ""), key=key_of_move(sequence)
        )
    except Refusal as refusal:  # the document or its room is gone, and the task with it
        LOGGER.info("%s can't be changed as it was moved: %s", event.key, refusal)


async def _react(runtime: Runtime, event: events_pb2.TaskMoved, stored: Stored) -> None:
    await follow(runtime, event, stored.sequence)


FOLLOWER = Reaction("follower", (events_pb2.TaskMoved,), (subjects.of_service(BOARD),), _react)
