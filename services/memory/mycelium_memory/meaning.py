"""Search by meaning, whole: keeps the vectors as the documents are, and answers questions while they are being made.

`index.py` gives it the documents (`Source`) and tells it what changed; everything else it finds out: at start, and
whenever a store turns out to be new, it compares what is there with what ought to be. So nothing that is lost here has
to be told. Writes of this moment come before what is left of an older backlog. A changed model is indexed beside the
old one, which answers until the new one is complete.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from mycelium_kernel import tasks
from mycelium_memory.child import Away, Failed
from mycelium_memory.embedding import Embedding, Vector
from mycelium_memory.models import Model
from mycelium_memory.repeats import Repeats
from mycelium_memory.vectors import Entry, Found, Indexed, Near, Passage, Store, Vectors, Within

LOGGER = logging.getLogger(__name__)
EVER = 2**62
AGAIN_S = 1.0
TEXTS = 64  # that a backlog has embedded before it writes them
Key = tuple[str, str]
Old = Callable[[str], Embedding | None]  # what made the vectors of that stamp, if it is still to be had


def _none(_stamp: str) -> None:
    return None


@dataclass(frozen=True)
class Text:
    """A document as it is to be found: texts by section (see `pieces`), and what a search may be narrowed by."""

    sequence: int
    passages: tuple[tuple[str, str], ...]
    tags: tuple[str, ...] = ()
    author: str = ""
    time_ms: int = 0


class Source(Protocol):
    """The documents, from the service's tables. Every call is of this moment and quick."""

    def documents(self) -> Iterable[Indexed]:
        """Every document that is to be found by meaning, with its present version."""
        ...

    def read(self, room_id: str, document: str) -> Text | None:
        """A document; None when there is none, or it is not to be found by meaning."""
        ...


@dataclass
class Shelf:
    """The vectors of a model with what makes them."""

    embedding: Embedding
    vectors: Vectors
    times: int = 0  # the opening that was compared with the documents
    backlog: dict[Key, None] = field(default_factory=dict)


class Meaning:
    """Run `work` as a worker; `changed` and `search` may be called at any time, also before."""

    def __init__(self, store: Store, embedding: Embedding, source: Source, old: Old = _none) -> None:
        self._store, self._source, self._old_of = store, source, old
        self._new = Shelf(embedding, store.vectors(embedding.model.stamp, embedding.model.dimensions))
        self._old: Shelf | None = None
        self._fresh: dict[Key, None] = {}
        self._doing: dict[Key, int] = {}
        self._refused: dict[Key, str] = {}
        self._rooms_gone: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._rested = asyncio.Condition()
        self._questions: Repeats[Vector] = Repeats()
        self._is_looked_at = self._is_current = False
        self._why = "the vectors are not open yet"

    # What the service asks.

    @property
    def model(self) -> Model:
        """The model that answers now."""
        return (self._old or self._new).embedding.model

    def health(self) -> dict[str, Any]:
        """The model, whether it answers, and how many documents are not in the vectors yet."""
        embedding = (self._old or self._new).embedding
        waiting = len({*self._fresh, *self._doing}.union(*(shelf.backlog for shelf in self._shelves())))
        said = {"model": embedding.model.name, "chosen": embedding.model.why, "waiting": waiting}
        if self._refused:
            said["refused"] = len(self._refused)
        said["state"] = "ready" if embedding.is_ready and not self._why else self._why or embedding.why_not
        if self._old is not None:
            said["next_model"] = self._new.embedding.model.name
        return said

    def changed(self, room_id: str, document: str) -> None:
        """A document was written or removed."""
        self._fresh[room_id, document] = None
        self._refused.pop((room_id, document), None)
        self._wake.set()

    def renew(self, room_id: str = "") -> int:
        """Make every vector again, or those of a room; how many documents that are."""
        self._new.times = 0
        keys = [(one.room_id, one.document) for one in self._source.documents() if room_id in {"", one.room_id}]
        for key in keys:
            self._refused.pop(key, None)
        self._new.backlog.update(dict.fromkeys(keys))
        return len(keys)

    def waiting(self, rooms: Iterable[str]) -> int:
        """How many documents of these rooms can't be found yet, or only as they were."""
        looked = set(rooms)
        waiting = {*self._fresh, *self._doing, *(self._old or self._new).backlog}
        return sum(1 for room_id, _document in waiting if room_id in looked)

    def room_gone(self, room_id: str) -> None:
        """A room was deleted."""
        self._rooms_gone[room_id] = None
        self._wake.set()

    async def search(self, question: str, within: Within, most: int, patience_s: float = 0.0) -> list[Near]:
        """The nearest passages. Raises `Away` or `Failed` with the reason, when meaning is not to be had now.

        A hit may be of a version that has just been replaced: the caller drops those whose sequence is not the
        document's own any more.
        """
        if self._why:
            raise Away(self._why)
        shelf = self._old or self._new
        try:
            vector = await self._vector(shelf.embedding, question, patience_s)
            return await shelf.vectors.search(vector, within, most)
        except Away:
            if shelf is (self._old or self._new):
                raise
        return await self.search(question, within, most, patience_s)  # the new model has just taken over

    async def _vector(self, embedding: Embedding, question: str, patience_s: float) -> Vector:
        asked = (embedding.model.stamp, question)
        vector = self._questions.find(asked, ())
        if vector is None:
            vector = await embedding.embed_query(question, patience_s)
            self._questions.keep(asked, (), self._questions.mark(()), vector)
        return vector

    async def settled(self, rooms: Sequence[str], within_s: float) -> bool:
        """Whether everything that was written to these rooms until now is found, waiting for it `within_s` at most."""

        def is_settled() -> bool:
            return not self._why and not self.waiting(rooms)

        try:
            async with asyncio.timeout(within_s), self._rested:
                await self._rested.wait_for(is_settled)
        except TimeoutError:
            return False
        return True

    # The worker.

    async def work(self) -> None:
        """Until cancelled."""
        both = [asyncio.create_task(self._again(self._keep_fresh)), asyncio.create_task(self._again(self._keep_up))]
        try:
            await asyncio.gather(*both)
        finally:
            await tasks.end(both)
            for shelf in (self._new, self._old):
                if shelf is not None:
                    await shelf.embedding.stop()
                    await shelf.vectors.close()

    async def _again(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except (Away, Failed) as error:
                LOGGER.info("search by meaning: %s", error)
                await asyncio.sleep(AGAIN_S)

    async def _keep_fresh(self) -> None:
        """What was written last, one at a time."""
        self._wake.clear()
        while self._rooms_gone:
            room_id = next(iter(self._rooms_gone))
            for shelf in self._shelves():
                await shelf.vectors.delete_room(room_id)
            self._rooms_gone.pop(room_id, None)
        while self._fresh:
            await self._do([next(iter(self._fresh))], self._fresh, self._shelves())
        await self._wake.wait()

    async def _keep_up(self) -> None:
        """Open, compare, catch up; then look again when a store was opened anew."""
        await self._open()
        for shelf in reversed(self._shelves()):  # the one that answers first
            while shelf.backlog:
                await self._do(list(islice(shelf.backlog, TEXTS)), shelf.backlog, [shelf])
        if not self._is_current:
            await self._switch()
        await asyncio.sleep(AGAIN_S)

    async def _open(self) -> None:
        if not self._is_looked_at:
            current = await self._store.current()
            self._is_looked_at, self._is_current = True, current == self._new.embedding.model.stamp
            embedding = self._old_of(current) if current and not self._is_current else None
            if embedding is not None:
                self._old = Shelf(embedding, self._store.vectors(current, embedding.model.dimensions))
        for shelf in self._shelves():
            opened = shelf.vectors.opened or await shelf.vectors.open()
            if opened.times != shelf.times:
                if opened.found is Found.BROKEN:
                    LOGGER.warning("the vectors of %s are made anew: %s", shelf.embedding.model.name, opened.why)
                await self._compare(shelf)
                shelf.times = opened.times
                if self._is_current:  # until what says so was deleted together with the vectors
                    self._is_current = await self._store.current() == self._new.embedding.model.stamp
        self._why = ""
        await self._tell()

    async def _compare(self, shelf: Shelf) -> None:
        """What ought to be there and is not, or in another version, and what is there and ought not to be."""
        there: dict[Key, int] = {}
        async for page in shelf.vectors.documents():
            there.update({(one.room_id, one.document): one.sequence for one in page})
        for number, one in enumerate(self._source.documents()):
            key = (one.room_id, one.document)
            if there.pop(key, None) != one.sequence:
                shelf.backlog[key] = None
            if number % 1_000 == 0:
                await asyncio.sleep(0)
        shelf.backlog.update(dict.fromkeys(there))

    async def _do(self, keys: Sequence[Key], waiting: dict[Key, None], shelves: Sequence[Shelf]) -> None:
        """Write these documents as they are now. What failed goes on waiting."""
        for key in keys:
            waiting.pop(key, None)
            self._doing[key] = self._doing.get(key, 0) + 1
        try:
            waiting.update(dict.fromkeys(await self._write(keys, shelves)))
        except Away:
            waiting.update(dict.fromkeys(keys))
            raise
        except Failed as error:
            if len(keys) == 1:
                LOGGER.warning("%s can't be found by meaning: %s", keys[0][1], error)
                self._refused[keys[0]] = str(error)
            else:  # one of them, and the others shall not wait for it
                waiting.update(dict.fromkeys(keys))
                for key in keys:
                    await self._do([key], waiting, shelves)
        finally:
            for key in keys:
                self._doing[key] -= 1
                if not self._doing[key]:
                    del self._doing[key]
            await self._tell()

    async def _write(self, keys: Sequence[Key], shelves: Sequence[Shelf]) -> list[Key]:
        """Returns those that are not done: for which there was no room, and those that changed meanwhile."""
        texts: dict[Key, Text | None] = {}
        size = 0
        for key in keys:
            if size >= TEXTS:
                break
            texts[key] = self._source.read(*key)
            size += len(texts[key].passages) if texts[key] else 1  # type: ignore[union-attr]
        for shelf in shelves:
            await _write(shelf, texts)
        changed = [key for key, text in texts.items() if _version(self._source.read(*key)) != _version(text)]
        return [*changed, *(key for key in keys if key not in texts)]

    async def _switch(self) -> None:
        """The new model is complete."""
        old, self._old = self._old, None
        if old is not None:
            await old.embedding.stop()
            await old.vectors.close()
        await self._store.switch(self._new.embedding.model.stamp)
        self._is_current = True
        await self._tell()

    async def _tell(self) -> None:
        async with self._rested:
            self._rested.notify_all()

    def _shelves(self) -> list[Shelf]:
        return [shelf for shelf in (self._new, self._old) if shelf is not None]


async def _write(shelf: Shelf, texts: dict[Key, Text | None]) -> None:
    for (room_id, document), text in texts.items():
        if text is None:
            await shelf.vectors.delete(room_id, document, EVER)
    there = [(key, text) for key, text in texts.items() if text is not None]
    vectors = iter(await shelf.embedding.embed([said for _key, text in there for _section, said in text.passages]))
    await shelf.vectors.put(
        [
            Entry(
                *key,
                text.sequence,
                tuple(Passage(section, next(vectors)) for section, _said in text.passages),
                text.tags,
                text.author,
                text.time_ms,
            )
            for key, text in there
        ]
    )


def _version(text: Text | None) -> int:
    return text.sequence if text else 0
