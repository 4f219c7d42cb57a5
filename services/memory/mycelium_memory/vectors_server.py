"""Vectors on a Qdrant server, asked by URL: `Vectors` by qdrant-client, for hubs whose services run on many machines.

Where there is no server, the tests run the client in its local mode, which answers the same calls from its own Python.
The library takes seconds to load, so it is loaded in a thread, and only by who has such a store.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from array import array
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, TypeVar

from mycelium_memory.child import Away, Failed
from mycelium_memory.conditions import Conditions
from mycelium_memory.embedding import Vector
from mycelium_memory.vectors import Entry, Found, Indexed, Near, Opened, Within, payload, point

ASK_S = 30
PAGE = 250
PIECE = 100  # documents written at a time
LOCAL = ":memory:"
KEYWORDS = ("room", "document", "tags", "author")
A = TypeVar("A")


class ServerStore:
    """The collections of one hub on a server: `<name>-<stamp>` each, and the alias `<name>` for the complete one."""

    def __init__(self, url: str, name: str = "mycelium", key: str = "") -> None:
        self._url, self._name, self._key = url, name, key
        self._client: Any = None

    async def current(self) -> str:
        client = await self.client()
        aliases = (await _done(client.get_aliases())).aliases
        named = [alias.collection_name for alias in aliases if alias.alias_name == self._name]
        return str(named[0]).removeprefix(f"{self._name}-") if named else ""

    async def switch(self, stamp: str) -> None:
        client = await self.client()
        words = await _words()
        target = f"{self._name}-{stamp}"
        steps = [
            words.CreateAliasOperation(create_alias=words.CreateAlias(collection_name=target, alias_name=self._name))
        ]
        if await self.current():
            steps.insert(0, words.DeleteAliasOperation(delete_alias=words.DeleteAlias(alias_name=self._name)))
        await _done(client.update_collection_aliases(steps))
        for collection in (await _done(client.get_collections())).collections:
            if collection.name.startswith(f"{self._name}-") and collection.name != target:
                await _done(client.delete_collection(collection.name))

    def vectors(self, stamp: str, dimensions: int) -> ServerVectors:
        return ServerVectors(self, f"{self._name}-{stamp}", dimensions)

    async def client(self) -> Any:
        """The one client of this store."""
        if self._client is None:
            module = await asyncio.to_thread(importlib.import_module, "qdrant_client")
            if self._url == LOCAL:
                self._client = module.AsyncQdrantClient(LOCAL)
            else:
                self._client = module.AsyncQdrantClient(url=self._url, api_key=self._key or None, timeout=ASK_S)
        return self._client

    @property
    def is_local(self) -> bool:
        """Whether there is no server behind it."""
        return self._url == LOCAL

    async def close(self) -> None:
        """Let go of the server."""
        if self._client is not None:
            await self._client.close()


class ServerVectors:
    """The vectors of one model in one collection."""

    def __init__(self, store: ServerStore, collection: str, dimensions: int) -> None:
        self._store, self._collection, self._dimensions = store, collection, dimensions
        self._opened: Opened | None = None
        self._gone: Opened | None = None

    @property
    def opened(self) -> Opened | None:
        return self._opened

    async def open(self) -> Opened:
        client, words = await self._store.client(), await _words()
        before = self._opened or self._gone
        times = before.times + 1 if before else 1
        found, why = Found.NOTHING, "there was none"
        if await _done(client.collection_exists(self._collection)):
            size = getattr((await _done(client.get_collection(self._collection))).config.params.vectors, "size", None)
            if size == self._dimensions:
                self._opened = Opened(Found.KEPT, "", times)
                return self._opened
            found, why = Found.BROKEN, f"its vectors have {size} numbers, not {self._dimensions}"
            await _done(client.delete_collection(self._collection))
        vectors = words.VectorParams(size=self._dimensions, distance=words.Distance.COSINE)
        await _done(client.create_collection(self._collection, vectors_config=vectors))
        if not self._store.is_local:
            await self._index_fields(client, words)
        self._opened = Opened(found, why, times)
        return self._opened

    async def put(self, entries: Sequence[Entry]) -> None:
        last = {(entry.room_id, entry.document): entry for entry in entries}  # of one document the last one counts
        each = list(last.values())
        for start in range(0, len(each), PIECE):
            await self._put(each[start : start + PIECE])

    async def delete(self, room_id: str, document: str, sequence: int) -> None:
        where = (await self._where()).document(room_id, document, up_to=sequence)
        await self._call("delete", points_selector=where, wait=True)

    async def delete_room(self, room_id: str) -> None:
        await self._call("delete", points_selector=(await self._where()).room(room_id), wait=True)

    async def search(self, vector: Vector, within: Within, most: int) -> list[Near]:
        if not within.rooms:
            return []
        where = (await self._where()).within(within)
        answer = await self._call(
            "query_points", query=_numbers(vector), query_filter=where, limit=most, with_payload=True
        )
        return [
            Near(said["room"], said["document"], said["section"], said["sequence"], hit.score)
            for hit in answer.points
            if (said := hit.payload)
        ]

    async def count(self, rooms: Sequence[str]) -> int:
        if not rooms:
            return 0
        return int((await self._call("count", count_filter=(await self._where()).rooms(rooms), exact=True)).count)

    async def documents(self) -> AsyncIterator[list[Indexed]]:
        async for page in self._pages(None):
            yield page

    async def close(self) -> None:
        self._opened = None

    async def _put(self, entries: Sequence[Entry]) -> None:
        where, words = await self._where(), await _words()
        newer = await self._newer(entries, where, words)
        points, rest = [], []
        for entry in entries:
            if entry.sequence < newer.get((entry.room_id, entry.document), 0):
                continue
            names = [point(entry.room_id, entry.document, number) for number in range(len(entry.passages))]
            points += [
                words.PointStruct(id=name, vector=_numbers(passage.vector), payload=payload(entry, passage))
                for name, passage in zip(names, entry.passages, strict=True)
            ]
            rest.append(where.document(entry.room_id, entry.document, but=names))
        if points:
            await self._call("upsert", points=points, wait=True)
        if rest:
            await self._call("delete", points_selector=words.Filter(should=rest), wait=True)

    async def _newer(self, entries: Sequence[Entry], where: Conditions, words: Any) -> dict[tuple[str, str], int]:
        """The version that each of the documents has there."""
        any_of = words.Filter(should=[where.document(entry.room_id, entry.document) for entry in entries])
        there: dict[tuple[str, str], int] = {}
        async for page in self._pages(any_of):
            there.update({(one.room_id, one.document): one.sequence for one in page})
        return there

    async def _pages(self, where: Any) -> AsyncIterator[list[Indexed]]:
        after = None
        while True:
            fields = ["room", "document", "sequence"]
            page, after = await self._call("scroll", scroll_filter=where, limit=PAGE, offset=after, with_payload=fields)
            found = {(said["room"], said["document"], said["sequence"]) for record in page if (said := record.payload)}
            yield [Indexed(*one) for one in sorted(found)]
            if after is None:
                return

    async def _index_fields(self, client: Any, words: Any) -> None:
        for field in KEYWORDS:
            schema = words.KeywordIndexParams(type="keyword", is_tenant=field == "room", prefix=field == "document")
            await _done(client.create_payload_index(self._collection, field, schema, wait=True))
        for field in ("time", "sequence"):
            await _done(
                client.create_payload_index(self._collection, field, words.PayloadSchemaType.INTEGER, wait=True)
            )

    async def _where(self) -> Conditions:
        return Conditions(await _words())

    async def _call(self, verb: str, **arguments: Any) -> Any:
        if self._opened is None:
            await self.open()
        try:
            return await _done(getattr(await self._store.client(), verb)(self._collection, **arguments))
        except Failed as error:
            if "not found" in str(error).lower():  # deleted by somebody: the next call makes it again, and says so
                self._gone, self._opened = self._opened, None
                raise Away(str(error)) from None
            raise


async def _words() -> Any:
    return sys.modules.get("qdrant_client.models") or await asyncio.to_thread(
        importlib.import_module, "qdrant_client.models"
    )


async def _done(call: Awaitable[A]) -> A:
    """What the server answered. Whether to try again is told by the kind of error."""
    try:
        return await call
    except Exception as error:
        status = getattr(error, "status_code", None) or (400 if isinstance(error, ValueError) else 503)
        if status < 500 and status != 429:
            raise Failed(f"the Qdrant server: {error}") from None
        raise Away(f"the Qdrant server: {error or type(error).__name__}") from None


def _numbers(vector: Vector) -> list[float]:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
