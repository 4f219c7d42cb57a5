"""Messages of a stream for whoever must handle each at least once: reactions and due timers.

One durable consumer on the server, shared by all replicas of a service, keeps the place. Messages come one at a time,
so that none waits in a process that dies. One whose handling is `Unavailable` is tried again in its place; one that
fails otherwise is a bug: it comes again later, ever more seldom, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nats.js.errors
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig

from mycelium_kernel import events, headers, subjects, tasks, telemetry
from mycelium_kernel.connections import NATS_ERRORS, Connection
from mycelium_kernel.errors import BUSY, Refusal, Unavailable, words
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
ACK_WAIT_S = 12.0  # after this long without a sign the message goes to another replica
SIGNS = 3  # in that time, that a message is still in work
EXPIRES_S = 30.0
HEARTBEAT_S = 1.0
SILENCE_S = 3.5  # more than three heartbeats missed: the request is lost
RETRY_S = (0.1, 5.0)  # between tries in place: first, longest
AGAIN_S = (0.25, 60.0)  # before a message that failed comes again: half the first, longest
REQUEST_OVER = {"404", "408"}


async def _nothing() -> None:
    return


def _unseen(_fault: str, _for_s: float) -> None:
    return


@dataclass
class Durable:
    """One durable consumer. `run` handles a message; `prepare` is called before each new start, after a reconnect too.

    `report(fault, for_s)` is told of a failure and how long it stands, and of its end by an empty text.
    """

    connection: Connection
    stream: str
    config: ConsumerConfig
    run: Callable[[Msg], Awaitable[None]]
    prepare: Callable[[], Awaitable[None]] = _nothing
    report: Callable[[str, float], None] = _unseen

    def __post_init__(self) -> None:
        self.config.ack_policy = AckPolicy.EXPLICIT
        self.config.ack_wait = ACK_WAIT_S
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()

    async def follow(self) -> None:
        """Handle messages until cancelled, through restarts of NATS and whatever becomes of the consumer."""
        self.connection.on_reconnect(self._reconnected)
        try:
            while True:
                try:
                    await self.prepare()
                    await self.connection.jetstream.add_consumer(self.stream, self.config)
                    await self._pull()
                except (Unavailable, *NATS_ERRORS) as error:
                    LOGGER.info("%s waits for NATS: %s", self.config.durable_name, words(error))
                    await asyncio.sleep(RETRY_S[0])
        finally:
            self.connection.off_reconnect(self._reconnected)

    def _reconnected(self) -> None:
        self._arrived.put_nowait(None)

    async def _pull(self) -> None:
        """Ask for one message after the other; returns when the connection was lost meanwhile."""
        client = self.connection.client
        arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._arrived = arrived

        async def arrive(message: Msg) -> None:
            arrived.put_nowait(message)

        subscription = await client.subscribe(client.new_inbox(), cb=arrive)
        subject = subjects.next_message(self.stream, self.config.durable_name or "")
        wanted = {"batch": 1, "expires": int(EXPIRES_S * 1e9), "idle_heartbeat": int(HEARTBEAT_S * 1e9)}
        asked = json.dumps(wanted).encode()
        try:
            connected = True
            while connected:
                await client.publish(subject, asked, reply=subscription.subject)
                connected = await self._take()
        finally:
            with contextlib.suppress(*NATS_ERRORS):
                await subscription.unsubscribe()

    async def _take(self) -> bool:
        """Handle what one request brings. False: the connection was lost, and the request with it."""
        while True:
            async with asyncio.timeout(SILENCE_S):
                message = await self._arrived.get()
            if message is None:
                return False
            if message.reply:
                await self._handle(message)
                return True
            status = (message.headers or {}).get("Status", "")
            if status in REQUEST_OVER:
                return True
            if status != "100":  # no heartbeat: the consumer was deleted, or has no leader
                raise nats.js.errors.Error(f"{status} {(message.headers or {}).get('Description', '')}")

    async def _handle(self, message: Msg) -> None:
        keepers: list[asyncio.Task[None]] = []

        def keep() -> None:
            keepers.append(asyncio.create_task(_keep(message), name="durable-keeper"))

        # Few messages take so long that they need one.
        late = asyncio.get_running_loop().call_later(ACK_WAIT_S / SIGNS, keep)
        try:
            await self._run(message)
        except asyncio.CancelledError:
            with contextlib.suppress(*NATS_ERRORS):
                await message.nak()  # another replica, or the next start, gets it at once
            raise
        finally:
            late.cancel()
            if keepers:
                await tasks.end(keepers)

    async def _run(self, message: Msg) -> None:
        place, tries = message.metadata.sequence.stream, message.metadata.num_delivered
        pause_s = RETRY_S[0]
        while True:
            try:
                await self.run(message)
            except Unavailable as error:
                self.report(f"message {place} waits: {error}", pause_s * 2)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, RETRY_S[1])
            except Exception as error:
                LOGGER.exception("%s failed on message %d, which comes again", self.config.durable_name, place)
                delay_s = min(AGAIN_S[0] * 2 ** min(tries, 10), AGAIN_S[1])
                self.report(f"message {place} failed {tries} times: {type(error).__name__}", delay_s * 2 + ACK_WAIT_S)
                await message.nak(delay=delay_s)
                return
            else:
                await message.ack()
                if tries > 1 or pause_s > RETRY_S[0]:
                    self.report("", 0)
                return


async def _keep(message: Msg) -> None:
    """Tell the server that a message is still in work, so that no other replica gets it."""
    while True:
        with contextlib.suppress(*NATS_ERRORS):
            await message.in_progress()
        await asyncio.sleep(ACK_WAIT_S / SIGNS)


async def react(reaction: Reaction, runtime: Runtime) -> None:
    """Run a reaction for every fact of its kinds until cancelled, from the log's first fact on.

    Its place is kept in the log itself, so a new log begins anew. A run that is `Unavailable`, or meets a service with
    too much to do, is repeated before any later fact; another failure lets later facts pass and is told in health. In
    order for one replica, not across two.
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
            try:
                await reaction.run(runtime, events.decode(kind, message.data), stored)
            except Refusal as refusal:
                if refusal.slug == BUSY.slug:
                    raise Unavailable(refusal.detail) from None
                raise

    def report(fault: str, for_s: float) -> None:
        runtime.report(reaction.name, fault, for_s)

    config = ConsumerConfig(
        durable_name=subjects.durable(runtime.service.name, reaction.name), filter_subjects=list(reaction.filters)
    )
    await Durable(runtime.connection, subjects.STREAM, config, run, report=report).follow()
