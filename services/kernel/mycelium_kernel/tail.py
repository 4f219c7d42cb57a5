"""Reads the log: as a stream without end (`Tail`), or a page of it (`read`), for queries about what was long ago.

A tail gives facts in order, each once, for ever, through restarts and lost connections of NATS. The projector of each
service and the gateway's live streams use it. A push consumer without acknowledgements; its own sequence shows a gap,
its heartbeat shows a silent loss, and either makes a new consumer after the last fact seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from mycelium_kernel import headers, subjects, tasks
from mycelium_kernel.connections import NATS_ERRORS, Connection, reaching
from mycelium_kernel.errors import words

LOGGER = logging.getLogger(__name__)
PAGE_BYTES = 2 * 1024 * 1024
READ_S = 5.0
HEARTBEAT_S = 1.0
SILENCE_S = 3.5  # more than three heartbeats missed: the consumer is gone


@dataclass(frozen=True)
class RawFact:
    """A fact as the log holds it, not decoded yet. `time` is when it was stored, in nanoseconds since 1970."""

    sequence: int
    subject: str
    type: str
    data: bytes
    headers: dict[str, str]
    time: int = 0


@dataclass(frozen=True)
class Part:
    """A part of the log: facts under `filters`, after a sequence, so many at most. A page also ends at 2 MB."""

    filters: tuple[str, ...]
    after: int
    limit: int


@dataclass(frozen=True)
class Page:
    """The facts of a part in the log's order; `last` is the sequence of the last fact under its filters."""

    facts: list[RawFact]
    last: int


async def read(connection: Connection, part: Part) -> Page:
    """Read a part of the log. It holds what was acknowledged before this call. Raises `Unavailable`."""
    last = max([await connection.last_sequence(subject) for subject in part.filters])
    if part.after >= last:
        return Page([], last)
    with reaching("the log"):
        config = _from(part.after, part.filters, inactive_threshold=READ_S)
        info = await connection.jetstream.add_consumer(subjects.STREAM, config)
        try:
            facts = await _fetch(connection, info.name, {"batch": part.limit, "max_bytes": PAGE_BYTES})
            if not facts:  # one fact is larger than a page
                facts = await _fetch(connection, info.name, {"batch": 1})
        finally:
            with contextlib.suppress(*NATS_ERRORS):
                await connection.jetstream.delete_consumer(subjects.STREAM, info.name)
    return Page(facts, last)


async def _fetch(connection: Connection, consumer: str, wanted: dict[str, int]) -> list[RawFact]:
    """The next facts of a consumer, as many as there are now."""
    client = connection.client
    subscription = await client.subscribe(client.new_inbox())
    facts: list[RawFact] = []
    try:
        asked = json.dumps({**wanted, "no_wait": True}).encode()
        await client.publish(subjects.next_message(subjects.STREAM, consumer), asked, reply=subscription.subject)
        while len(facts) < wanted["batch"]:
            message = await subscription.next_msg(timeout=READ_S)
            if not message.reply:  # its status says that there are no more, or that the next one is too large
                break
            facts.append(_fact(message))
    finally:
        await subscription.unsubscribe()
    return facts


def _from(after: int, filters: tuple[str, ...], **options: Any) -> ConsumerConfig:
    """A consumer in memory that begins after a place, and whose facts nobody acknowledges."""
    return ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        filter_subjects=list(filters),
        ack_policy=AckPolicy.NONE,
        mem_storage=True,
        num_replicas=1,
        **options,
    )


class Tail:
    """Follows the facts of `filters`. `on_facts` is called in the event loop with one or more facts, in order.

    `on_facts` must not raise: a fact is handed over once, `turns` turns of the loop after it came. `live` says that
    nothing is known to be missing.
    """

    def __init__(
        self,
        connection: Connection,
        filters: tuple[str, ...],
        on_facts: Callable[[list[RawFact]], None],
        turns: int = 1,
    ) -> None:
        self._connection = connection
        self._filters = filters
        self._on_facts = on_facts
        self._turns = turns
        self._subscription: Subscription | None = None
        self._consumer = ""
        self._delivered = 0
        self._heard = 0.0
        self._stale = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._batch: list[RawFact] = []
        self.position = 0
        self.live = False

    async def start(self, after: int | None) -> None:
        """Follow what comes after sequence `after`; None begins with what is stored from now on."""
        if after is None:
            after = await self._connection.last_sequence(None)
        self.position = after
        await self._subscribe()
        self._connection.on_reconnect(self._stale.set)
        self._keeper = asyncio.create_task(self._keep(), name="tail")

    async def stop(self) -> None:
        """Stop following."""
        self._connection.off_reconnect(self._stale.set)
        await tasks.end([self._keeper])
        await self._unsubscribe()
        self._batch.clear()

    async def _subscribe(self) -> None:
        client = self._connection.client
        inbox = client.new_inbox()
        self._delivered = 0
        self._subscription = await client.subscribe(
            inbox, cb=self._on_message, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        config = _from(
            self.position,
            self._filters,
            max_deliver=1,
            deliver_subject=inbox,
            flow_control=True,
            idle_heartbeat=HEARTBEAT_S,
            inactive_threshold=30.0,
        )
        info = await self._connection.jetstream.add_consumer(subjects.STREAM, config)
        self._consumer = info.name
        self._heard = asyncio.get_running_loop().time()
        self.live = True

    async def _unsubscribe(self) -> None:
        self.live = False
        subscription, self._subscription = self._subscription, None
        if subscription is None or self._connection.client.is_closed:
            return
        with contextlib.suppress(*NATS_ERRORS):
            await subscription.unsubscribe()
            consumer, self._consumer = self._consumer, ""
            if consumer and self._connection.client.is_connected:  # none is there yet when a start was ended midway
                await self._connection.jetstream.delete_consumer(subjects.STREAM, consumer)

    async def _keep(self) -> None:
        """Make the consumer anew whenever it is stale."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._stale.wait()
            silent = asyncio.get_running_loop().time() - self._heard > SILENCE_S
            if not self._stale.is_set() and not silent:
                continue
            self._stale.clear()
            try:
                await self._unsubscribe()
                await self._subscribe()
            except NATS_ERRORS as error:
                LOGGER.info("tail waits for the log: %s", words(error))
                self._stale.set()
                await asyncio.sleep(0.1)

    async def _on_message(self, message: Msg) -> None:
        if self._subscription is None or message.sid != self._subscription._id:  # noqa: SLF001 - of an older consumer
            return
        self._heard = asyncio.get_running_loop().time()
        if message.reply.startswith("$JS.ACK."):
            self._on_fact(message)
        elif message.reply:  # a flow control request: answering it says that all before it was handled
            self._flush()
            await message.respond(b"")
        else:
            await self._on_heartbeat(message.headers or {})

    def _on_fact(self, message: Msg) -> None:
        fact, delivered = _fact(message), _numbers(message.reply)[1]
        if delivered != self._delivered + 1:
            self.live = False
            self._stale.set()
            return
        self._delivered = delivered
        if fact.sequence <= self.position:
            return
        self.position = fact.sequence
        self._batch.append(fact)
        if len(self._batch) == 1:
            self._soon(self._turns)

    async def _on_heartbeat(self, received: dict[str, str]) -> None:
        stalled = received.get("Nats-Consumer-Stalled")
        if stalled:  # the server waits for an answer to a flow control request that was lost
            await self._connection.client.publish(stalled)
        if int(received.get("Nats-Last-Consumer", self._delivered)) > self._delivered:
            self.live = False
            self._stale.set()

    def _soon(self, turns: int) -> None:
        """Hand over after so many turns of the loop."""
        following = self._flush if turns <= 1 else functools.partial(self._soon, turns - 1)
        asyncio.get_running_loop().call_soon(following)

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            try:
                self._on_facts(batch)
            except Exception:
                LOGGER.exception("facts %d to %d were not taken", batch[0].sequence, batch[-1].sequence)


def _fact(message: Msg) -> RawFact:
    stored = message.headers or {}
    sequence, _delivered, time = _numbers(message.reply)
    return RawFact(sequence, message.subject, stored.get(headers.TYPE, ""), message.data, stored, time)


def _numbers(reply: str) -> tuple[int, int, int]:
    """Stream and consumer sequence of a delivered message, and its time (NATS ADR-15: nine tokens, or twelve)."""
    tokens = reply.split(".")
    offset = 5 if len(tokens) == 9 else 7  # with a domain
    return int(tokens[offset]), int(tokens[offset + 1]), int(tokens[offset + 2])
