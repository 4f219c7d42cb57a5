"""Tells watchers what members do, when it changes: by what this gateway sees itself, and what the others tell.

A room is followed while somebody watches it. That somebody is offline is told at once when a time is over, and a
moment late when a wait has ended, since an agent that waits in a loop opens the next one then.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Any

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_gateway import frames
from mycelium_gateway.doing import IDLE, OFFLINE, WORKING, WORKING_MS, RoomDoing, Saying, Waiting, read_said
from mycelium_gateway.follow import Follower
from mycelium_gateway.keys import INSTANCE, SAID, WAITS, Keys, OpenWait, Said
from mycelium_kernel import events, tasks
from mycelium_kernel.clock import Clock, rfc3339

if TYPE_CHECKING:
    from mycelium_gateway.live import Live
    from mycelium_kernel.connections import Connection

GRACE_MS = 500
TICK_S = 0.1
TELLING = frozenset(
    map(
        events.type_name,
        (
            events_pb2.DeliveryOffered,
            events_pb2.DeliveryMarked,
            events_pb2.MessagePosted,
            events_pb2.MemberRemoved,
        ),
    )
)


class Presence:
    """What members do, for the watchers of this gateway."""

    def __init__(self, connection: Connection, keys: Keys, live: Live, clock: Clock) -> None:
        self._keys = keys
        self._live = live
        self._clock = clock
        self._rooms: dict[str, RoomDoing] = {}
        self._saying = Saying()
        self._waiting = Waiting()
        self._own: dict[tuple[str, str], int] = {}  # by room and handle, how many waits are open here
        self._due: list[tuple[int, str, str]] = []  # when to look at whom again
        self._armed: dict[tuple[str, str], int] = {}  # the next of these for each
        self._followers = (
            Follower(connection, WAITS, self._begin_waits, self._take_wait),
            Follower(connection, SAID, lambda: None, self._take_said, beats=False),
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Follow the buckets."""
        self._tasks = [asyncio.create_task(one.follow(), name=f"follow-{one.bucket}") for one in self._followers]
        self._tasks.append(asyncio.create_task(self._tick(), name="presence"))

    async def stop(self) -> None:
        """Stop following."""
        await tasks.end(self._tasks)

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self._clock().timestamp() * 1000)

    def begin(self, room_id: str, members: list[views_pb2.Member]) -> None:
        """Somebody is about to watch a room and has just been shown these members."""
        self._rooms.setdefault(room_id, RoomDoing()).begin(members, self.now())

    def end(self, room_id: str) -> None:
        """Nobody watches a room any more."""
        self._rooms.pop(room_id, None)

    async def say(self, said: Said) -> None:
        """A member says what it does. Raises `Unavailable`."""
        await self._keys.say(said)
        self._hear(said)

    def opened(self, wait: OpenWait) -> None:
        """A wait is open here."""
        of = wait.room_id, wait.queue.partition("#")[0]
        self._own[of] = self._own.get(of, 0) + 1
        self._look(*of)

    def closed(self, wait: OpenWait) -> None:
        """A wait has ended here."""
        of = wait.room_id, wait.queue.partition("#")[0]
        self._own[of] = self._own.get(of, 1) - 1
        if not self._own[of]:
            del self._own[of]
        if wait.room_id in self._rooms:
            self._rooms[wait.room_id].saw(of[1], self.now())
        self._look(*of)

    def happened(self, room_id: str, event: Any) -> None:
        """A fact of a watched room."""
        doing = self._rooms.get(room_id)
        if doing and (handle := doing.happened(event)):
            self._look(room_id, handle)

    def _hear(self, said: Said) -> None:
        self._saying.put(said)
        if said.room_id in self._rooms:
            self._rooms[said.room_id].saw(said.handle, said.at)
            self._look(said.room_id, said.handle)

    def _take_said(self, key: str, value: bytes | None) -> None:
        if value is not None and (said := read_said(key, value)):
            self._hear(said)

    def _begin_waits(self) -> None:
        """All keys are about to be shown; who is not among them is looked at then."""
        before, self._waiting = self._waiting, Waiting()
        for room_id, handle in before.whose():
            self._arm(self.now() + 2 * GRACE_MS, room_id, handle)

    def _take_wait(self, key: str, value: bytes | None) -> None:
        """A key of a wait, or of a gateway; this gateway's own say nothing new."""
        if value is None:
            changed = self._waiting.remove(key)
        elif value == self._keys.instance.encode() and not key.startswith(f"{INSTANCE}."):
            changed = []
        else:
            of = self._waiting.put(key, value.decode(errors="replace"), self.now())
            changed = [of] if of else []
        for room_id, handle in changed:
            if room_id in self._rooms:  # a wait that another gateway began or ended: it was here until now
                self._rooms[room_id].saw(handle, self.now())
            self._look(room_id, handle)

    def _look(self, room_id: str, handle: str, *, due: bool = False) -> None:
        """Tell the watchers of the room when a member does something else than they know."""
        doing = self._rooms.get(room_id)
        if doing is None:
            return
        now = self.now()
        presence, note = self._judge(doing, room_id, handle, now)
        if (presence, note) == doing.shown.get(handle, (OFFLINE, "")):
            return
        if presence == OFFLINE and not due:
            self._arm(now + GRACE_MS, room_id, handle)
            return
        doing.shown[handle] = (presence, note)
        seen = doing.seen(handle)
        data = {"handle": handle, "presence": presence, "note": note, "last_seen": rfc3339(seen) if seen else None}
        self._live.tell(room_id, lambda room: frames.presence({"room": room, **data}))

    def _judge(self, doing: RoomDoing, room_id: str, handle: str, now: int) -> tuple[str, str]:
        """What a member does; what ends by itself is looked at again then."""
        said = self._saying.of(room_id, handle, now)
        if said:
            self._arm(said.until, room_id, handle)
            return said.state, said.note
        if (room_id, handle) in self._own or self._waiting.is_open(room_id, handle):
            return IDLE, ""
        if doing.is_working(handle, now):
            self._arm(now + WORKING_MS, room_id, handle)
            return WORKING, ""
        return OFFLINE, ""

    def _arm(self, at: int, room_id: str, handle: str) -> None:
        if at < self._armed.get((room_id, handle), at + 1):
            self._armed[room_id, handle] = at
            heapq.heappush(self._due, (at, room_id, handle))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            now = self.now()
            for room_id, handle in self._waiting.silent(now):
                self._look(room_id, handle)
            while self._due and self._due[0][0] <= now:
                at, room_id, handle = heapq.heappop(self._due)
                if self._armed.get((room_id, handle)) == at:
                    del self._armed[room_id, handle]
                self._look(room_id, handle, due=True)
