"""Runs that Temporal ended or lost, so that they could not tell of it: their end is told here, as stopped.

Somebody terminated the workflow, or its database is gone. Every replica knows from the log which runs are under way,
and asks Temporal about each of them now and then, since nothing tells of such an end. A run tells of its end before it
is over, so none is taken for stopped that ended by itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mycelium.engine.v1 import events_pb2, runs_pb2
from mycelium_engine.calls import Call, Ending
from mycelium_engine.records import Records
from mycelium_engine.runs import Runs
from mycelium_kernel import events, subjects
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.tail import RawFact, Tail

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOOK_S = 30.0
LOOK_BACK = 10_000  # facts before the log's end: runs that began earlier and were lost since stay under way
REASON = "run.lost"
STARTED, ENDED = map(events.type_name, (events_pb2.RunStarted, events_pb2.RunEnded))


class Strays:
    """The runs that are under way, by room and id."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._open: dict[tuple[str, str], runs_pb2.Run] = {}

    async def watch(self, runtime: Runtime) -> None:
        """Follow the log and look after what is under way until cancelled. A worker of the kernel."""
        last = await runtime.connection.last_sequence(None)
        tail = Tail(runtime.connection, (subjects.of_kind("engine", "run"),), self.hear)
        try:
            await tail.start(max(0, last - LOOK_BACK))
            while True:
                await asyncio.sleep(LOOK_S)
                try:
                    await self.look(runtime)
                except Unavailable as error:
                    runtime.report("strays", f"wait: {error}", LOOK_S * 2)
        finally:
            await tail.stop()

    def hear(self, facts: list[RawFact]) -> None:
        """Know what is under way after these."""
        for fact in facts:
            if fact.type == STARTED:
                began = events_pb2.RunStarted.FromString(fact.data)
                self._open[began.room_id, began.run.id] = began.run
            elif fact.type == ENDED:
                ended = events_pb2.RunEnded.FromString(fact.data)
                self._open.pop((ended.room_id, ended.run.id), None)

    async def look(self, runtime: Runtime) -> None:
        """Tell of each that Temporal does not run that it was stopped. Raises `Unavailable`."""
        for (room_id, identifier), run in list(self._open.items()):
            call = Call(room_id, run.message_id, run.engine)
            workflow_id = await self._runs.find_over(run.kind, call)
            if workflow_id:
                await Records(runtime).end(Ending(call, workflow_id, "stopped", REASON))
                self._open.pop((room_id, identifier), None)
