"""Long waits: a call that asks for its next delivery and stays until there is one.

A wait registers here first and asks then, so that a mention is either in the first answer or rings its bell. The
bell is the log's end in this process (`live.py`); after each ring, and after every reconnection, the wait asks
again. What a client has received is told to the rooms service only once the answer was written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from prometheus_client import Gauge

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_gateway import delivery, frames, leases
from mycelium_gateway.delivery import Taken
from mycelium_gateway.keys import Keys, OpenWait
from mycelium_gateway.leases import Lease
from mycelium_gateway.presence import Presence
from mycelium_kernel import events, names
from mycelium_kernel.clock import new_id
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor
from mycelium_kernel.tail import RawFact

if TYPE_CHECKING:
    from mycelium_gateway.actor import Call
    from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
WAITS = Gauge("mycelium_open_waits", "Open long waits.")
POSTED = events.type_name(events_pb2.MessagePosted)
AMENDED = events.type_name(events_pb2.MessageAmended)
SAVED = events.type_name(events_pb2.MemberSaved)
REMOVED = events.type_name(events_pb2.MemberRemoved)
CHANGED = events.type_name(events_pb2.RoomChanged)
RINGING = frozenset({POSTED, AMENDED, SAVED, REMOVED, CHANGED})
LAST_S = 0.5  # before its end, a wait promises nothing any more: a post of that moment may be stored too late for it
RETRY_S = (0.1, 2.0)  # between asks while the rooms service is away: first, longest
STOPPING = "the hub is stopping"


@dataclass(frozen=True)
class Wanted:
    """What a wait is for. `room` and `thread` stand as the caller wrote them. With `lease` no mention is taken."""

    room: str
    seat: str
    thread: str
    acknowledge: str
    timeout_s: float
    lease: Lease | None = None

    def new_wait_id(self) -> str:
        """The id of a wait for this; its end says what alone wakes it, so that nobody is told `woken` who was not."""
        only = "lease" if self.lease else self.thread.lower() if names.is_id(self.thread.lower()) else ""
        return "-".join(part.replace("-", "") for part in (new_id(), only) if part)


@dataclass(eq=False)
class Wait:
    """One open wait and its bell."""

    told: OpenWait
    lease: Lease | None = None
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    def promise_nothing(self) -> OpenWait:
        """From now on nobody is told `woken` on its account; returns what was told before."""
        before, self.told = self.told, replace(self.told, wait_id=f"{self.told.wait_id}-last")
        return before


class Waits:
    """The open waits of this process, by room."""

    def __init__(self, connection: Connection, keys: Keys, presence: Presence) -> None:
        self._connection = connection
        self._keys = keys
        self._presence = presence
        self._open: dict[str, set[Wait]] = {}
        self._marks: dict[Actor, set[asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def start(self) -> None:
        """Look again after every reconnection."""
        self._connection.on_reconnect(self.ring_all)

    async def stop(self) -> None:
        """Finish what must be told; waits have ended before."""
        self._connection.off_reconnect(self.ring_all)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)

    def end_all(self) -> None:
        """End every open wait now, and those that would begin: their callers come back to the next process."""
        self._stopping = True
        self.ring_all()

    def ring_all(self) -> None:
        """Let every wait look again."""
        for waits in self._open.values():
            for wait in waits:
                wait.bell.set()

    def on_fact(self, room_id: str, fact: RawFact) -> None:
        """Ring the bells that a fact is for."""
        waits = self._open.get(room_id)
        if not waits:
            return
        event: Any = events.decode(fact.type, fact.data) if fact.type in RINGING else None
        for wait in waits:
            if wait.lease and leases.is_about(wait.lease, fact, event):
                wait.bell.set()
        if fact.type in {POSTED, AMENDED}:
            _ring({wait for wait in waits if not wait.lease}, set(event.deliver_to))
        elif fact.type == SAVED:
            _ring(waits, _queues_of(waits, event.member.handle))
        elif fact.type == REMOVED:
            _ring(waits, _queues_of(waits, event.handle))
        elif fact.type in {CHANGED, frames.ROOM_DELETED}:
            _ring(waits, {wait.told.queue for wait in waits})

    async def next(self, call: Call, wanted: Wanted) -> Taken | None:
        """The caller's next delivery, as soon as there is one; None when none came in time.

        Raises `Refusal` when the room goes meanwhile, `Unavailable` when the hub stops.
        """
        room = await call.ask(service_pb2.GetRoomRequest(room=wanted.room), service_pb2.GetRoomResponse)
        await self.settled(call.actor)
        room_id = room.message.room.id
        queue = names.queue(call.actor.handle, wanted.seat)
        wait = Wait(OpenWait(room_id, queue, wanted.new_wait_id(), wanted.timeout_s), wanted.lease)
        self._open.setdefault(room_id, set()).add(wait)
        WAITS.inc()
        self._presence.opened(wait.told)
        try:
            return await self._wait(call, wait, wanted)
        finally:
            WAITS.dec()
            self._presence.closed(wait.told)
            self._open[room_id].discard(wait)
            if not self._open[room_id]:
                del self._open[room_id]
            self._later(self._keys.closed(wait.told))

    async def _wait(self, call: Call, wait: Wait, wanted: Wanted) -> Taken | None:
        ends = asyncio.get_running_loop().time() + wanted.timeout_s
        if wanted.timeout_s <= LAST_S:
            wait.promise_nothing()
        if wanted.timeout_s:
            await self._keys.opened(wait.told)
        taken = await _take_first(call, wanted) or await self._until(ends - LAST_S, call, wait, wanted, ends)
        if taken or not wanted.timeout_s:  # a call that only looks
            return taken
        if wanted.timeout_s > LAST_S:
            before = wait.promise_nothing()
            await asyncio.wait({self._later(self._withdraw(before, wait.told))})  # also if the client leaves now
        taken = await self._until(ends, call, wait, wanted, ends)
        return taken or await self._take_open(call, wanted, ends)

    async def _until(self, until: float, call: Call, wait: Wait, wanted: Wanted, ends: float) -> Taken | None:
        """Look after each ring until a moment of the loop's clock; None when nothing came."""
        while True:
            self._go_on()
            try:
                async with asyncio.timeout_at(until):
                    await wait.bell.wait()
            except TimeoutError:
                return None
            wait.bell.clear()
            self._go_on()
            if taken := await self._look_again(call, wait, wanted, ends):
                return taken

    def _go_on(self) -> None:
        """Raises `Unavailable` when the hub stops."""
        if self._stopping:
            raise Unavailable(STOPPING)

    async def _withdraw(self, before: OpenWait, last: OpenWait) -> None:
        """The time is nearly over. A mention that was told `woken` on this wait's account comes before its end."""
        await self._keys.opened(last)
        await self._keys.closed(before)

    async def _look_again(self, call: Call, wait: Wait, wanted: Wanted, ends: float) -> Taken | None:
        """Ask after a ring. Meanwhile nothing is promised about this wait: a mention that comes now may be too late."""
        closing = asyncio.create_task(self._keys.closed(wait.told))
        try:
            taken = await self._take_open(call, wanted, ends)
        finally:
            await closing
        if taken is None:
            await self._keys.opened(wait.told)
        return taken

    async def _take_open(self, call: Call, wanted: Wanted, ends: float) -> Taken | None:
        """Ask once more in a call that has been open for a while: its room may have gone."""
        try:
            return await self._take_patiently(call, replace(wanted, acknowledge=""), ends)
        except Refusal as refusal:
            if refusal.slug != "room.not_found":
                raise
            detail = f"room {wanted.room!r} was deleted while you waited, or is no longer for you"
            raise Refusal(refusal.slug, detail, refusal.next) from None

    async def _take_patiently(self, call: Call, wanted: Wanted, ends: float) -> Taken | None:
        """Ask for as long as the wait lasts while the rooms service, or NATS, is away."""
        loop = asyncio.get_running_loop()
        pause_s = RETRY_S[0]
        while True:
            left = ends - loop.time()
            try:
                await call.confirm(wanted.room)
                return await _take_next(call, wanted, max(2.0, min(10.0, left)))
            except Unavailable as error:
                if self._stopping:
                    raise
                if left <= 0:
                    return None
                LOGGER.info("a wait of @%s asks again: %s", call.actor.handle, error)
                await asyncio.sleep(min(pause_s, max(0.0, left)))
                pause_s = min(pause_s * 2, RETRY_S[1])

    async def settled(self, actor: Actor) -> None:
        """Return when what this session has received was told: its next call is judged by that."""
        marks = self._marks.get(actor)
        if marks:
            await asyncio.wait(set(marks))

    def received(self, call: Call, room: str, taken: Taken) -> None:
        """The answer was written: tell the rooms service, off the caller's path."""
        request = service_pb2.MarkDeliveryRequest(
            room=room, message=taken.message_id, seat=taken.seat, state=views_pb2.DELIVERY_STATE_DELIVERED
        )
        task = self._later(_mark(call, request))
        marks = self._marks.setdefault(call.actor, set())
        marks.add(task)

        def forget(done: asyncio.Task[None]) -> None:
            marks.discard(done)
            if not marks and self._marks.get(call.actor) is marks:
                del self._marks[call.actor]

        task.add_done_callback(forget)

    def _later(self, work: Awaitable[None]) -> asyncio.Task[None]:
        async def run() -> None:
            await work

        task = asyncio.create_task(run(), name="waits-later")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _take_first(call: Call, wanted: Wanted) -> Taken | None:
    if wanted.lease:
        return await leases.take(call, wanted.room, wanted.lease)
    return await delivery.take_first(call, wanted)


async def _take_next(call: Call, wanted: Wanted, timeout_s: float) -> Taken | None:
    if wanted.lease:
        return await leases.take(call, wanted.room, wanted.lease, timeout_s)
    return await delivery.take_next(call, wanted, timeout_s)


def _queues_of(waits: set[Wait], handle: str) -> set[str]:
    """The queues of a handle and its seats for which a wait is open: it was resumed, or removed."""
    return {wait.told.queue for wait in waits if wait.told.queue.partition("#")[0] == handle}


def _ring(waits: set[Wait], queues: set[str]) -> None:
    for wait in waits:
        if wait.told.queue in queues:
            wait.bell.set()


async def _mark(call: Call, request: service_pb2.MarkDeliveryRequest) -> None:
    """If this can't be told, the delivery comes again, marked as such."""
    with contextlib.suppress(Refusal):
        try:
            await call.ask(request, service_pb2.MarkDeliveryResponse, step="received")
        except (Unavailable, Internal) as error:
            LOGGER.warning("a delivery to @%s will come again: %s", call.actor.handle, error)
