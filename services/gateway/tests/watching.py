"""A watcher over a raw socket: what a browser or the CLI would read, and a way to leave without a word."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

BOUND_S = 60.0


@dataclass(frozen=True)
class Event:
    """One live event."""

    id: str
    name: str
    data: dict[str, Any]


class Watching:
    """An open stream. `next` gives its events; `comments` holds what it said beside them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""
        self.comments: list[str] = []
        self.head = ""

    async def open(self, target: str, last_id: str, headers: dict[str, str]) -> None:
        sent = {"Host": "localhost", **headers, **({"Last-Event-ID": last_id} if last_id else {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        self._writer.write(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode())
        async with asyncio.timeout(BOUND_S):
            self.head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            while ": connected" not in self.comments:
                await self.block()

    async def block(self) -> bytes:
        """The next block of lines, as it was sent; empty at the end of the stream."""
        while b"\n\n" not in self._rest:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            chunk = (await self._reader.readexactly(size + 2))[:-2]
            if not chunk:
                return b""
            self._rest += chunk
        block, _, self._rest = self._rest.partition(b"\n\n")
        if block.startswith(b":"):
            self.comments.append(block.decode())
        return block

    async def next(self) -> Event | None:
        """The next event; None when the stream has ended. Fails after five seconds."""
        async with asyncio.timeout(BOUND_S):
            while block := await self.block():
                if b"data: " in block:  # a block of an id alone tells the place and is no event
                    lines = dict(line.split(": ", 1) for line in block.decode().split("\n"))
                    return Event(lines.get("id", ""), lines["event"], json.loads(lines["data"]))
        return None

    async def some(self, count: int) -> list[Event]:
        """The next events, so many."""
        found = [await self.next() for _ in range(count)]
        return [event for event in found if event is not None]

    async def facts(self, count: int) -> list[Event]:
        """The next events that are facts, so many; others are passed over."""
        found: list[Event] = []
        while len(found) < count:
            event = await self.next()
            if event is None:
                break
            if event.id:
                found.append(event)
        return found

    async def ping(self) -> None:
        """Wait for the next ping."""
        before = len(self.comments)
        async with asyncio.timeout(BOUND_S):
            while len(self.comments) == before:
                await self.block()

    def ask_too(self, target: str) -> None:
        """Send another request on the same line, which waits behind the stream."""
        self._writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def leave(self) -> None:
        """Cut the line."""
        self._writer.transport.abort()


@contextlib.asynccontextmanager
async def watching(
    port: int,
    *rooms: str,
    last_id: str = "",
    limit: int = 2**16,
    headers: dict[str, str] | None = None,
    memory: str = "",
) -> AsyncIterator[Watching]:
    """Watch one room by its own address, several by the common one; with `memory`, its documents of that pattern."""
    target = f"/api/rooms/{quote(rooms[0])}/stream"
    if len(rooms) > 1:
        target = "/api/stream?" + "&".join(f"room={quote(room)}" for room in rooms)
    if memory:
        target += f"{'&' if '?' in target else '?'}memory={quote(memory)}"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
    stream = Watching(reader, writer)
    try:
        await stream.open(target, last_id, headers or {})
        yield stream
    finally:
        writer.transport.abort()
