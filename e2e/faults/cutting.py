"""A line that breaks anywhere: a TCP proxy that cuts each connection after so many bytes as a seed says."""

import asyncio
import contextlib
import random
from typing import Self
from urllib.parse import urlsplit


class Cutting:
    """Stands before a hub. A part of the connections is cut, within requests and within answers, at any byte."""

    def __init__(self, url: str, seed: int, share: float = 0.5, most_bytes: int = 1500) -> None:
        there = urlsplit(url)
        self._hub = (str(there.hostname), there.port or 80)
        self._random = random.Random(seed)
        self._share = share
        self._most = most_bytes
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.url = ""
        self.cuts = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        left = [self._random.randrange(self._most) if self._random.random() < self._share else 1 << 60]
        with contextlib.ExitStack() as lines:
            lines.callback(writer.transport.abort)
            with contextlib.suppress(OSError):
                there = await asyncio.open_connection(*self._hub)
                lines.callback(there[1].transport.abort)
                await asyncio.gather(self._pass_on(reader, there[1], left), self._pass_on(there[0], writer, left))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int]) -> None:
        """Pass bytes on in one direction until the line ends, or what is left for both directions is used up."""
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data[: left[0]])
                await writer.drain()
                left[0] -= len(data)
                if left[0] < 0:
                    self.cuts += 1
                    left[0] = 0
                    break
        if left[0] == 0:
            writer.transport.abort()
            reader.feed_eof()
        elif writer.can_write_eof():
            with contextlib.suppress(OSError):
                writer.write_eof()
