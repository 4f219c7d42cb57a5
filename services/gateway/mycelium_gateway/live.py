"""The end of the log in this process: one consumer, each fact made into bytes once, handed to whoever watches its room.

Watchers and waits register here and are called in the log's order. What came before they registered they read
themselves (`stream.py`), or ask for (`waits.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from mycelium_gateway import frames
from mycelium_kernel import events, subjects
from mycelium_kernel.tail import RawFact, Tail

if TYPE_CHECKING:
    from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
ERASED_REMEMBERED = 10_000
WATCHERS = Gauge("mycelium_live_watchers", "Open live streams.")
SLOW_READERS = Counter("mycelium_live_slow_readers_total", "Live streams closed since their reader was too slow.")

OnFact = Callable[[str, RawFact], None]


class Watcher:
    """One open stream: what waits to be written to it. The writer takes it all at once."""

    def __init__(self, rooms: dict[str, str], limit_bytes: int) -> None:
        self.rooms = rooms  # id to name
        self.after = 0  # facts up to here come from the feed, or were sent
        self.ended = False  # nothing more will come: write what is here, then end
        self.overflowed = False
        self.on_overflow: Callable[[], object] = lambda: None
        self._limit_bytes = limit_bytes
        self._chunks: list[bytes] = []
        self._size = 0
        self._waiting: asyncio.Future[None] | None = None

    def push(self, chunk: bytes, sequence: int | None = None) -> None:
        """Add what is to be written next; a fact that the watcher has already is left out."""
        if self.ended:
            return
        if sequence is not None:
            if sequence <= self.after:
                return
            self.after = sequence
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        if self._size > self._limit_bytes:
            self.ended = self.overflowed = True
            SLOW_READERS.inc()
            self.on_overflow()

    def end(self) -> None:
        """Let the stream end after what waits."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def take(self) -> bytes:
        """All that waits, as soon as there is some; empty when the stream has ended."""
        while not self._chunks and not self.ended:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        chunks, self._chunks, self._size = self._chunks, [], 0
        return b"".join(chunks)


class Live:
    """Follows every fact and hands each to the watchers of its room and to `on_fact`."""

    def __init__(self, connection: Connection, ping_s: float) -> None:
        self._connection = connection
        self._ping_s = ping_s
        self._tail = Tail(connection, (subjects.ALL_FACTS,), self._on_facts)
        self._watchers: dict[str, set[Watcher]] = {}
        self._all: set[Watcher] = set()
        self._pinging: asyncio.Task[None] | None = None
        self._stopping = False
        self.position = 0
        self.erased: dict[str, int] = {}  # ids of rooms deleted while this process ran, with their last fact
        self.on_fact: OnFact = lambda _room_id, _fact: None

    @property
    def epoch(self) -> str:
        """What the ids of this log's events begin with."""
        return self._connection.epoch

    async def start(self) -> None:
        """Follow what is stored from now on."""
        await self._tail.start(None)
        self.position = max(self.position, self._tail.position)
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
            self._leave(watcher, room_id)

    def _leave(self, watcher: Watcher, room_id: str) -> None:
        watching = self._watchers.get(room_id)
        if watching:
            watching.discard(watcher)
            if not watching:
                del self._watchers[room_id]

    def _on_facts(self, facts: list[RawFact]) -> None:
        for fact in facts:
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
        if not watchers or not frames.is_shown(fact.type):
            return
        name = next(iter(watchers)).rooms[room_id]
        frame = frames.frame(self.epoch, fact.sequence, events.decode(fact.type, fact.data), name)
        for watcher in watchers:
            watcher.push(frame, fact.sequence)

    def _erase(self, fact: RawFact) -> None:
        """A room is gone: its watchers are told, and those who watched nothing else end."""
        event = events.decode(fact.type, fact.data)
        room_id = str(event.room_id)  # type: ignore[attr-defined]
        self.erased[room_id] = fact.sequence
        if len(self.erased) > ERASED_REMEMBERED:
            del self.erased[next(iter(self.erased))]
        self.on_fact(room_id, fact)
        for watcher in list(self._watchers.get(room_id, ())):
            watcher.push(frames.frame(self.epoch, fact.sequence, event, watcher.rooms[room_id]), fact.sequence)
            self._leave(watcher, room_id)
            del watcher.rooms[room_id]
            if not watcher.rooms:
                watcher.end()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_s)
            for watcher in list(self._all):
                watcher.push(frames.PING)
