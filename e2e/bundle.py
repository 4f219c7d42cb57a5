"""Bundles of rooms as bytes: taken apart, put together again, and rooms of any age and size made of them.

The format is the documented one: lines of JSON, the last of which counts the others and has their SHA-256. The data of
a fact is the message of `proto/mycelium/rooms/v1/events.proto`, written here by its field numbers.
"""

import base64
import gzip
import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from e2e.web import Api, path

POSTED = "mycelium.rooms.v1.MessagePosted"
_ID, _SENDER, _CONTENT, _TYPE, _DELIVER_TO, _CREATED_AT = 2, 3, 6, 7, 12, 13


def lines(bundle: bytes) -> list[dict[str, Any]]:
    """The documents of a bundle."""
    plain = gzip.decompress(bundle) if bundle.startswith(b"\x1f\x8b") else bundle
    return [json.loads(line) for line in plain.splitlines()]


def sealed(documents: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The lines of a bundle with a last one that fits them."""
    total, count = hashlib.sha256(), -1
    for document in documents:
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        total.update(line)
        count += 1
        yield line
    yield json.dumps({"end": count, "sha256": total.hexdigest()}).encode() + b"\n"


def manifest(name: str, by: str = "avery") -> dict[str, Any]:
    """The first line of a bundle of a shared room."""
    room = {"name": name, "title": "", "private": False, "created_by": by, "created_at": "2020-01-01T00:00:00.000Z"}
    told = {"hub": "elsewhere", "exported_at": "2026-01-01T00:00:00.000Z", "until": 0}
    return {"format": "mycelium-room", "version": 1, **told, "room": room, "members": [by]}


def post(sequence: int, at: datetime, content: str, sender: str = "avery", to: str = "") -> dict[str, Any]:
    """The line of a message, for the queue of `to` if that is given."""
    milliseconds = round(at.timestamp() * 1000)
    seconds, rest = divmod(milliseconds, 1000)
    stamp = _number(1, seconds) + (_number(2, rest * 1_000_000) if rest else b"")
    identifier = uuid.UUID(int=(milliseconds << 80) | (7 << 76) | (2 << 62) | sequence)
    texts = [(_ID, str(identifier)), (_SENDER, sender), (_CONTENT, content), (_TYPE, "message")]
    texts += [(_DELIVER_TO, to)] if to else []
    data = b"".join(_bytes(field, text.encode()) for field, text in texts) + _bytes(_CREATED_AT, stamp)
    shown = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    encoded = base64.b64encode(data).decode()
    return {"sequence": sequence, "type": POSTED, "entity": "message", "at": shown, "data": encoded}


def made(api: Api, name: str, posts: Iterable[tuple[datetime, str]]) -> None:
    """A room of the hub with these messages at these times."""
    facts = [post(sequence, at, content) for sequence, (at, content) in enumerate(posts, 1)]
    bring(api, b"".join(sealed([manifest(name), *facts])))


def bring(api: Api, bundle: bytes, name: str = "", handle: str = "avery") -> dict[str, Any]:
    """Import a bundle; the room."""
    target = path("rooms", "import", name=name) if name else path("rooms", "import")
    reply = api.post(target, bundle, handle=handle, headers={"Content-Type": kind(bundle)})
    room: dict[str, Any] = reply.ok(201).json
    return room


def kind(bundle: bytes) -> str:
    """What a bundle is sent as."""
    return "application/gzip" if bundle.startswith(b"\x1f\x8b") else "application/x-ndjson"


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
