"""The tree's files and what is noted of them, together: each call is one step in the one thread that does them all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tomllib
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mycelium_kernel import names
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_memory.tree_base import Base, Bases
from mycelium_memory.tree_compare import SETTING, Comparing, Scanned, Slot
from mycelium_memory.tree_disk import Disk, Found, Illegal, Kept, Place, Signature, digest
from mycelium_memory.tree_swap import HIDDEN, Clash

FOLDERS = frozenset(["decisions", "context", "status", "work", "procedures", "log", "failed"])  # made with the room
MARK = ".room"  # names the id of the room whose folder it is; the rooms service writes it
AUTHOR = "filesystem"
T = TypeVar("T")


@dataclass(frozen=True)
class Looked:
    """A document's file: the key by which it was looked up, what was noted of it, what lies there."""

    key: str
    base: Base | None
    found: Found | None


class Store:
    """The folder of all rooms' folders, and the notes beside them."""

    def __init__(self, root: Path) -> None:
        self._disk = Disk(root)
        self._bases: Bases | None = None
        self._thread = ThreadPoolExecutor(1, "tree")
        self._ignoring: set[str] = set()  # rooms whose folders tell git what is not theirs

    async def _do(self, step: Callable[[Disk, Bases], T]) -> T:
        def run() -> T:
            assert self._bases is not None
            return step(self._disk, self._bases)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    async def open(self, epoch: str) -> None:
        """Read what was noted; of another log nothing counts."""

        def run() -> None:
            self._bases = Bases(self._disk.root, epoch)

        await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def close(self) -> None:
        """Wait for the step that is under way."""
        self._thread.shutdown(cancel_futures=True)
        if self._bases:
            self._bases.close()

    async def is_ready(self, room: RoomRow) -> bool:
        """Whether a room has its folder. Raises `Illegal` for another's."""
        return await self._do(lambda disk, _bases: _is_ready(disk, room))

    async def make(self, room: RoomRow) -> None:
        """Make a room's folder, which should be there and is not; nothing that was noted of it counts any more."""

        def run(disk: Disk, bases: Bases) -> None:
            bases.forget_room(room.id)
            self._ignoring.discard(room.id)
            with disk.opened(()) as root, contextlib.suppress(FileExistsError):
                os.mkdir(room.name, mode=0o700, dir_fd=root)
            with contextlib.suppress(Clash):
                disk.write(Place((room.name, MARK)), f"{room.id}\n", "room", None)

        await self._do(run)

    async def look(self, slot: Slot, key: str) -> Looked | None:
        """A document's file, by the document's key if it has one; None when the room has no folder."""

        def run(disk: Disk, bases: Bases) -> Looked | None:
            if not _is_ready(disk, slot.room):
                return None
            base = bases.get(slot.room.id, slot.document_id)
            name = key or (base.key if base else slot.key)
            found = disk.read(slot.named(name).place)
            return Looked(name, base, found)

        return await self._do(run)

    async def is_there(self, slot: Slot) -> bool:
        return await self._do(lambda disk, _bases: disk.is_there(slot.place))

    async def write(self, slot: Slot, text: str, version: int, before: Found | None) -> Kept | None:
        """Put a version in its file. Raises `Clash` when another file lies there than was seen."""

        def run(disk: Disk, bases: Bases) -> Kept | None:
            if before and before.text == text:
                now, kept = before.signature, None
            else:
                now, kept = disk.write(slot.place, text, slot.document_id, before)
            bases.put(slot.room.id, slot.document_id, Base(slot.key, version, digest(text), exact=True), now)
            bases.mend(slot.room.id, slot.path, version)
            return kept

        return await self._do(run)

    async def remove(self, slot: Slot, version: int, before: Found) -> Kept:
        """Take away the file of a document that was removed by a version, which is noted first.

        So a process that is killed on the way never finds that somebody else has removed the file.
        """

        def run(disk: Disk, bases: Bases) -> Kept:
            bases.put(
                slot.room.id, slot.document_id, Base(slot.key, version, before.digest, exact=False), before.signature
            )
            kept = disk.remove(slot.place, slot.document_id, before)
            bases.forget(slot.room.id, slot.document_id)
            bases.mend(slot.room.id, slot.path, 2**62)
            return kept

        return await self._do(run)

    async def note(self, slot: Slot, base: Base, now: Signature) -> None:
        await self._do(lambda _disk, bases: bases.put(slot.room.id, slot.document_id, base, now))

    async def forget(self, slot: Slot) -> None:
        await self._do(lambda _disk, bases: bases.forget(slot.room.id, slot.document_id))

    async def settled(self, slot: Slot, version: int) -> None:
        await self._do(lambda _disk, bases: bases.mend(slot.room.id, slot.path, version))

    async def report(self, slot: Slot, reason: str, version: int = 0) -> None:
        """What is wrong with a document's file."""
        await self.report_path(slot.room, slot.path, reason, version)

    async def report_path(self, room: RoomRow, path: str, reason: str, version: int = 0) -> None:
        await self._do(lambda _disk, bases: bases.report(room.id, room.name, path, reason, version))

    async def mend_path(self, room: RoomRow, path: str) -> None:
        await self._do(lambda _disk, bases: bases.mend(room.id, path))

    async def look_at_kept(self, kept: Kept) -> Found | None:
        return await self._do(lambda disk, _bases: disk.look(kept))

    async def read_kept(self, place: Place) -> Found | None:
        return await self._do(lambda disk, _bases: disk.read_kept(place))

    async def discard(self, place: Place) -> None:
        await self._do(lambda disk, _bases: disk.discard(place, FOLDERS))

    async def rooms(self) -> set[str]:
        return await self._do(lambda _disk, bases: bases.rooms())

    async def forget_room(self, room_id: str) -> None:
        await self._do(lambda _disk, bases: bases.forget_room(room_id))

    async def know(self, room_id: str) -> None:
        await self._do(lambda _disk, bases: bases.know(room_id))

    async def scan(self, room: RoomRow, paths: Collection[str]) -> Scanned:
        """What has changed in a room's folder: at these paths and in them; "" is all of it."""

        def run(disk: Disk, bases: Bases) -> Scanned:
            if room.id not in self._ignoring:
                self._ignoring.add(room.id)
                _ignore(disk, room)
            return Comparing(disk, bases, room).run(paths)

        return await self._do(run)

    async def author(self, room: RoomRow) -> str:
        """As whom an edit by hand is taken: the room's `.mycelium` may say it."""
        return await self._do(lambda disk, bases: _author(disk, bases, room))


def _ignore(disk: Disk, room: RoomRow) -> None:
    """Tell git which names are the hub's own, unless the folder says something itself."""
    place = Place((room.name, ".gitignore"))
    with contextlib.suppress(Clash, Illegal, OSError):
        if not disk.is_there(place):
            disk.write(place, f"{MARK}\n{HIDDEN}*\n", "git", None)


def _is_ready(disk: Disk, room: RoomRow) -> bool:
    mark = disk.read(Place((room.name, MARK)))
    if mark and mark.text.strip() and mark.text.strip() != room.id:
        raise Illegal("the folder is that of another room; move it away")
    return bool(mark and mark.text.strip())


def _author(disk: Disk, bases: Bases, room: RoomRow) -> str:
    try:
        found = disk.read(Place((room.name, SETTING)))
        said = tomllib.loads(found.text).get("author", AUTHOR) if found else AUTHOR
        author = names.handle(said) if isinstance(said, str) else ""
    except (Illegal, Clash, tomllib.TOMLDecodeError, Refusal) as error:
        author, fault = "", str(error)
    else:
        fault = 'it says no author; write: author = "avery"'
    if author:
        bases.mend(room.id, SETTING)
    else:
        bases.report(room.id, room.name, SETTING, fault)
    return author or AUTHOR
