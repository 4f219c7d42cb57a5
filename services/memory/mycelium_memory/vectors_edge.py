"""Vectors on this machine, in a folder: `Vectors` by a keeper's process of its own, which holds qdrant-edge."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mycelium_memory.child import Child
from mycelium_memory.embedding import Vector
from mycelium_memory.frames import Frame
from mycelium_memory.vectors import Entry, Found, Indexed, Near, Opened, Within

SEARCH_S = 15.0
PATIENCE_S = 2.0  # of a search for a keeper that is starting, which takes half a second
CHANGE_S = 120.0
PIECE = 200  # entries sent at a time


@dataclass(frozen=True)
class State:
    """`vectors` there are, `indexed` of them have an index, and `is_building`: it is being built, or will be soon."""

    vectors: int
    indexed: int
    is_building: bool


class EdgeVectors:
    """The vectors of one model in one folder. Below `unindexed` there is no index, and every search is exact."""

    def __init__(self, folder: Path, dimensions: int, unindexed: int = 5_000) -> None:
        arguments = (str(folder), str(dimensions), str(unindexed))
        self._child = Child("the keeper of vectors", "mycelium_memory.keeper", arguments)

    @property
    def opened(self) -> Opened | None:
        if not self._child.is_up:
            return None
        said = self._child.hello
        return Opened(Found(said["found"]), said["why"], self._child.starts)

    @property
    def pid(self) -> int | None:
        """The keeper's process, for whoever looks at it from outside."""
        return self._child.pid

    async def open(self) -> Opened:
        await self._ask({"verb": "count", "rooms": []})
        opened = self.opened
        assert opened is not None
        return opened

    async def put(self, entries: Sequence[Entry]) -> None:
        for start in range(0, len(entries), PIECE):
            said, vectors, first = [], [], 0
            for entry in entries[start : start + PIECE]:
                said.append(_said(entry, first))
                vectors += [passage.vector for passage in entry.passages]
                first += len(entry.passages)
            await self._ask({"verb": "put", "entries": said}, b"".join(vectors))

    async def delete(self, room_id: str, document: str, sequence: int) -> None:
        await self._ask({"verb": "delete", "room_id": room_id, "document": document, "sequence": sequence})

    async def delete_room(self, room_id: str) -> None:
        await self._ask({"verb": "delete_room", "room_id": room_id})

    async def search(self, vector: Vector, within: Within, most: int) -> list[Near]:
        if not within.rooms:
            return []
        body = {"verb": "search", "within": dataclasses.asdict(within), "most": most}
        answer = await self._child.ask(body, vector, within_s=SEARCH_S, patience_s=PATIENCE_S)
        return [Near(*near) for near in answer.body["near"]]

    async def count(self, rooms: Sequence[str]) -> int:
        if not rooms:
            return 0
        answer = await self._ask({"verb": "count", "rooms": list(rooms)})
        return int(answer.body["count"])

    async def documents(self) -> AsyncIterator[list[Indexed]]:
        after = None
        while True:
            answer = await self._ask({"verb": "documents", "after": after})
            yield [Indexed(*found) for found in answer.body["documents"]]
            after = answer.body["next"]
            if after is None:
                return

    async def state(self) -> State:
        """How large it is, and how far its index is."""
        return State(*(await self._ask({"verb": "state"})).body["state"])

    async def close(self) -> None:
        await self._child.stop()

    async def _ask(self, body: Mapping[str, Any], blob: bytes = b"") -> Frame:
        return await self._child.ask(body, blob, within_s=CHANGE_S, patience_s=CHANGE_S)


class EdgeStore:
    """A folder with a folder for each model; `current` names the one whose vectors are complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def current(self) -> str:
        return await asyncio.to_thread(self._current)

    async def switch(self, stamp: str) -> None:
        await asyncio.to_thread(self._switch, stamp)

    def vectors(self, stamp: str, dimensions: int) -> EdgeVectors:
        return EdgeVectors(self._folder / stamp, dimensions)

    def _current(self) -> str:
        try:
            stamp = (self._folder / "current").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return stamp if stamp and (self._folder / stamp).is_dir() else ""

    def _switch(self, stamp: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self._folder / ".current"
        beside.write_text(stamp, encoding="utf-8")
        beside.replace(self._folder / "current")
        for folder in self._folder.iterdir():
            if folder.is_dir() and folder.name != stamp:
                shutil.rmtree(folder)


def _said(entry: Entry, first: int) -> dict[str, object]:
    return {
        "room_id": entry.room_id,
        "document": entry.document,
        "sequence": entry.sequence,
        "tags": list(entry.tags),
        "author": entry.author,
        "time_ms": entry.time_ms,
        "sections": [passage.section for passage in entry.passages],
        "first": first,
    }
