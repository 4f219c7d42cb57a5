"""From a mention in the log to a run: the fact is the bell, the engine's queue of deliveries is what is worked on.

Every replica hears every bell at the log's end, and keeps no place on disk: a cursor there would be one more sync a
post. When it starts it looks at the queue of every engine that there is. A delivery is acknowledged after the start
of its run has returned; whatever happens between, it is given out again, and the same run is found under its id, also
by another replica.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_engine.calls import Call
from mycelium_engine.runs import Runs
from mycelium_kernel import events, subjects
from mycelium_kernel.errors import Refusal, Unavailable
from mycelium_kernel.service import Actor
from mycelium_kernel.tail import RawFact, Tail

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
ROOMS = "rooms"
SESSION = "engine"  # one for all replicas: a delivery that one had is no news for another
LOOK_BACK = 10_000  # facts before the log's end whose bells are rung again at the start: queues of seats, too
RETRY_S = (0.1, 5.0)  # before a queue that could not be worked on is tried again: first, longest
BELLS = frozenset(map(events.type_name, (events_pb2.MessagePosted, events_pb2.MessageAmended, events_pb2.MemberSaved)))


class Mentions:
    """The queues of engines that may hold something, and the worker that empties them."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._due: dict[
            tuple[str, str], views_pb2.EngineKind.ValueType
        ] = {}  # by room and queue, in the order of their bells
        self._rung = asyncio.Event()

    async def work_on_mentions(self, runtime: Runtime) -> None:
        """Follow the log and empty queues until cancelled. A worker of the kernel: started again when it fails."""
        connection = runtime.connection
        last = await connection.last_sequence(None)
        members = Tail(connection, (subjects.of_kind(ROOMS, "member"),), self._hear)
        posts = Tail(connection, (subjects.all_posts(),), self._hear)
        try:
            await members.start(0)
            await posts.start(max(0, last - LOOK_BACK))
            await self._work(runtime)
        finally:
            await members.stop()
            await posts.stop()

    def _hear(self, facts: list[RawFact]) -> None:
        for fact in facts:
            if fact.type in BELLS:
                self._ring(events.decode(fact.type, fact.data))

    def _ring(self, event: Any) -> None:
        """A post that names engines; an engine that joins or is resumed looks at what waits for it."""
        if isinstance(event, events_pb2.MemberSaved):
            if event.member.engine_kind and not event.member.paused:
                self._due[event.room_id, event.member.handle] = event.member.engine_kind
        else:
            self._due.update({(event.room_id, call.queue): call.kind for call in event.engines})
        if self._due:
            self._rung.set()

    async def _work(self, runtime: Runtime) -> None:
        pause_s = RETRY_S[0]
        while True:
            await self._rung.wait()
            self._rung.clear()
            while self._due:
                of = next(iter(self._due))
                kind = self._due.pop(of)
                try:
                    await drain(runtime, self._runs, *of, kind)
                except Unavailable as error:
                    self._due.setdefault(of, kind)
                    runtime.report("mentions", f"wait: {error}", pause_s * 2)
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, RETRY_S[1])
                else:
                    pause_s = RETRY_S[0]


async def drain(runtime: Runtime, runs: Runs, room_id: str, queue: str, kind: views_pb2.EngineKind.ValueType) -> None:
    """Start a run for each delivery of the queue, oldest first, and acknowledge it. Raises `Unavailable`."""
    handle, _, seat = queue.partition("#")
    actor = Actor(handle, SESSION)
    while True:
        take = service_pb2.TakeDeliveryRequest(room=room_id, seat=seat)
        try:
            taken = (await runtime.bus.ask(take, service_pb2.TakeDeliveryResponse, actor=actor)).message
            if not taken.message_id:
                return
            if not await runs.start(kind, Call(room_id, taken.message_id, handle)):
                return
            mark = service_pb2.MarkDeliveryRequest(
                room=room_id, message=taken.message_id, seat=seat, state=views_pb2.DELIVERY_STATE_ACKNOWLEDGED
            )
            await runtime.bus.ask(mark, service_pb2.MarkDeliveryResponse, actor=actor)
        except Refusal as refusal:  # the room or the engine is gone: there is nobody to answer
            LOGGER.info("a mention of an engine is left: %s", refusal.slug)
            return
