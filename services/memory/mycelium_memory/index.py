"""Keeps the vectors up with the tables: what `meaning.py` is told and asks. One replica does, the owner of the index.

Nothing is loaded or started before there is a document, so that a hub starts as quickly as without it. What is told
here may be lost: `meaning.py` compares vectors and tables whenever it opens them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from mycelium.memory.v1 import views_pb2
from mycelium_kernel import tasks
from mycelium_kernel.errors import Unavailable
from mycelium_memory import models, pieces, sections, views, words
from mycelium_memory.embedding import Embedder
from mycelium_memory.fetching import fetch
from mycelium_memory.meaning import Meaning, Text
from mycelium_memory.models import Model, NoModel
from mycelium_memory.settings import IndexSettings
from mycelium_memory.vectors import Indexed, Store
from mycelium_memory.vectors_edge import EdgeStore

if TYPE_CHECKING:
    from mycelium_kernel.projector import Projector
    from mycelium_kernel.run import Runtime
    from mycelium_kernel.tables import Tables

LOGGER = logging.getLogger(__name__)
REST_S = 2.0  # after the start, unless somebody writes or asks
AGAIN_S = 1.0
PAGE = 500
# What is to be found by meaning: rooms that are gone have no row, what was removed has no text.
LIST = """SELECT room_id, document_id, folded, sequence, content FROM document
  WHERE (room_id, document_id) > (?, ?) AND removed = 0 AND text != ''
  AND EXISTS (SELECT 1 FROM room WHERE room.room_id = document.room_id) ORDER BY room_id, document_id LIMIT ?"""
READ = """SELECT key, text, content, sequence, updated_by, updated_at FROM document INDEXED BY document_folded
  WHERE room_id = ? AND folded = ? AND removed = 0 AND text != ''
  AND EXISTS (SELECT 1 FROM room WHERE room.room_id = document.room_id)"""
CHANGED = "SELECT room_id, folded FROM document INDEXED BY document_sequence WHERE sequence > ?"
GONE = "SELECT room_id FROM erased INDEXED BY erased_left WHERE state < 2"


class Documents:
    """The documents as `meaning.Source` has them, from the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def documents(self) -> Iterator[Indexed]:
        """In pages: the tables change between them."""
        after = ("", "")
        while rows := self._tables.all(LIST, *after, PAGE):
            for room_id, _document_id, folded, sequence, content in rows:
                if not views_pb2.Content.FromString(content).unsearched:
                    yield Indexed(room_id, folded, sequence)
            after = rows[-1][:2]

    def read(self, room_id: str, document: str) -> Text | None:
        row = self._tables.one(READ, room_id, document)
        if row is None:
            return None
        key, text, content, sequence, author, time_ms = row
        held = views_pb2.Content.FromString(content)
        if held.unsearched:
            return None
        passages = tuple(_passages(key, text, held))
        tags = tuple(tag.casefold() for tag in held.tags)
        return Text(sequence, passages, tags, author, time_ms)


def _passages(key: str, text: str, held: views_pb2.Content) -> Iterator[tuple[str, str]]:
    found = sections.parted(text, views.headings(held))
    for number, section in enumerate(found):
        for piece in pieces.pieces(words.about(key, found, number), text[section.start : section.end]):
            yield section.slug, piece


class Index:
    """The vectors of this process. `meaning` is None until they are needed and there is a model; `why` says why."""

    def __init__(self, settings: IndexSettings) -> None:
        self.meaning: Meaning | None = None
        self.why = "the search by meaning is starting"
        self._settings = settings
        self._needed = asyncio.Event()
        self._told = 0  # the position of the tables up to which `meaning` knows what has changed
        self._gone: set[str] = set()

    def wake(self) -> None:
        """Somebody asks."""
        self._needed.set()

    def health(self) -> dict[str, Any]:
        """The model in force, and how many documents can't be found by it yet."""
        if self.meaning is None:
            return {"model": "", "chosen": "", "waiting": 0, "state": self.why}
        return self.meaning.health()

    async def work(self, runtime: Runtime) -> None:
        """A worker: until cancelled, or until there turns out to be no model."""
        projector = runtime.projector
        assert projector is not None, "an index is made from tables"
        runtime.tell("search", self.health)
        try:
            await self._until_needed(projector)
            model = await self._model()
        except NoModel as error:
            self.why = str(error)
            LOGGER.warning("memory is searched by words only: %s", error)
            runtime.report("search", self.why)
            return
        await self._keep(projector, model)

    async def _until_needed(self, projector: Projector) -> None:
        """Until there is a document, and the hub has had time to start, or somebody asks or writes."""
        while projector.tables.one("SELECT 1 FROM document WHERE removed = 0 LIMIT 1") is None:
            await _more(projector, projector.tables.position)
            self._needed.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                await self._needed.wait()

    async def _model(self) -> Model:
        settings, choose = self._settings, self._choose
        if settings.is_fetched and settings.model != "minilm":
            try:
                return await asyncio.to_thread(choose, "bge")
            except NoModel:
                self.why = f"{models.BGE} is being fetched"
                trouble = await fetch(settings.folder / "models")
                if trouble:
                    LOGGER.warning("%s", trouble)
        return await asyncio.to_thread(choose, settings.model)

    def _choose(self, name: str) -> Model:
        return models.choose(name, self._settings.folder / "models", os.environ)

    async def _keep(self, projector: Projector, model: Model) -> None:
        store, old = self._store(), {}
        if not self._settings.url and await store.current() not in {"", model.stamp}:
            old = await asyncio.to_thread(self._others, model)
        self.meaning = meaning = Meaning(
            store, Embedder(model, self._settings.threads), Documents(projector.tables), partial(self._embedder, old)
        )
        LOGGER.info("memory is searched by %s: %s", model.name, model.why)
        self._told = projector.tables.position
        parts = [asyncio.create_task(meaning.work()), asyncio.create_task(self._follow(projector))]
        try:  # not `gather`, which would cancel them twice, and once more while they close what they have open
            done, _running = await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            for part in done:
                part.result()
        finally:
            self.meaning = None
            await tasks.end(parts, again_s=5.0)

    async def _follow(self, projector: Projector) -> None:
        """Tell what changes, for ever."""
        while True:
            await _more(projector, self._told)
            self.tell(projector.tables)

    def tell(self, tables: Tables) -> None:
        """Tell what has changed until now. A search does it too, so that it knows what it can't find yet."""
        if self.meaning is None or tables.position == self._told:
            return
        before, self._told = self._told, tables.position
        for room_id, folded in tables.all(CHANGED, before):
            self.meaning.changed(room_id, folded)
        erased = {room_id for (room_id,) in tables.all(GONE)}
        for room_id in erased - self._gone:
            self.meaning.room_gone(room_id)
        self._gone = erased

    def _store(self) -> Store:
        settings = self._settings
        if not settings.url:
            return EdgeStore(settings.folder / "vectors")
        from mycelium_memory.vectors_server import ServerStore

        return ServerStore(settings.url, settings.name, settings.key)

    def _others(self, model: Model) -> dict[str, Model]:
        """Models by stamp that answer until the one in force has made its vectors, where they are still here."""
        found: dict[str, Model] = {}
        for name in ("bge", "minilm"):
            with contextlib.suppress(NoModel):
                other = self._choose(name)
                found[other.stamp] = other
        found.pop(model.stamp, None)
        return found

    def _embedder(self, old: dict[str, Model], stamp: str) -> Embedder | None:
        return Embedder(old[stamp], self._settings.threads) if stamp in old else None


async def _more(projector: Projector, position: int) -> None:
    """Return when the tables hold more than up to a position."""
    while True:
        try:
            await projector.wait(position + 1)
        except Unavailable:  # they are being mended
            await asyncio.sleep(AGAIN_S)
        else:
            return
