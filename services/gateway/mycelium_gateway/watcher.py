"""One open stream: what waits to be written to it, and gates before what its reader may not see any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from prometheus_client import Counter

from mycelium_gateway import frames
from mycelium_kernel.patterns import Pattern

SLOW_READERS = Counter("mycelium_live_slow_readers_total", "Live streams closed since their reader was too slow.")
MaySee = Callable[[str], Awaitable[bool]]


async def _everything(_room_id: str) -> bool:
    return True


class Watcher:
    """What waits for one reader. The writer takes it all at once; while it has nothing to do, it is passed by.

    A gate stands before what follows a fact after which the reader may be a stranger to the gate's room. Nothing
    behind it is taken before the rooms service has said whether it is; of a room that is lost, nothing is.
    """

    def __init__(
        self,
        rooms: dict[str, str],
        limit_bytes: int,
        *,
        handle: str = "",
        may_see: MaySee = _everything,
        patterns: Sequence[Pattern] = (),
    ) -> None:
        self.rooms = rooms  # id to name
        self.patterns = patterns  # of the documents that it follows; then it follows nothing else
        self.handle = handle
        self.after = 0  # facts up to here come from the feed, or were sent
        self.ended = False  # nothing more will come: write what is here, then end
        self.overflowed = False
        self.on_overflow: Callable[[], object] = lambda: None
        self.on_lost: Callable[[str], object] = lambda _room_id: None
        self.write_now: Callable[[bytes], bool] = lambda _chunk: False  # past the writer, while it has nothing to do
        self._may_see = may_see
        self._limit_bytes = limit_bytes
        self._chunks: list[bytes] = []
        self._behind: list[tuple[str, bytes | None]] = []  # a room's chunk, or a gate; the first is a gate
        self._size = 0
        self._waiting: asyncio.Future[None] | None = None

    def push(self, chunk: bytes, sequence: int | None = None, room_id: str = "") -> None:
        """Add what is to be written next; a fact that the watcher has already is left out."""
        if self.ended:
            return
        if sequence is not None:
            if sequence <= self.after:
                return
            self.after = sequence
        if self._is_idle() and self.write_now(chunk):
            return
        if self._behind:
            self._behind.append((room_id, chunk))
        else:
            self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        if self._size > self._limit_bytes:
            self.ended = self.overflowed = True
            SLOW_READERS.inc()
            self.on_overflow()

    def _is_idle(self) -> bool:
        """Whether the writer waits for something to write, and nothing does."""
        return self._waiting is not None and not self._waiting.done() and not self._behind

    def gate(self, room_id: str) -> None:
        """Let nothing more out before it is known whether the reader may still see the room."""
        self._behind.append((room_id, None))
        self._wake()

    def erase(self, room_id: str, deleted: bytes, sequence: int) -> None:
        """The room is deleted. What a gate holds back of it goes: nobody can say any more who might have seen it."""
        kept = [(one, chunk) for one, chunk in self._behind if one != room_id or chunk is None]
        self._size -= sum(len(chunk) for _one, chunk in self._behind if chunk) - sum(
            len(chunk) for _one, chunk in kept if chunk
        )
        self._behind = kept
        self.push(deleted, sequence)
        del self.rooms[room_id]
        if not self.rooms:
            self.end()

    def hold(self) -> None:
        """Keep everything back until `release`."""
        self.gate("")

    def release(self, doubted: Iterable[str]) -> None:
        """Let out what was held, behind a gate for each room about which there is a doubt."""
        self._behind[:1] = [(room_id, None) for room_id in doubted]
        self._open()

    def end(self) -> None:
        """Let the stream end after what waits."""
        self.ended = True
        self._wake()

    async def take(self) -> bytes:
        """All that waits, as soon as there is some; empty when the stream has ended."""
        while True:
            if self._chunks:
                chunk, self._chunks = b"".join(self._chunks), []
                self._size -= len(chunk)
                return chunk
            if self._behind:
                await self._pass_gate()
            elif self.ended:
                return b""
            else:
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting

    async def _pass_gate(self) -> None:
        room_id = self._behind[0][0]
        stays = room_id not in self.rooms or await self._may_see(room_id)
        if not stays and room_id in self.rooms:  # else it was deleted while that was asked
            self._lose(room_id)
        else:
            del self._behind[0]
        self._open()

    def _lose(self, room_id: str) -> None:
        """Tell no more than that the room is gone, which is how a stranger sees it."""
        self.on_lost(room_id)
        gone = frames.gone(self.rooms.pop(room_id))
        kept = [(one, chunk) for one, chunk in self._behind if one != room_id]
        self._size = sum(len(chunk) for _one, chunk in kept if chunk) + len(gone)
        self._behind = [("", gone), *kept]
        if not self.rooms:
            self.ended = True

    def _open(self) -> None:
        """Let out what stands before the next gate."""
        passed = 0
        for _room_id, chunk in self._behind:
            if chunk is None:
                break
            self._chunks.append(chunk)
            passed += 1
        del self._behind[:passed]
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
