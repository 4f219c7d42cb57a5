"""Brings one document and its file together, by what the tables say, what lies there, and what was last seen there.

Who has changed decides, whatever has happened before: a file that is as it was last seen gets the document's newer
version; one that was changed becomes a version. What the tree, or a file, did right before the process was killed is
told by the log itself (`tree_past`), so nothing is done twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mycelium.memory.v1 import files_pb2
from mycelium_kernel.errors import Conflict, Refusal, Unavailable
from mycelium_kernel.service import Actor
from mycelium_memory import document_file, frontmatter, keys, tree_past, views
from mycelium_memory.tree_base import Base
from mycelium_memory.tree_compare import Slot
from mycelium_memory.tree_decide import Step, View, decide
from mycelium_memory.tree_disk import Found, Illegal, Kept
from mycelium_memory.tree_open import Held
from mycelium_memory.tree_store import Store
from mycelium_memory.tree_swap import Clash

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
ROUNDS = 6
WRITTEN_NS = 100_000_000  # since the last write to a file, so that a text is not taken in the middle of one
EMPTIED_NS = 500_000_000  # the same for an empty file: many programs empty a file first
GONE_S = 0.3  # some programs remove a file and write it anew
PATIENCE_S = 1.0  # a file that is written to without end is taken all the same
AGAIN_S = 1.0
HELD_S = 0.3
NANO = 1_000_000_000

Later = Callable[[Slot, float], None]
Keep = Callable[[Kept, Slot, int], None]


@dataclass
class Settler:
    """Settles documents. `later` asks to settle one again, `keep` to look after what was replaced."""

    runtime: Runtime
    store: Store
    later: Later
    keep: Keep
    first: set[tuple[str, str]] = field(default_factory=set)  # documents that were found with nothing noted
    _since: dict[tuple[str, str], float] = field(default_factory=dict)  # what is waited for
    _held: dict[tuple[str, str], float] = field(default_factory=dict)  # since when a program has a file open
    _refused: dict[tuple[str, str], tuple[bytes, int]] = field(default_factory=dict)

    async def settle(self, slot: Slot) -> None:
        """Bring a document and its file together, or say why not."""
        try:
            for _round in range(ROUNDS):
                try:
                    if await self._step(slot):
                        return
                except Clash:
                    await asyncio.sleep(0)
            self.later(slot, AGAIN_S)
        except (Unavailable, Conflict):
            self.later(slot, AGAIN_S)
        except Held:
            await self._wait_for_writer(slot)
        except Illegal as illegal:
            await self._leave(slot, str(illegal))
        except Refusal as refusal:
            await self._leave(slot, "" if refusal.slug == "room.not_found" else refusal.detail)
        except OSError as error:
            self.later(slot, 10 * AGAIN_S)
            await self._leave(slot, f"it can't be kept here: {error.strerror}")

    async def _wait_for_writer(self, slot: Slot) -> None:
        """A program has the file open for writing; when that lasts, it is told."""
        place, now = (slot.room.id, slot.document_id), time.monotonic()
        if now - self._held.setdefault(place, now) > PATIENCE_S:
            reason = "a program holds it open for writing; the newer version is written when that lets go"
            await self.store.report(slot, reason)
        self.later(slot, HELD_S)

    async def _leave(self, slot: Slot, reason: str) -> None:
        """Leave a file alone, and say why."""
        self._forget_waiting(slot)
        if reason:
            document = tree_past.headline(self.runtime, slot.room.id, slot.document_id)
            await self.store.report(slot.named(document.key if document.there else slot.key), reason)

    async def _step(self, slot: Slot) -> bool:
        """One step; whether it was the last."""
        view = await self._view(slot)
        if view is None:
            return True
        step = decide(view.base, view.found.digest if view.found else None, view.document)
        if step is Step.NOTHING:
            await self.store.settled(view.slot, view.document.version)
            self._forget_waiting(slot)
            return True
        if step in {Step.GONE, Step.EDITED} and self._waits(view):
            return True
        done = {Step.FORGET: self._forget, Step.WRITE: self._write, Step.DELETE: self._delete,
                Step.GONE: self._gone, Step.EDITED: self._edited}[step]  # fmt: skip
        return await done(view)

    async def _view(self, slot: Slot) -> View | None:
        """As it is now; None when the room is no more, or has no folder yet."""
        document = tree_past.headline(self.runtime, slot.room.id, slot.document_id)
        looked = await self.store.look(slot, document.key if document.there else "")
        if looked is None:
            return None
        is_first = (slot.room.id, slot.document_id) in self.first
        return View(slot.named(looked.key), document, looked.base, looked.found, is_first)

    def _waits(self, view: View) -> bool:
        """Whether a change is so young that more of it may come; then it is looked at again."""
        place, now = (view.slot.room.id, view.slot.document_id), time.monotonic()
        since = self._since.setdefault(place, now)
        if view.found is None:
            wait_s = since + GONE_S - now
        else:
            rest = WRITTEN_NS if view.found.text else EMPTIED_NS
            age = time.time_ns() - view.found.signature[2]
            wait_s = (rest - age) / NANO if age >= 0 and now - since < PATIENCE_S else 0.0
        if wait_s <= 0:
            return False
        self.later(view.slot, wait_s)
        return True

    def _forget_waiting(self, slot: Slot) -> None:
        self._since.pop((slot.room.id, slot.document_id), None)
        self._held.pop((slot.room.id, slot.document_id), None)
        self.first.discard((slot.room.id, slot.document_id))

    async def _forget(self, view: View) -> bool:
        await self.store.forget(view.slot)
        self._forget_waiting(view.slot)
        return False  # there may be a file of another spelling

    async def _write(self, view: View) -> bool:
        """The file gets the document's text."""
        slot, tables = view.slot, self.runtime.tables
        assert tables is not None
        sql = f"{views.DOCUMENT} WHERE room_id = ? AND document_id = ? AND removed = 0"
        row = tables.one(sql, slot.room.id, slot.document_id)
        if row is None or row[0] != slot.key:
            return False
        document = views.document(row, slot.room)
        kept = await self.store.write(slot, document_file.text(document), document.version, view.found)
        if kept:
            self.keep(kept, slot, view.base_version)
        self._forget_waiting(slot)
        return True

    async def _delete(self, view: View) -> bool:
        """The document was removed, and nobody has touched its file."""
        assert view.found is not None
        kept = await self.store.remove(view.slot, view.document.version, view.found)
        self.keep(kept, view.slot, view.base_version)
        return True

    async def _gone(self, view: View) -> bool:
        """The file was removed by hand: the document is removed, unless it was written since."""
        if not tree_past.removed_since(self.runtime, view.slot.room.id, view.slot.document_id, view.base_version):
            await self._take(view.slot, files_pb2.TakeFileRequest(seen=view.base_version))
        await self.store.forget(view.slot)
        self._forget_waiting(view.slot)
        return False

    async def _edited(self, view: View) -> bool:
        """The file was written by hand, or by us, or taken right before the process ended."""
        slot, found = view.slot, view.found
        assert found is not None
        refused = found.digest, view.document.version
        if self._refused.get((slot.room.id, slot.document_id)) == refused:
            return True
        past = await tree_past.find(self.runtime, slot.room, slot.document_id, view.base_version, found.text)
        if past:
            base = Base(slot.key, past.version, found.digest, past.exact)
        else:
            try:
                answer = await self._take(slot, await self._request(view, found))
            except Refusal as refusal:
                if not isinstance(refusal, Conflict):
                    self._refused[slot.room.id, slot.document_id] = refused
                raise
            base = Base(slot.key, answer.version, found.digest, exact=False)
        self._refused.pop((slot.room.id, slot.document_id), None)
        await self.store.note(slot, base, found.signature)
        return False

    async def _request(self, view: View, found: Found) -> files_pb2.TakeFileRequest:
        """What the file says of the version that it was written from, and of the key that it had."""
        said = await asyncio.to_thread(lambda: frontmatter.parse(found.text).managed)
        request = files_pb2.TakeFileRequest(file=found.text)
        if view.base:
            request.seen = view.base.version
        elif not view.document.there:
            request.seen = 0
        key, version, thread = said.get("key"), said.get("version"), said.get("thread")
        if key == view.slot.key:
            if view.document.there and type(version) is int and version > 0:
                request.seen = await self._seen(view, version, found.text)
        elif isinstance(key, str) and isinstance(thread, str) and await self._moved(view.slot, key, thread):
            request.moved_from = key
        return request

    async def _seen(self, view: View, version: int, text: str) -> int:
        """The version that the file was written from. One that was brought back to the letter is meant as it is.

        What was taken from the file itself stands in it under the fields of before, until the tree has written it.
        """
        base, room, document_id = view.base, view.slot.room, view.slot.document_id
        if base is None:
            return version
        if version >= base.version or await tree_past.is_version(self.runtime, room, document_id, version, text):
            return base.version
        own = not base.exact and tree_past.is_file_since(self.runtime, room.id, document_id, version, base.version)
        return base.version if own else version

    async def _moved(self, slot: Slot, key: str, thread: str) -> bool:
        """Whether the file is that of another document, which is no longer where it was."""
        try:
            other = Slot.of(slot.room, keys.check(key))
        except Refusal:
            return False
        document = tree_past.headline(self.runtime, slot.room.id, other.document_id)
        same_place = other.document_id == slot.document_id
        return (same_place or document.thread == thread) and not await self.store.is_there(other)

    async def _take(self, slot: Slot, request: files_pb2.TakeFileRequest) -> files_pb2.TakeFileResponse:
        """Make what was done by hand a version, and wait until the tables here have it."""
        request.room_id, request.key = slot.room.id, slot.key
        author = await self.store.author(slot.room)
        reply = await self.runtime.bus.ask(request, files_pb2.TakeFileResponse, actor=Actor(author, author))
        assert self.runtime.projector is not None
        if reply.sequence:
            await self.runtime.projector.wait(reply.sequence)
        else:
            await self.runtime.projector.catch_up()
        if reply.message.conflicted:
            await self._tell(slot, reply.message)
        return reply.message

    async def _tell(self, slot: Slot, answer: files_pb2.TakeFileResponse) -> None:
        """An edit and a write have met."""
        done = f"is version {answer.version}" if answer.changed else f"gives way to version {answer.version}"
        reason = f"it was edited by hand while the document was written; the edit {done}, both are kept"
        LOGGER.warning("document %s of room %s: %s", slot.document_id, slot.room.id, reason)  # keys go with their room
        await self.store.report(slot, f"{reason}: mycelium memory history {slot.key}", answer.version)

    async def rescue(self, slot: Slot, text: str, seen: int | None) -> None:
        """A text that was written into a file at the moment when it was replaced becomes a version."""
        if not await tree_past.find(self.runtime, slot.room, slot.document_id, 0, text):
            await self._take(slot, files_pb2.TakeFileRequest(file=text, seen=seen))
