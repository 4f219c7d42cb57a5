"""What the engine service does about others' facts, once for all replicas; `mentions` is what each of them does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium.rooms.v1 import events_pb2
from mycelium_engine.runs import Runs
from mycelium_kernel import subjects
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime


def eraser(runs: Runs) -> Reaction:
    """A deleted room's runs go, with all that they hold."""

    async def run(_runtime: Runtime, event: events_pb2.RoomDeleted, _stored: Stored) -> None:
        await runs.erase(event.room_id)

    return Reaction("eraser", (events_pb2.RoomDeleted,), (subjects.of_room(subjects.NAMES),), run)
