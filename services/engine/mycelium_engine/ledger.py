"""Keeps in the log what engines have spent in each room: one subject a room, whose last fact holds all of it.

Reads that fact from the stream's leader, decides, and appends expecting that it still is the last; who loses the race
reads and decides again. So it is right with any number of replicas, and after any kill, and needs no tables.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from mycelium.engine.v1 import events_pb2
from mycelium_engine import spending
from mycelium_engine.calls import Limits, Use
from mycelium_engine.spending import State, Verdict
from mycelium_kernel import clock, events, headers, subjects
from mycelium_kernel.clock import system_clock
from mycelium_kernel.errors import Unavailable, WrongSequence

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

DEADLINE_S = 10.0
RACE_S = 0.02  # at most, between a lost race and the next try
TYPE = events.type_name(events_pb2.SpendingSaved)
Decide = Callable[[State | None], State | None]


@dataclass(frozen=True)
class Saved:
    """What stands in a room's last fact, and its place; 0 and None when there is none."""

    sequence: int = 0
    state: State | None = None


class Ledger:
    """The spending of every room."""

    def __init__(self, runtime: Runtime, hub: Limits) -> None:
        self._runtime = runtime
        self.hub = hub

    async def read(self, room_id: str) -> Saved:
        """What has been spent in a room. Raises `Unavailable`."""
        sequence, data = await self._runtime.connection.last(subjects.spending(room_id))
        return Saved(sequence, events_pb2.SpendingSaved.FromString(data).spending if sequence else None)

    async def admit(self, room_id: str, step: int, ask: int, by: str, *, is_priced: bool) -> Verdict:
        """Whether a step may ask the model now; its turn is on disk then. Raises `Unavailable`."""
        verdict = Verdict()

        def decide(state: State | None) -> State | None:
            nonlocal verdict
            verdict = spending.admit(state, self.hub, step, ask, self._runtime.clock(), is_priced=is_priced)
            return verdict.state

        await self.change(room_id, by, decide)
        return verdict

    async def record(self, room_id: str, use: Use, by: str) -> None:
        """Count what a question took, once. Raises `Unavailable`."""
        await self.change(room_id, by, lambda state: spending.record(state, use, self._runtime.clock()))

    async def change(self, room_id: str, by: str, decide: Decide) -> Saved:
        """Save what `decide` makes of the state; what stands then. Raises `Unavailable`, and what `decide` raises.

        None of it saves nothing. A room that was deleted meanwhile gets no fact any more: it would stay for ever.
        """
        until = system_clock() + timedelta(seconds=DEADLINE_S)
        while system_clock() < until:
            saved = await self.read(room_id)
            following = decide(saved.state)
            if following is None:
                return saved
            if not saved.sequence and not await self._is_there(room_id):
                return saved
            try:
                return Saved(await self._append(room_id, by, following, saved.sequence, until), following)
            except WrongSequence:  # another run was quicker
                await asyncio.sleep(random.uniform(0, RACE_S))
        raise Unavailable("what engines spend in this room is being changed by others all the time")

    async def _append(self, room_id: str, by: str, state: State, expect: int, deadline: datetime) -> int:
        now = clock.to_timestamp(self._runtime.clock())
        fact = events_pb2.SpendingSaved(room_id=room_id, spending=state, saved_at=now)
        stored = {headers.TYPE: TYPE, headers.ACTOR: by or "engine", headers.SESSION: "engine"}
        appended = await self._runtime.log.append(
            subjects.spending(room_id), fact.SerializeToString(), stored, expect=expect, deadline=deadline
        )
        return appended.sequence

    async def _is_there(self, room_id: str) -> bool:
        """Whether the log still holds anything of the room: a deleted one's facts are erased."""
        return bool(await self._runtime.connection.last_sequence(subjects.of_room(room_id)))
