"""Timers that fire at a moment: scheduled messages in a stream in memory (NATS ADR-51), re-armed by the services.

A timer is a hint, lost with the server; commands look at deadlines themselves, and a service arms its timers again at
start and after each reconnect. Arming the same timer again moves it; at most one fires.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig

from mycelium_kernel import subjects
from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
OnDue = Callable[[str, bytes], Awaitable[None]]
KEEP_S = 3600.0  # a due timer that nobody took is of no use any more
RETRY_S = 1.0


class Timers:
    """The timers of one service."""

    def __init__(self, connection: Connection, service: str) -> None:
        self._connection = connection
        self._service = service
        self._reader: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Make the stream of timers if it is missing."""
        config = StreamConfig(
            name=subjects.TIMER_STREAM,
            subjects=[subjects.ALL_TIMERS],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.MEMORY,
            num_replicas=self._connection.settings.replicas,
            max_msgs_per_subject=1,
            allow_msg_schedules=True,
            allow_msg_ttl=True,
            allow_rollup_hdrs=True,
        )
        try:
            await self._connection.jetstream.stream_info(subjects.TIMER_STREAM)
        except nats.js.errors.NotFoundError:
            await self._connection.jetstream.add_stream(config)

    async def arm(self, room: str, identifier: str, due: datetime, data: bytes = b"") -> None:
        """Fire at `due`, with `data`; replaces the timer of the same room and identifier."""
        moment = due.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        scheduled = {
            "Nats-Schedule": f"@at {moment}",
            "Nats-Schedule-Target": subjects.timer_due(self._service, room, identifier),
            "Nats-Schedule-TTL": f"{int(KEEP_S)}s",
        }
        subject = subjects.timer_set(self._service, room, identifier)
        await self._connection.jetstream.publish(subject, data, headers=scheduled)

    async def cancel(self, room: str, identifier: str) -> None:
        """Forget a timer; nothing happens when there is none."""
        subject = subjects.timer_set(self._service, room, identifier)
        await self._connection.jetstream.purge_stream(subjects.TIMER_STREAM, subject=subject)

    async def start(self, on_due: OnDue) -> None:
        """Call `on_due(room, data)` for each timer of this service that is due."""
        await self.prepare()
        self._reader = asyncio.create_task(self._read(on_due), name="timers")

    async def stop(self) -> None:
        """Stop calling."""
        if self._reader:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    async def _read(self, on_due: OnDue) -> None:
        durable = f"{self._service}-timers"
        jetstream = self._connection.jetstream
        while True:
            try:
                await self.prepare()
                config = ConsumerConfig(
                    durable_name=durable,
                    filter_subject=subjects.timers_due(self._service),
                    ack_policy=AckPolicy.EXPLICIT,
                    mem_storage=True,
                )
                await jetstream.add_consumer(subjects.TIMER_STREAM, config)
                pull = await jetstream.pull_subscribe_bind(consumer=durable, stream=subjects.TIMER_STREAM)
                while True:
                    with contextlib.suppress(nats.errors.TimeoutError, TimeoutError):
                        for message in await pull.fetch(100, timeout=20):
                            await self._fire(on_due, message)
            except (nats.errors.Error, nats.js.errors.Error, OSError) as error:
                LOGGER.info("timers wait for NATS: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _fire(self, on_due: OnDue, message: Msg) -> None:
        try:
            await on_due(subjects.room_of_timer(message.subject), message.data)
            await message.ack()
        except Exception:
            LOGGER.exception("a due timer failed; it comes again")
            await message.nak(delay=RETRY_S)
