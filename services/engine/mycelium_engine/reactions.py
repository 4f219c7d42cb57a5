"""From a mention in the log to a run: the fact is the bell, the engine's queue of deliveries is what is worked on.

A delivery is acknowledged after the start of its run has returned. Whatever happens between, it is given out again,
and the same run is found under its id.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_engine.calls import Call
from mycelium_engine.runs import Runs
from mycelium_kernel import subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
ROOMS = "rooms"
SESSION = "engine"  # one for all replicas: a delivery that one had is no news for another
Post = events_pb2.MessagePosted | events_pb2.MessageAmended


def mentions(runs: Runs) -> Reaction:
    """Posts that name an engine; an engine that joins or is resumed looks at what waits for it."""

    async def run(runtime: Runtime, event: Post | events_pb2.MemberSaved, _stored: Stored) -> None:
        if isinstance(event, events_pb2.MemberSaved):
            member = event.member
            if member.engine_kind and not member.paused:
                await _drain(runtime, runs, event.room_id, member.handle, member.engine_kind)
            return
        for call in event.engines:
            await _drain(runtime, runs, event.room_id, call.queue, call.kind)

    return Reaction(
        "mentions",
        (events_pb2.MessagePosted, events_pb2.MessageAmended, events_pb2.MemberSaved),
        (subjects.all_posts(), subjects.of_kind(ROOMS, "member")),
        run,
    )


def eraser(runs: Runs) -> Reaction:
    """A deleted room's runs go, with all that they hold."""

    async def run(_runtime: Runtime, event: events_pb2.RoomDeleted, _stored: Stored) -> None:
        await runs.erase(event.room_id)

    return Reaction("eraser", (events_pb2.RoomDeleted,), (subjects.of_room(subjects.NAMES),), run)


async def _drain(runtime: Runtime, runs: Runs, room_id: str, queue: str, kind: views_pb2.EngineKind.ValueType) -> None:
    """Start a run for each delivery of the queue, oldest first, and acknowledge it."""
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
