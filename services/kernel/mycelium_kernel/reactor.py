"""Runs what follows from facts: one durable consumer a reaction, shared by all replicas, each fact at least once."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig

from mycelium_kernel import events, headers, subjects, telemetry
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
FETCH = 50
FETCH_S = 20.0
ACK_WAIT_S = 60.0
RETRY_S = 1.0


async def react(reaction: Reaction, runtime: Runtime) -> None:
    """Run a reaction for every fact of its kinds, in order, until cancelled. A fact whose run fails comes again."""
    durable = f"{runtime.service.name}-{reaction.name}"
    config = ConsumerConfig(
        durable_name=durable,
        filter_subjects=list(reaction.filters),
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT_S,
        max_ack_pending=FETCH,
    )
    jetstream = runtime.connection.jetstream
    await jetstream.add_consumer(subjects.STREAM, config)
    wanted = {events.type_name(kind) for kind in reaction.on}
    pull = await jetstream.pull_subscribe_bind(consumer=durable, stream=subjects.STREAM)
    try:
        while True:
            try:
                messages = await pull.fetch(FETCH, timeout=FETCH_S)
            except (TimeoutError, nats.errors.TimeoutError):
                continue
            except (nats.errors.Error, nats.js.errors.Error) as error:
                LOGGER.info("reaction %s waits for the log: %s", reaction.name, error)
                await asyncio.sleep(RETRY_S)
                continue
            for message in messages:
                await _run(reaction, runtime, message, wanted)
    finally:
        if runtime.connection.client.is_connected:
            await pull.unsubscribe()


async def _run(reaction: Reaction, runtime: Runtime, message: Msg, wanted: set[str]) -> None:
    received = message.headers or {}
    kind = received.get(headers.TYPE, "")
    try:
        if kind in wanted:
            stored = Stored(
                message.metadata.sequence.stream,
                message.subject,
                received.get(headers.KEY, ""),
                received.get(headers.ACTOR, ""),
                received.get(headers.SESSION, ""),
            )
            with telemetry.span(f"react {reaction.name}", received):
                await reaction.run(runtime, events.decode(kind, message.data), stored)
        await message.ack()
    except Exception:
        LOGGER.exception("reaction %s failed; the fact comes again", reaction.name)
        await message.nak(delay=RETRY_S)
