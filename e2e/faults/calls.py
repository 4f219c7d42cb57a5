"""How the load calls a hub: one request a line, and live streams, over asyncio's own sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Self
from urllib.parse import urlsplit

from e2e import crowd
from e2e.room import Document


class Insisted(crowd.Answer):
    """An answer that was waited for."""

    def __new__(cls, answer: crowd.Answer) -> Self:
        """The same answer."""
        return super().__new__(cls, *answer)

    @property
    def document(self) -> Document:
        """What it says, when it is no refusal."""
        assert self.status in {200, 201}, f"{self.status}: {self.body[:500]!r}"
        found: Document = json.loads(self.body)
        return found

    @property
    def slug(self) -> str:
        """Why it refuses; empty when it does not."""
        return str(json.loads(self.body)["slug"]) if self.status >= 400 else ""


async def events(
    url: str, target: str, last_id: str = "", on_begin: Callable[[], object] = lambda: None
) -> AsyncIterator[dict[str, str]]:
    """The events of one live stream until its line is cut; the first of a new one is its place, without a type."""
    there = urlsplit(url)
    reader, writer = await asyncio.open_connection(there.hostname, there.port)
    try:
        lines = [f"GET {target} HTTP/1.1", f"Host: {there.netloc}", "Accept: text/event-stream"]
        lines += [f"Last-Event-ID: {last_id}"] if last_id else []
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            assert head.startswith(b"HTTP/1.1 503"), head
            return
        on_begin()
        text = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            text += (await reader.readexactly(size + 2))[:-2]
            *whole, text = text.split(b"\n\n")
            for event in whole:
                rows = [row.partition(": ") for row in event.decode().split("\n") if not row.startswith(":")]
                if rows:
                    yield {name: value for name, _, value in rows}
    finally:
        writer.transport.abort()
