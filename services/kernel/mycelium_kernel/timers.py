"""Timers that fire at a moment: scheduled messages in a stream in memory (NATS ADR-51), re-armed by the services.

A timer is a hint, lost with the server; commands look at deadlines themselves, and a service arms its timers again at
start and after each reconnect. Arming the same timer again moves it; at most one fires.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import nats.js.errors
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, RetentionPolicy, StorageType, StreamConfig

from mycelium_kernel import subjects
from mycelium_kernel.connections import Connection, reaching
from mycelium_kernel.durable import Durable
from mycelium_kernel.in_memory import keep

OnDue = Callable[[str, bytes], Awaitable[None]]
KEEP_S = 3600.0  # a due timer that nobody took is of no use any more


class Timers:
    """The timers of one service. `arm` and `cancel` raise `Unavailable` when NATS does not take them."""

    def __init__(self, connection: Connection, service: str) -> None:
        self._connection = connection
        self._service = service

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
        """Fire at `due` (at once when that is past), with `data`; replaces the timer of that room and identifier."""
        moment = due.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        scheduled = {
            "Nats-Schedule": f"@at {moment}",
            "Nats-Schedule-Target": subjects.timer_due(self._service, room, identifier),
            "Nats-Schedule-TTL": f"{int(KEEP_S)}s",
        }
        subject = subjects.timer_set(self._service, room, identifier)
        with reaching("the timers"):
            await self._connection.jetstream.publish(subject, data, headers=scheduled)

    async def cancel(self, room: str, identifier: str) -> None:
        """Forget a timer; nothing happens when there is none."""
        subject = subjects.timer_set(self._service, room, identifier)
        with reaching("the timers"):
            await self._connection.jetstream.purge_stream(subjects.TIMER_STREAM, subject=subject)

    async def follow(
        self, on_due: OnDue, arm: Callable[[], Awaitable[None]] | None, report: Callable[[str, float], None]
    ) -> None:
        """Call `on_due(room, data)` for each timer of this service that is due, until cancelled.

        `arm` is called first, after each reconnect, and when the consumer is gone: the stream may have come back empty.
        """

        async def prepare() -> None:
            await self.prepare()
            if arm:
                await arm()

        async def run(message: Msg) -> None:
            await on_due(subjects.room_of_timer(message.subject), message.data)

        config = ConsumerConfig(
            durable_name=subjects.durable(self._service, "timers"),
            filter_subject=subjects.timers_due(self._service),
            mem_storage=True,
        )
        keep(self._connection, subjects.TIMER_STREAM, self.prepare)
        await Durable(self._connection, subjects.TIMER_STREAM, config, run, prepare, report).follow()
