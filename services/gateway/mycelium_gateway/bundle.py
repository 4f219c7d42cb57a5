"""A room as one file: lines of JSON, packed with gzip or not. Pure; `transfer.py` moves the facts.

The first line says what the room is, each further one is a fact, and the last one counts them and holds the SHA-256
of all that stands before it, so that a bundle that was cut or altered is known as such. Whoever alters it on purpose
can write a new sum: the sum is against accidents, and the rooms service checks every fact.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel, ConfigDict, ValidationError

from mycelium.memory.v1 import transfer_pb2 as documents_pb2
from mycelium.rooms.v1 import transfer_pb2, views_pb2
from mycelium_gateway import shapes
from mycelium_kernel.errors import Refusal

FORMAT, VERSION = "mycelium-room", 1
GZIP, GZIP_BITS, GZIP_LEVEL = b"\x1f\x8b", 31, 6
PIECE = 64 * 1024  # what is unpacked at once, whatever it was packed into
LINE_BYTES = 6 * 1024 * 1024
TOO_LARGE = "the bundle, unpacked, is larger than {limit} bytes"


class RoomPart(BaseModel):
    """What a bundle says of its room; more may stand there."""

    model_config = ConfigDict(extra="ignore", strict=True)

    name: str
    title: str = ""
    private: bool
    created_by: str = ""
    created_at: str


class Manifest(BaseModel):
    """The first line."""

    model_config = ConfigDict(extra="ignore", strict=True)

    format: Literal["mycelium-room"]
    version: Literal[1]
    room: RoomPart
    members: list[str]


class Writer:
    """Makes the lines of a bundle."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self._count = 0

    def begin(self, page: transfer_pb2.ExportRoomResponse, hub: str, exported_at: str) -> bytes:
        """The first line. `hub` names the log that the facts' sequences are of."""
        room = shapes.room(page.room)
        del room["folder"]
        head = {"format": FORMAT, "version": VERSION, "hub": hub, "exported_at": exported_at}
        return self._line({**head, "until": page.until, "room": room, "members": list(page.members)})

    def facts(self, facts: Iterable[transfer_pb2.PortableFact | documents_pb2.DocumentFact]) -> bytes:
        """A line for each fact."""
        lines = []
        for fact in facts:
            self._count += 1
            data = base64.b64encode(fact.data).decode()
            kept = {"sequence": fact.sequence, "type": fact.type, "entity": fact.entity, "at": shapes.moment(fact.at)}
            lines.append(self._line({**kept, "data": data}))
        return b"".join(lines)

    def end(self) -> bytes:
        """The last line."""
        return shapes.encode({"end": self._count, "sha256": self._sum.hexdigest()}) + b"\n"

    def _line(self, value: object) -> bytes:
        line = shapes.encode(value) + b"\n"
        self._sum.update(line)
        return line


class Lines:
    """Turns a bundle, as it comes, into its lines; holds no more than one of them and a piece."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._total = 0
        self._head = b""
        self._unpacking: Any = None
        self._is_open = False
        self._rest = b""

    def take(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that are complete with these bytes."""
        if not self._is_open:
            self._head += chunk
            if len(self._head) < len(GZIP):
                return
            self._is_open, chunk = True, self._head
            self._unpacking = zlib.decompressobj(GZIP_BITS) if chunk.startswith(GZIP) else None
        for piece in self._unpacked(chunk):
            self._total += len(piece)
            if self._total > self._limit:
                raise Refusal("content.too_large", TOO_LARGE.format(limit=self._limit))
            *lines, self._rest = (self._rest + piece).split(b"\n") if b"\n" in piece else (self._rest + piece,)
            if len(self._rest) > LINE_BYTES:
                raise refused("it has a line that no room can have written")
            yield from lines

    def _unpacked(self, chunk: bytes) -> Iterator[bytes]:
        if self._unpacking is None:
            yield chunk
            return
        if chunk and self._unpacking.eof:
            raise refused("something follows its end")
        try:
            while chunk:
                yield self._unpacking.decompress(chunk, PIECE)
                chunk = self._unpacking.unconsumed_tail
        except zlib.error:
            raise refused("it can't be unpacked") from None
        if self._unpacking.unused_data:
            raise refused("something follows its end")

    def end(self) -> None:
        """All bytes have come. Refused when they stop in the middle."""
        if not self._is_open or self._rest or (self._unpacking and not self._unpacking.eof):
            raise refused("it was cut: its end is missing")


class Reader:
    """Reads the lines of a bundle and holds each to the format."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self._number = 0
        self._last = 0
        self.manifest: Manifest | None = None
        self.count = 0
        self.is_whole = False

    def take(self, line: bytes) -> transfer_pb2.PortableFact | None:
        """The fact of a line; None for the first and the last."""
        self._number += 1
        if self.is_whole:
            raise refused("something follows its end")
        value = self._read(line)
        if self.manifest is None:
            self.manifest = self._begin(value)
        elif "end" in value:
            self._end(value)
            return None
        self._sum.update(line + b"\n")
        return self._fact(value) if self._number > 1 else None

    def finish(self) -> None:
        """All lines have come. Refused when the last is missing."""
        if not self.is_whole:
            raise refused("it was cut: its end is missing")

    def _read(self, line: bytes) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise refused(f"line {self._number} is no JSON object")
        return value

    def _begin(self, value: dict[str, Any]) -> Manifest:
        try:
            return Manifest.model_validate(value)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise refused(f"its first line is not of a {FORMAT} bundle of version {VERSION} ({where})") from None

    def _fact(self, value: dict[str, Any]) -> transfer_pb2.PortableFact:
        try:
            fact = transfer_pb2.PortableFact(
                sequence=value["sequence"],
                type=value["type"],
                entity=str(value.get("entity", "")),
                data=base64.b64decode(value["data"], validate=True),
                at=timestamp(value["at"]),
            )
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise refused(f"line {self._number} is no fact") from None
        if fact.sequence <= self._last:
            raise refused(f"line {self._number} is out of order")
        self._last = fact.sequence
        self.count += 1
        return fact

    def _end(self, value: dict[str, Any]) -> None:
        if value["end"] != self.count or value.get("sha256") != self._sum.hexdigest():
            raise refused("it was altered: its sum is another")
        self.is_whole = True


def timestamp(text: str) -> Timestamp:
    """A moment in RFC 3339. Raises `ValueError` or `TypeError` for anything else."""
    found = Timestamp()
    found.FromJsonString(text)
    return found


def refused(why: str) -> Refusal:
    """The refusal of a whole bundle."""
    return Refusal("room.import_refused", f"the bundle makes no room: {why}")


def shown(manifest: Manifest, room_id: str, name: str) -> views_pb2.Room:
    """The room as a bundle has it, for a caller who may bring it and not see it."""
    part = manifest.room
    return views_pb2.Room(
        id=room_id,
        name=name,
        title=part.title,
        private=part.private,
        created_by=part.created_by,
        created_at=timestamp(part.created_at),
        members=len(manifest.members),
    )
