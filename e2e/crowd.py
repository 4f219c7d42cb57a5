"""Many clients at once, from one thread: requests written and answers read over asyncio's own sockets."""

import asyncio
import json
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """What one of many got; status 0 when the line was cut without a word."""

    status: int
    headers: dict[str, str]
    body: bytes


CUT = Answer(0, {}, b"")


def request(
    url: str, method: str, target: str, body: object = None, handle: str = "", key: str = "", session: str = ""
) -> bytes:
    """A whole request whose connection ends with its answer."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", f"Host: {urlsplit(url).netloc}", f"Content-Length: {len(content)}"]
    lines += ["Content-Type: application/json", "Connection: close", f"Mycelium-Handle: {handle or 'crowd'}"]
    lines += [f"Idempotency-Key: {key}"] if key else []
    lines += [f"Mycelium-Session: {session}"] if session else []
    return "\r\n".join([*lines, "", ""]).encode() + content


async def ask(url: str, sent: bytes, within_s: float) -> Answer:
    """One of them."""
    there = urlsplit(url)
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(there.hostname, there.port)
            try:
                writer.write(sent)
                got = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return CUT
    return read(got)


def read(got: bytes) -> Answer:
    """What came over a line before it ended, as an answer; `CUT` when that is not all of one."""
    head, end, body = got.partition(b"\r\n\r\n")
    if not end:
        return CUT
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    whole = len(body) >= int(headers.get("content-length", "0"))
    return Answer(int(first.split()[1]), headers, body) if whole else CUT


def ask_all(url: str, requests: list[bytes], within_s: float = 30.0) -> list[Answer]:
    """All of them at once; the answers in the order of the requests."""

    async def run() -> list[Answer]:
        return await asyncio.gather(*(ask(url, sent, within_s) for sent in requests))

    return asyncio.run(run())
