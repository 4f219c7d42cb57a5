"""The least HTTP that measures: one kept connection for posts, one for a stream, on raw asyncio sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class Wire:
    """A kept HTTP/1.1 connection to one server on loopback."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def request(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Any:
        """Send a request and return its JSON. Raises `RuntimeError` for any status but a 2xx."""
        await self.send(method, path, body, headers)
        assert self._reader is not None
        status, received = await self._head()
        length = int(received.get("content-length", "0"))
        data = await self._reader.readexactly(length)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {data[:300]!r}")
        return json.loads(data) if data else None

    async def send(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send a request without reading the answer."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**22)
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{self._port}", f"content-length: {len(body)}"]
        lines += ["content-type: application/json", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self._writer.drain()

    async def _head(self) -> tuple[int, dict[str, str]]:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        received = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        return int(head[0].split()[1]), received

    async def open_stream(self, path: str) -> None:
        """Open an event stream; `event` reads from it."""
        await self.send("GET", path)
        await self._head()
        assert self._reader is not None
        await self._reader.readuntil(b"\n\n")

    async def event(self, mark: bytes) -> bytes:
        """The next piece of the stream that holds `mark`."""
        assert self._reader is not None
        while True:
            piece = await self._reader.readuntil(b"\n\n")
            if mark in piece:
                return piece

    def close(self) -> None:
        """Close the connection."""
        if self._writer:
            self._writer.close()
