"""Runs what follows from facts: one durable consumer a reaction, each fact at least once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig

from mycelium_kernel import events, headers, subjects, telemetry
from mycelium_kernel.durable import Durable
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime


async def react(reaction: Reaction, runtime: Runtime) -> None:
    """Run a reaction for every fact of its kinds until cancelled, from the log's first fact on.

    Its place is kept in the log itself, so a new log begins anew. A run that is `Unavailable` is repeated before any
    later fact; another failure lets later facts pass and is told in health. In order for one replica, not across two.
    """
    wanted = {events.type_name(kind) for kind in reaction.on}

    async def run(message: Msg) -> None:
        received = message.headers or {}
        kind = received.get(headers.TYPE, "")
        if kind not in wanted:
            return
        get = received.get
        place = message.metadata.sequence.stream
        stored = Stored(place, message.subject, get(headers.KEY, ""), get(headers.ACTOR, ""), get(headers.SESSION, ""))
        with telemetry.span(f"react {reaction.name}", received):
            await reaction.run(runtime, events.decode(kind, message.data), stored)

    def report(fault: str, for_s: float) -> None:
        runtime.report(reaction.name, fault, for_s)

    config = ConsumerConfig(
        durable_name=subjects.durable(runtime.service.name, reaction.name), filter_subjects=list(reaction.filters)
    )
    await Durable(runtime.connection, subjects.STREAM, config, run, report=report).follow()
