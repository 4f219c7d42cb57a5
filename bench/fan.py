"""A thousand raw sockets: a post is stored, then its bytes are written to every socket, with no HTTP on the way out.

What any live stream is compared with. Run as a program: `python -m bench.fan NATS_URL PORT`. It speaks just so much
HTTP that the same client can ask both: `GET /stream` makes the connection a watcher, `POST` is a post.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

import nats
import uvloop
from nats.js.api import StreamConfig

from mycelium_kernel.testing import PASSWORD

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n" + b'{"who":"floor"}'
WATCHING = b"HTTP/1.1 200 OK\r\n\r\n: connected\n\n"
watchers: set[asyncio.Transport] = set()


class Socket(asyncio.Protocol):
    """One connection; a request comes in one piece, as the client sends it."""

    def __init__(self, js: Any) -> None:
        self._js = js
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        """Forget it."""
        if self._transport:
            watchers.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        """A request."""
        assert self._transport
        if data.startswith(b"POST"):
            self._task = asyncio.create_task(self._post(data.partition(b"\r\n\r\n")[2]))
        elif data.startswith(b"GET /stream"):
            watchers.add(self._transport)
            self._transport.write(WATCHING)
        else:
            self._transport.write(OK)

    async def _post(self, body: bytes) -> None:
        await self._js.publish("fan", body)
        assert self._transport
        self._transport.write(OK)
        frame = b"data: " + body + b"\n\n"
        for watcher in watchers:
            watcher.write(frame)


async def main(url: str, port: int) -> None:
    """Serve until ended."""
    client = await nats.connect(url, user="test", password=PASSWORD)
    js = client.jetstream()
    await js.add_stream(StreamConfig(name="FAN", subjects=["fan"]))
    server = await asyncio.get_running_loop().create_server(lambda: Socket(js), "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
