"""What the memory service and its child processes send each other: JSON with a block of bytes behind it, in one frame.

Both sides read and write by these. A frame is bounded, so that a broken one is seen at its first eight bytes.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

HEAD = struct.Struct(">II")
MOST = 64 * 1024 * 1024


class Broken(Exception):
    """The other side did not send a frame, or ended in the middle of one."""


@dataclass(frozen=True)
class Frame:
    """One message: `body` as JSON has it, and bytes that JSON would only make longer."""

    body: Mapping[str, Any]
    blob: bytes = b""

    def encode(self) -> bytes:
        """The frame as it is sent."""
        body = json.dumps(self.body, separators=(",", ":")).encode()
        if len(body) + len(self.blob) > MOST:
            raise ValueError(f"a frame of {len(body) + len(self.blob):,} bytes; {MOST:,} are the most")
        return HEAD.pack(len(body), len(self.blob)) + body + self.blob


def read(stream: BinaryIO) -> Frame | None:
    """The next frame, None at the end of the stream."""
    head = stream.read(HEAD.size)
    if not head:
        return None
    lengths = _lengths(head)
    rest = stream.read(sum(lengths))
    if len(rest) < sum(lengths):
        raise Broken("the stream ended in the middle of a frame")
    return _frame(rest, lengths[0])


async def receive(stream: asyncio.StreamReader) -> Frame | None:
    """The next frame, None at the end of the stream, also when it ends in the middle of a frame."""
    try:
        lengths = _lengths(await stream.readexactly(HEAD.size))
        return _frame(await stream.readexactly(sum(lengths)), lengths[0])
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _lengths(head: bytes) -> tuple[int, int]:
    if len(head) < HEAD.size:
        raise Broken("the stream ended in the head of a frame")
    body, blob = HEAD.unpack(head)
    if body + blob > MOST:
        raise Broken(f"not the head of a frame: {head!r}")
    return body, blob


def _frame(rest: bytes, body: int) -> Frame:
    try:
        return Frame(json.loads(rest[:body]), rest[body:])
    except ValueError as error:
        raise Broken(f"not a frame: {error}") from None
