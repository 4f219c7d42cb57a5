"""The newest facts that watchers see, kept in memory: who was cut off for a moment gets its gap from here.

A thousand that come back at once would each ask the rooms service for the same few facts, and have each made into
bytes again. Here a fact is made into bytes once, by the first who missed it. What lies further back is in the feed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import merge
from itertools import takewhile
from operator import attrgetter

from mycelium_kernel.tail import RawFact

MakeFrame = Callable[[RawFact, str], bytes]
BESIDE_BYTES = 1000  # what a fact takes in memory beside its data: its headers, its places here


class _Kept:
    """A fact, and its frame once somebody has asked for it."""

    __slots__ = ("fact", "frame", "room_id", "sequence")

    def __init__(self, room_id: str, fact: RawFact) -> None:
        self.room_id = room_id
        self.sequence = fact.sequence
        self.fact: RawFact | None = fact
        self.frame = b""

    @property
    def size(self) -> int:
        return BESIDE_BYTES + len(self.frame) + (len(self.fact.data) if self.fact else 0)


class Recent:
    """Facts of every room after `kept_after`, as many as fit in so many bytes. `make` makes a frame of one."""

    def __init__(self, make: MakeFrame, limit_bytes: int) -> None:
        self.kept_after = 0
        self._make = make
        self._limit_bytes = limit_bytes
        self._size = 0
        self._all: deque[_Kept] = deque()
        self._rooms: dict[str, deque[_Kept]] = {}

    def start(self, sequence: int) -> None:
        """Know nothing of what was up to there."""
        self.kept_after, self._size = sequence, 0
        self._all.clear()
        self._rooms.clear()

    def add(self, room_id: str, fact: RawFact) -> None:
        """Keep a fact, newer than all before it."""
        kept = _Kept(room_id, fact)
        self._all.append(kept)
        self._rooms.setdefault(room_id, deque()).append(kept)
        self._size += kept.size
        self._shrink()

    def forget(self, room_id: str) -> None:
        """Keep nothing of a room that was erased."""
        for kept in self._rooms.pop(room_id, ()):
            self._size -= kept.size
            kept.fact, kept.frame = None, b""
            self._size += kept.size  # its place stays until it is the oldest

    def after(self, sequence: int, rooms: dict[str, str]) -> list[bytes] | None:
        """The frames of what came after a place in these rooms, by id and name; None: it is not all here any more."""
        if sequence < self.kept_after:
            return None
        newest_first = [self._newer(room_id, sequence) for room_id in rooms]
        found = list(merge(*newest_first, key=attrgetter("sequence"), reverse=True))
        frames = [self._frame(kept, rooms[kept.room_id]) for kept in reversed(found)]
        self._shrink()
        return frames

    def _newer(self, room_id: str, sequence: int) -> Iterable[_Kept]:
        return takewhile(lambda kept: kept.sequence > sequence, reversed(self._rooms.get(room_id, ())))

    def _frame(self, kept: _Kept, name: str) -> bytes:
        if not kept.frame and kept.fact:
            self._size -= kept.size
            kept.frame, kept.fact = self._make(kept.fact, name), None
            self._size += kept.size
        return kept.frame

    def _shrink(self) -> None:
        while self._size > self._limit_bytes:
            oldest = self._all.popleft()
            self.kept_after = oldest.sequence
            self._size -= oldest.size
            room = self._rooms.get(oldest.room_id)
            if room and room[0] is oldest:
                room.popleft()
                if not room:
                    del self._rooms[oldest.room_id]
