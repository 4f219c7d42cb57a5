"""Tells in the log that runs begin and end, each once: the facts that the board has its rows and its log of runs from.

A run's facts are on a subject of its own. The first is appended expecting none, the last expecting the first, so
whoever is killed between two steps, and however often a step is tried, no run begins or ends twice. A room that was
deleted gets none.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from google.protobuf.message import Message
from temporalio import activity

from mycelium.engine.v1 import events_pb2, runs_pb2
from mycelium.rooms.v1 import service_pb2
from mycelium_engine.calls import Beginning, Call, Ending
from mycelium_kernel import clock, events, headers, subjects
from mycelium_kernel.clock import system_clock
from mycelium_kernel.errors import Refusal, WrongSequence
from mycelium_kernel.service import Actor

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

DEADLINE_S = 10.0
SESSION = "engine"
OUTCOMES = {
    "done": runs_pb2.RUN_OUTCOME_DONE,
    "failed": runs_pb2.RUN_OUTCOME_FAILED,
    "capped": runs_pb2.RUN_OUTCOME_CAPPED,
    "stopped": runs_pb2.RUN_OUTCOME_STOPPED,
}


def subject(room_id: str, run: str) -> str:
    """Subject of a run's facts. `run` is the workflow's id."""
    return subjects.fact("engine", room_id, "run", subjects.digest(run))


def last_told(data: bytes) -> events_pb2.RunEnded:
    """What a run's last fact tells, whichever of the two it is; the first is one that has no end.

    What both tell has the same field in both, which a test holds, so that the type need not be asked for.
    """
    return events_pb2.RunEnded.FromString(data)


class Records:
    """The activities by which workflows tell of themselves."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="record_start")
    async def record_start(self, beginning: Beginning) -> bool:
        """Tell that a run begins; False when there is no message any more that asks for it. Raises `Unavailable`."""
        call = beginning.call
        if (await self._runtime.connection.last(subject(call.room_id, beginning.run)))[0]:
            return True
        request = service_pb2.GetMessageRequest(room=call.room_id, message=call.message_id)
        actor = Actor(call.handle, SESSION)
        try:
            asked = (await self._runtime.bus.ask(request, service_pb2.GetMessageResponse, actor=actor)).message.message
        except Refusal:
            return False
        run = runs_pb2.Run(
            id=subjects.digest(beginning.run),
            engine=call.handle,
            kind=beginning.kind,
            message_id=call.message_id,
            asked_by=asked.sender_handle,
            thread=asked.thread,
            started_at=clock.to_timestamp(self._runtime.clock()),
        )
        await self._append(call, beginning.run, events_pb2.RunStarted(room_id=call.room_id, run=run), 0)
        return True

    @activity.defn(name="record_end")
    async def record_end(self, ending: Ending) -> None:
        """Tell how a run ended, unless it is told, or its room was deleted. Raises `Unavailable`."""
        await self.end(ending)

    async def end(self, ending: Ending) -> bool:
        """The same; whether it is told by this."""
        call = ending.call
        sequence, data = await self._runtime.connection.last(subject(call.room_id, ending.run))
        last = last_told(data)
        if not sequence or last.HasField("ended_at"):
            return False
        event = events_pb2.RunEnded(
            room_id=call.room_id,
            run=last.run,
            outcome=OUTCOMES[ending.outcome],
            reason=ending.reason,
            ended_at=clock.to_timestamp(self._runtime.clock()),
            started=sequence,
        )
        return await self._append(call, ending.run, event, sequence)

    async def _append(self, call: Call, run: str, event: Message, expect: int) -> bool:
        """False when another try was quicker, or the room was erased."""
        stored = {headers.TYPE: events.type_name(event), headers.ACTOR: call.handle, headers.SESSION: SESSION}
        deadline = system_clock() + timedelta(seconds=DEADLINE_S)
        place, data = subject(call.room_id, run), event.SerializeToString()
        try:
            await self._runtime.log.append(place, data, stored, expect=expect, deadline=deadline)
        except WrongSequence:
            return False
        return True
