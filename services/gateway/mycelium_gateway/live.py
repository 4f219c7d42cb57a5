"""The end of the log in this process: one consumer, each fact made into bytes once, handed to whoever watches its room.

Watchers and waits register here and are called in the log's order. What came before they registered they read
themselves (`stream.py`), or ask for (`waits.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message
from prometheus_client import Gauge

from mycelium.rooms.v1 import events_pb2, join_pb2
from mycelium_gateway import frames
from mycelium_gateway.recent import Recent
from mycelium_gateway.watcher import Watcher
from mycelium_kernel import events, names, subjects
from mycelium_kernel.tail import RawFact, Tail

if TYPE_CHECKING:
    from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
DOUBTS_REMEMBERED = 10_000
DOUBTFUL = frozenset(
    map(
        events.type_name,
        (events_pb2.RoomChanged, events_pb2.MemberSaved, events_pb2.MemberRemoved, join_pb2.JoinCodeUsed),
    )
)
WATCHERS = Gauge("mycelium_live_watchers", "Open live streams.")

OnFact = Callable[[str, RawFact], None]
OnEvent = Callable[[str, Message], None]


class Live:
    """Follows every fact and hands each to the watchers of its room and to `on_fact`."""

    def __init__(self, connection: Connection, ping_s: float, recent_bytes: int) -> None:
        self._connection = connection
        self._ping_s = ping_s
        self._tail = Tail(connection, (subjects.ALL_FACTS,), self._on_facts)
        self._watchers: dict[str, set[Watcher]] = {}
        self._all: set[Watcher] = set()
        self._pinging: asyncio.Task[None] | None = None
        self._stopping = False
        self.position = 0
        self.recent = Recent(self._frame, recent_bytes)
        self.doubts: dict[str, int] = {}  # by room, the last fact after which somebody may be a stranger to it
        self.on_fact: OnFact = lambda _room_id, _fact: None
        self.on_event: OnEvent = lambda _room_id, _event: None  # of a watched room
        self.also: frozenset[str] = frozenset()  # types that `on_event` is told of although nobody is shown them
        self.on_unwatched: Callable[[str], object] = lambda _room_id: None

    @property
    def is_live(self) -> bool:
        """Whether nothing is known to be missing."""
        return self._tail.live

    @property
    def epoch(self) -> str:
        """What the ids of this log's events begin with."""
        return self._connection.epoch

    async def start(self) -> None:
        """Follow what is stored from now on."""
        await self._tail.start(None)
        self.position = max(self.position, self._tail.position)
        self.recent.start(self.position)
        self._pinging = asyncio.create_task(self._ping(), name="live-ping")

    async def stop(self) -> None:
        """Let every stream end, then stop following."""
        self.end_all()
        if self._pinging:
            self._pinging.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pinging
        await self._tail.stop()

    def end_all(self) -> None:
        """Let every stream end now, and those that would begin."""
        self._stopping = True
        for watcher in list(self._all):
            watcher.end()

    def add(self, watcher: Watcher) -> int:
        """Hand facts to `watcher` from now on; returns the sequence up to which it has to read itself."""
        self._all.add(watcher)
        WATCHERS.inc()
        for room_id in list(watcher.rooms):
            self._watchers.setdefault(room_id, set()).add(watcher)
        watcher.after = max(watcher.after, self.position)
        if self._stopping:
            watcher.end()
        return self.position

    def remove(self, watcher: Watcher) -> None:
        """Forget `watcher`."""
        if watcher not in self._all:
            return
        self._all.remove(watcher)
        WATCHERS.dec()
        for room_id in list(watcher.rooms):
            self.leave(watcher, room_id)

    def leave(self, watcher: Watcher, room_id: str) -> None:
        """Hand no more of a room to `watcher`."""
        watching = self._watchers.get(room_id)
        if watching:
            watching.discard(watcher)
            if not watching:
                del self._watchers[room_id]
                self.on_unwatched(room_id)

    def _on_facts(self, facts: list[RawFact]) -> None:
        for fact in facts:
            if fact.sequence <= self.position:  # another log
                self.recent.start(fact.sequence - 1)
            self.position = fact.sequence
            try:
                self._hand_out(fact)
            except Exception:
                LOGGER.exception("fact %d can't be shown", fact.sequence)

    def _hand_out(self, fact: RawFact) -> None:
        if fact.type == frames.ROOM_DELETED:
            self._erase(fact)
            return
        room_id = subjects.room_of(fact.subject)
        self.on_fact(room_id, fact)
        watchers = self._watchers.get(room_id)
        shown = frames.is_shown(fact.type)
        if shown:
            self.recent.add(room_id, fact)
        elif watchers and frames.is_of_memory(fact.type):
            self._tell_change(watchers, room_id, fact)
        if not (watchers and shown) and fact.type not in DOUBTFUL and not (watchers and fact.type in self.also):
            return
        event = events.decode(fact.type, fact.data)
        if fact.type in DOUBTFUL:
            self._doubt(room_id, fact.sequence, event)
        if watchers and shown:
            frame = frames.live(self.epoch, fact.sequence, event, next(iter(watchers)).rooms[room_id])
            for watcher in watchers:
                if not watcher.patterns:
                    watcher.push(frame, fact.sequence, room_id)
        if watchers:
            self.on_event(room_id, event)

    def _tell_change(self, watchers: set[Watcher], room_id: str, fact: RawFact) -> None:
        """A document has changed; it may be large, so it is read only for those who follow documents."""
        following = [watcher for watcher in watchers if watcher.patterns]
        if not following:
            return
        event: Any = events.decode(fact.type, fact.data)
        folded = names.fold_key(event.key)
        frame = frames.frame(self.epoch, fact.sequence, event, following[0].rooms[room_id])
        for watcher in following:
            if any(pattern.fits(folded) for pattern in watcher.patterns):
                watcher.push(frame, fact.sequence, room_id)

    def _frame(self, fact: RawFact, room: str) -> bytes:
        return frames.frame(self.epoch, fact.sequence, events.decode(fact.type, fact.data), room)

    def tell(self, room_id: str, make: Callable[[str], bytes]) -> None:
        """Tell the watchers of a room what is no fact; `make` is given the room's name."""
        watchers = self._watchers.get(room_id)
        if watchers:
            chunk = make(next(iter(watchers)).rooms[room_id])
            for watcher in watchers:
                if not watcher.patterns:
                    watcher.push(chunk, None, room_id)

    def _doubt(self, room_id: str, sequence: int, event: Message) -> None:
        """Some may not see a room any more.

        After it was made private, a member was removed, its token replaced, or its record changed, with which a token
        may end.
        """
        if isinstance(event, events_pb2.RoomChanged):
            if not event.private:
                return
            doubted = self._watchers.get(room_id, set())
        else:
            assert isinstance(event, events_pb2.MemberSaved | events_pb2.MemberRemoved | join_pb2.JoinCodeUsed)
            handle = event.member.handle if isinstance(event, events_pb2.MemberSaved) else event.handle
            doubted = {one for one in self._watchers.get(room_id, ()) if one.handle == handle}
        self._remember(room_id, sequence)
        for watcher in doubted:
            watcher.gate(room_id)

    def _remember(self, room_id: str, sequence: int) -> None:
        self.doubts[room_id] = sequence
        if len(self.doubts) > DOUBTS_REMEMBERED:
            del self.doubts[next(iter(self.doubts))]

    def _erase(self, fact: RawFact) -> None:
        """A room is gone: its watchers are told, and those who watched nothing else end."""
        event = events.decode(fact.type, fact.data)
        room_id = str(event.room_id)  # type: ignore[attr-defined]
        self._remember(room_id, fact.sequence)
        self.on_fact(room_id, fact)
        self.recent.forget(room_id)
        for watcher in list(self._watchers.get(room_id, ())):
            frame = frames.frame(self.epoch, fact.sequence, event, watcher.rooms[room_id])
            self.leave(watcher, room_id)
            watcher.erase(room_id, frame, fact.sequence)

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_s)
            for watcher in list(self._all):
                watcher.push(frames.PING)
