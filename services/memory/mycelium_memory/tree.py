"""The markdown tree: each room's documents as files in its folder, in both directions, kept by one process.

Level-based: a fact or a changed file only says where to look; what is done follows from how the tables, the file and
the notes on it are then (`tree_settle`). Everything is looked at once at start, again after changes by hand, and
from time to time, so that a change which the system did not tell is found, too.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_kernel import events, names, rooms_seen, subjects, tasks
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.tail import RawFact, Tail
from mycelium_memory import model, tree_lock, tree_watch
from mycelium_memory.tree_compare import Slot
from mycelium_memory.tree_disk import Illegal
from mycelium_memory.tree_kept import Attic
from mycelium_memory.tree_pending import Pending
from mycelium_memory.tree_settle import Settler
from mycelium_memory.tree_store import Store
from mycelium_memory.tree_swap import document_of

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
RETRY_S = 1.0
AT_ONCE = 16  # documents that are settled side by side
ROWS = 1_000
FOLDER_S = 3.0  # how long the rooms service has to make a room's folder
AGAIN_S = 0.7  # after a change by hand, until the whole folder is looked at again
SHARE = 20  # that look takes at most one part of so many of the time
SOMETIMES_S = 30.0
KEY = "SELECT key FROM document WHERE room_id = ? AND document_id = ?"


def keeper(root: Path) -> Callable[[Runtime], Awaitable[None]]:
    """The worker that keeps the tree under `root`, while no other process does."""

    async def tree(runtime: Runtime) -> None:
        lock = await tree_lock.take(root)
        try:
            store = Store(root)
            try:
                await store.open(runtime.epoch)
                await Tree(runtime, store, root).run()
            finally:
                store.close()
        finally:
            os.close(lock)

    return tree


class Tree:
    """The tree, while one process keeps it."""

    def __init__(self, runtime: Runtime, store: Store, root: Path) -> None:
        assert runtime.tables is not None
        self._runtime, self._store, self._root, self._tables = runtime, store, root, runtime.tables
        self._pending = Pending()
        self._wake = asyncio.Event()
        self._wake.set()
        self._attic = Attic(store, self._rescue)
        self._settler = Settler(runtime, store, self._later, self._attic.keep)
        self._absent: dict[str, float] = {}  # rooms without a folder, and since when
        self._spent_s: dict[str, float] = {}  # by the last look at a room's whole folder
        self._sequence = 0  # of the last fact that was seen
        self._stirred = False  # whether a change was told since everything was last looked at
        self._again: set[str] = set()  # rooms whose whole folder will be looked at again

    async def run(self) -> None:
        """Keep it until cancelled."""
        filters = (subjects.of_service(model.MEMORY), *rooms_seen.FILTERS)
        tail = Tail(self._runtime.connection, filters, self._on_facts)
        await tail.start(None)
        report = partial(self._runtime.report, "tree")
        watching = tree_watch.watch(self._root, self._on_paths, self._on_everything, report)
        others = [asyncio.create_task(work) for work in (watching, self._attic.look_after(), self._sometimes())]
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                for task in others:
                    if task.done():
                        task.result()
                await self._turn()
        finally:
            await tasks.end(others)
            await tail.stop()

    # What says where to look.

    def _on_facts(self, facts: list[RawFact]) -> None:
        for fact in facts:
            room_id = subjects.room_of(fact.subject)
            if room_id == subjects.NAMES:
                event = events.decode(fact.type, fact.data)
                if isinstance(event, rooms_pb2.RoomCreated):
                    self._pending.created.add(event.room_id)
                self._pending.paths[str(getattr(event, "room_id", ""))].add("")
            elif fact.subject.startswith(subjects.of_service(model.MEMORY).removesuffix(">")):
                self._pending.documents[room_id, subjects.identifier_of(fact.subject)] = fact.sequence
            elif fact.subject == subjects.fact(rooms_seen.ROOMS, room_id, "import", room_id):
                self._pending.paths[room_id].add("")
        self._sequence = facts[-1].sequence
        self._wake.set()

    def _on_paths(self, paths: list[tuple[str, ...]]) -> None:
        for parts in paths:
            room = self._room_of(parts[0])
            if room:
                self._pending.paths[room.id].add("/".join(parts[1:]))
        self._stirred = True
        self._wake.set()

    def _on_everything(self) -> None:
        self._pending.everything = True
        self._wake.set()

    def _later(self, slot: Slot, pause_s: float) -> None:
        def again() -> None:
            self._pending.slots[slot.room.id, slot.document_id] = slot
            self._wake.set()

        asyncio.get_running_loop().call_later(pause_s, again)

    def _look_again(self, room: RoomRow, pause_s: float) -> None:
        if room.id in self._again:
            return
        self._again.add(room.id)

        def again() -> None:
            self._again.discard(room.id)
            self._pending.paths[room.id].add("")
            self._wake.set()

        asyncio.get_running_loop().call_later(pause_s, again)

    async def _sometimes(self) -> None:
        """From time to time look at everything, if anything was told to have changed since."""
        while True:
            await asyncio.sleep(SOMETIMES_S)
            if self._stirred:
                self._on_everything()

    # Looking.

    async def _turn(self) -> None:
        """Look at all that is to be looked at."""
        assert self._runtime.projector is not None
        pending, self._pending = self._pending, Pending(everything=False)
        try:
            await self._runtime.projector.wait(self._sequence)  # what comes meanwhile is for the next turn
        except Unavailable:
            self._pending.add(pending)
            asyncio.get_running_loop().call_later(RETRY_S, self._wake.set)
            return
        for room_id in pending.created:
            await self._store.know(room_id)
        await self._settle(pending)
        if pending.everything:
            self._stirred = False
            for room in await self._rooms():
                await self._look(room, {""})
                await self._settle(self._pending)
        for room_id, paths in pending.paths.items():
            found = self._room(room_id)
            if found is None:
                await self._forget(room_id)
                continue
            await self._look(found, paths)

    async def _settle(self, pending: Pending) -> None:
        """Settle single documents."""
        documents = dict(pending.documents)
        slots = {place: slot for place, slot in pending.slots.items() if self._room(place[0])}
        pending.documents.clear()
        pending.slots.clear()
        for (room_id, document_id), sequence in documents.items():
            if sequence > self._tables.position:  # the tables have not heard of it yet
                self._pending.documents[room_id, document_id] = sequence
                self._wake.set()
                continue
            row = self._tables.one(KEY, room_id, document_id)
            if row and (room := self._room(room_id)):
                slots.setdefault((room_id, document_id), Slot(room, document_id, row[0]))
        await self._settle_all(slots.values())

    async def _settle_all(self, slots: Iterable[Slot]) -> None:
        bound = asyncio.Semaphore(AT_ONCE)

        async def settle(slot: Slot) -> None:
            async with bound:
                try:
                    await self._settler.settle(slot)
                except Exception as error:  # others are kept all the same
                    LOGGER.exception("document %s of room %s can't be kept", slot.document_id, slot.room.id)
                    await self._store.report(slot, f"the hub failed on it: {type(error).__name__}")

        async with asyncio.TaskGroup() as group:
            for slot in slots:
                group.create_task(settle(slot))

    async def _look(self, room: RoomRow, paths: set[str]) -> None:
        """Look at paths of a room's folder, and settle what is not as it was."""
        began = time.monotonic()
        try:
            if not await self._is_ready(room):
                return
            scanned = await self._store.scan(room, paths)
        except Illegal as illegal:
            await self._store.report_path(room, "", str(illegal))
            return
        except OSError as error:
            self._runtime.report("tree", f"the folder of a room can't be read: {error.strerror}", SOMETIMES_S * 2)
            self._look_again(room, RETRY_S)
            return
        slots = {slot.document_id: slot for slot in scanned.changed}
        if "" in paths:
            self._compare(room, scanned.versions, slots)
            self._spent_s[room.id] = time.monotonic() - began
            if scanned.first:
                self._settler.first |= {(room.id, document_id) for document_id in slots}
                await self._store.know(room.id)
        elif slots:  # something was done by hand, and there may be more of it that was not told
            self._look_again(room, max(AGAIN_S, SHARE * self._spent_s.get(room.id, 0.0)))
        await self._settle_all(slots.values())
        for place in scanned.hidden:
            row = self._tables.one(KEY, room.id, document_of(place.name))
            if not await self._attic.rescue(room, place, row[0] if row else ""):
                self._look_again(room, RETRY_S)

    def _compare(self, room: RoomRow, versions: dict[str, int], slots: dict[str, Slot]) -> None:
        """Add the documents whose files are at another version than they are."""
        sql = """SELECT document_id, key, version, removed, folded FROM document INDEXED BY document_folded
          WHERE room_id = ? AND folded > ? ORDER BY folded LIMIT ?"""
        after = ""
        while rows := self._tables.all(sql, room.id, after, ROWS):
            for document_id, key, version, removed, after in rows:  # noqa: B007 - where the next page begins
                if document_id not in slots and versions.get(document_id) != (None if removed else version):
                    slots[document_id] = Slot(room, document_id, key)

    async def _is_ready(self, room: RoomRow) -> bool:
        """Whether a room has its folder. One that is gone comes back, with all that should be in it."""
        if await self._store.is_ready(room):
            if self._absent.pop(room.id, None) is not None:
                self._look_again(room, 0.0)
            await self._store.mend_path(room, "")
            return True
        since = self._absent.setdefault(room.id, time.monotonic())
        if time.monotonic() - since >= FOLDER_S:
            LOGGER.warning("the folder of room %s is not there: it is made anew", room.id)
            await self._store.make(room)
            del self._absent[room.id]
        self._look_again(room, RETRY_S)
        return False

    async def _rescue(self, slot: Slot, text: str, seen: int | None) -> None:
        await self._settler.rescue(slot, text, seen)

    # Rooms.

    async def _rooms(self) -> list[RoomRow]:
        """Every room; of others nothing is noted any more."""
        rows = [RoomRow(*row) for row in self._tables.all("SELECT room_id, name FROM room WHERE importing = 0")]
        for room_id in await self._store.rooms() - {room.id for room in rows}:
            await self._forget(room_id)
        return rows

    async def _forget(self, room_id: str) -> None:
        """Nothing is noted of a room that was deleted; the rooms service removes its folder."""
        if self._tables.one("SELECT 1 FROM room WHERE room_id = ?", room_id) is None:
            self._absent.pop(room_id, None)
            self._spent_s.pop(room_id, None)
            await self._store.forget_room(room_id)

    def _room(self, room_id: str) -> RoomRow | None:
        return self._room_where("room_id", room_id)

    def _room_of(self, folder: str) -> RoomRow | None:
        """The room whose folder has that name."""
        return self._room_where("folded", names.fold_room_name(folder))

    def _room_where(self, column: str, value: str) -> RoomRow | None:
        row = self._tables.one(f"SELECT room_id, name FROM room WHERE {column} = ? AND importing = 0", value)  # noqa: S608
        return RoomRow(*row) if row else None
