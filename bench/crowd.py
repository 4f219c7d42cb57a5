"""A thousand watchers: the connections of one row, on raw asyncio protocols, and who of them has seen a mark."""

from __future__ import annotations

import asyncio
from typing import cast

END = b"\n\n"
TAIL = 64  # longer than a mark
BOUND_S = 60.0


class Watcher(asyncio.Protocol):
    """One open stream: tells its crowd once that the mark has come."""

    def __init__(self, crowd: Crowd, request: bytes) -> None:
        self._crowd = crowd
        self._request = request
        self._tail = b""
        self._open = False
        self._seen = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Look for the mark, over the border of two pieces too."""
        assert self._tail or data.startswith(b"HTTP/1.1 200"), data[:300]
        text = self._tail + data
        self._tail = text[-TAIL:]
        if not self._open and END in text:
            self._open = True
            self._crowd.opened()
        mark = self._crowd.mark
        if mark and self._seen != mark and mark in text:
            self._seen = mark
            self._crowd.saw()


class Crowd:
    """So many watchers of one stream."""

    def __init__(self, port: int, path: str, count: int) -> None:
        self._port = port
        self._path = path
        self._count = count
        self._watchers: list[Watcher] = []
        self._left = 0
        self._to_open = 0
        self._done = asyncio.Event()
        self._all_open = asyncio.Event()
        self.mark = b""

    async def open(self, last_id: str = "", *, at_once: int = 50) -> None:
        """Open every stream; returns when each has had its first bytes."""
        self._to_open = self._count
        self._all_open.clear()
        gate = asyncio.Semaphore(at_once)

        async def connect(number: int) -> Watcher:
            async with gate:
                return await self._connect(number, last_id)

        async with asyncio.timeout(BOUND_S):
            self._watchers = list(await asyncio.gather(*(connect(number) for number in range(self._count))))
            await self._all_open.wait()

    async def _connect(self, number: int, last_id: str) -> Watcher:
        lines = [f"GET {self._path} HTTP/1.1", f"host: 127.0.0.1:{self._port}", f"mycelium-handle: watcher{number}"]
        lines += [f"last-event-id: {last_id}"] if last_id else []
        request = "\r\n".join([*lines, "", ""]).encode()
        loop = asyncio.get_running_loop()
        _, watcher = await loop.create_connection(lambda: Watcher(self, request), "127.0.0.1", self._port)
        return watcher

    def expect(self, mark: bytes) -> None:
        """Count from now on who has seen `mark`."""
        self.mark, self._left = mark, self._count
        self._done.clear()

    async def all_have_seen(self) -> None:
        """Return when the last one has seen the mark."""
        async with asyncio.timeout(BOUND_S):
            await self._done.wait()

    def drop(self) -> None:
        """Cut every connection, as a proxy that dies would."""
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if watcher.transport:
                watcher.transport.abort()

    def opened(self) -> None:
        """One more stream is open."""
        self._to_open -= 1
        if not self._to_open:
            self._all_open.set()

    def saw(self) -> None:
        """One more has seen the mark."""
        self._left -= 1
        if not self._left:
            self._done.set()
