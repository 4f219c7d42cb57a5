"""Moves whole rooms out of and into a hub, page by page: neither side ever holds one whole.

An import writes into a room that nobody sees until it is complete. Whatever goes wrong, that room is given up; should
this process die, the rooms service gives it up. A repeat under the same key goes on, or begins anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mycelium.memory.v1 import events_pb2 as documents_events_pb2
from mycelium.memory.v1 import transfer_pb2 as documents_pb2
from mycelium.rooms.v1 import service_pb2, transfer_pb2, views_pb2
from mycelium_gateway import bundle
from mycelium_gateway.actor import Call
from mycelium_gateway.connection import until_disconnect
from mycelium_kernel import tasks
from mycelium_kernel.clock import rfc3339
from mycelium_kernel.errors import Internal, Refusal, Unavailable

LOGGER = logging.getLogger(__name__)
FACTS, FACTS_BYTES = 200, 3 * 1024 * 1024  # brought in one step
NO_COUNT = 2**63 - 1  # a number of facts that no room has
TRIES = 20  # imports under one key, each after the one before was given up
ERASED = "has been erased"  # so the kernel tells a key whose fact is gone from one of another request
STEP_S = 30.0
OF_MEMORY = documents_events_pb2.DocumentWritten.DESCRIPTOR.file.package + "."
Portable = transfer_pb2.PortableFact | documents_pb2.DocumentFact


class Export(Response):
    """A bundle as it is read. When reading fails, the answer is cut, and its reader sees that its end is missing."""

    def __init__(
        self,
        call: Call,
        first: transfer_pb2.ExportRoomResponse,
        documents: documents_pb2.ExportDocumentsResponse,
        *,
        packed: bool,
    ) -> None:
        super().__init__()
        self._call = call
        self._first = first
        self._documents = documents
        self._packing: Any = zlib.compressobj(bundle.GZIP_LEVEL, wbits=bundle.GZIP_BITS) if packed else None
        self._type = b"application/gzip" if packed else b"application/x-ndjson"

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Write page after page, as fast as the reader takes them, until it has left."""
        headers = [(b"content-type", self._type), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        left = asyncio.create_task(until_disconnect(receive), name="export-left")
        try:
            async for text in self._pages():
                if left.done():
                    return
                part = await asyncio.to_thread(self._packing.compress, text) if self._packing else text
                if part:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        except (Refusal, Unavailable, Internal) as error:
            LOGGER.info("an export ends before its time: %s", error)
            return
        finally:
            await tasks.end([left])
        rest = self._packing.flush() if self._packing else b""
        await send({"type": "http.response.body", "body": rest, "more_body": False})

    async def _pages(self) -> AsyncIterator[bytes]:
        writer, gateway = bundle.Writer(), self._call.gateway
        now = rfc3339(int(gateway.clock().timestamp() * 1000))
        yield writer.begin(self._first, gateway.live.epoch, now)
        async for facts in merged(self._facts(), self._versions()):
            yield writer.facts(facts)
        yield writer.end()

    async def _facts(self) -> AsyncIterator[Portable]:
        """What the rooms service has."""
        page = self._first
        while True:
            for fact in page.facts:
                yield fact
            if not page.more:
                return
            request = transfer_pb2.ExportRoomRequest(
                room=page.room.id, after=page.facts[-1].sequence, until=self._first.until
            )
            page = (await self._call.ask(request, transfer_pb2.ExportRoomResponse)).message

    async def _versions(self) -> AsyncIterator[Portable]:
        """What the memory service has."""
        page = self._documents
        while True:
            for fact in page.facts:
                yield fact
            if not page.more:
                return
            request = documents_pb2.ExportDocumentsRequest(
                room=self._first.room.id, after=page.facts[-1].sequence, until=self._documents.until
            )
            page = (await self._call.ask(request, documents_pb2.ExportDocumentsResponse)).message


async def merged(one: AsyncIterator[Portable], other: AsyncIterator[Portable]) -> AsyncIterator[list[Portable]]:
    """The facts of both in the log's order, some at a time."""
    heads = [(await anext(source, None), source) for source in (one, other)]
    batch: list[Portable] = []
    size = 0
    while left := [(fact, source) for fact, source in heads if fact is not None]:
        fact, source = min(left, key=lambda head: head[0].sequence)
        batch.append(fact)
        size += fact.ByteSize()
        if size > FACTS_BYTES or len(batch) >= FACTS:
            yield batch
            batch, size = [], 0
        following = await anext(source, None)
        heads = [(following if its is source else head, its) for head, its in heads]
    if batch:
        yield batch


class Import:
    """One import: takes a bundle as it comes and makes a room of it."""

    def __init__(self, call: Call, name: str, *, operator: bool, limit_bytes: int) -> None:
        self._call = call
        self._name = name
        self._operator = operator
        self._lines = bundle.Lines(limit_bytes)
        self._reader = bundle.Reader()
        self._room: transfer_pb2.ImportRoomResponse | None = None
        self._try = 0
        self._is_complete = False
        self._facts: list[transfer_pb2.PortableFact] = []
        self._size = 0
        self._versions: list[documents_pb2.DocumentFact] = []
        self._versions_size = 0
        self._versions_count = self._versions_brought = 0

    async def run(self, body: AsyncIterator[bytes]) -> tuple[views_pb2.Room, int]:
        """The room, and the sequence of the fact that shows it. Refused whole when the bundle is not whole."""
        try:
            async for chunk in body:
                for line in self._lines.take(chunk):
                    await self._take(line)
            self._lines.end()
            self._reader.finish()
            return await self._finish()
        except Exception:
            await self._give_up()
            raise

    async def _take(self, line: bytes) -> None:
        fact = self._reader.take(line)
        if fact is None:
            if self._room is None:
                await self._begin()
            return
        if fact.type.startswith(OF_MEMORY):
            await self._take_version(fact)
            return
        if self._size + fact.ByteSize() > FACTS_BYTES or len(self._facts) >= FACTS:
            await self._bring()
        self._facts.append(fact)
        self._size += fact.ByteSize()

    async def _take_version(self, fact: transfer_pb2.PortableFact) -> None:
        if self._versions_size + fact.ByteSize() > FACTS_BYTES or len(self._versions) >= FACTS:
            await self._bring_versions()
        version = documents_pb2.DocumentFact(sequence=fact.sequence, type=fact.type, data=fact.data, at=fact.at)
        self._versions.append(version)
        self._versions_size += version.ByteSize()
        self._versions_count += 1

    async def _bring_versions(self) -> None:
        versions, self._versions, self._versions_size = self._versions, [], 0
        if not versions or self._is_complete:
            return
        assert self._room is not None
        request = documents_pb2.ImportDocumentsRequest(room_id=self._room.room_id, facts=versions)
        step = f"versions.{self._try}.{versions[0].sequence}"
        reply = await self._call.ask(request, documents_pb2.ImportDocumentsResponse, step=step, timeout_s=STEP_S)
        self._versions_brought = reply.message.facts

    async def _begin(self) -> None:
        """Make the hidden room, or find the one that was made under this key and not given up."""
        request = self._request()
        for self._try in range(TRIES):
            try:
                reply = await self._call.ask(request, transfer_pb2.ImportRoomResponse, step=f"import.{self._try}")
            except Refusal as refusal:
                if refusal.slug == "key.reused" and ERASED in refusal.detail:
                    continue
                raise
            self._room = reply.message
            probe = transfer_pb2.FinishImportRequest(room_id=self._room.room_id, facts=NO_COUNT)
            try:
                await self._call.ask(probe, transfer_pb2.FinishImportResponse, step=f"probe.{self._try}")
            except Refusal as refusal:
                if refusal.slug == "room.import_refused":  # facts are missing, as they should
                    return
                self._room = None
            else:
                self._is_complete = True
                return
        raise Refusal("key.reused", f"{TRIES} imports under this key were given up; use a new key")

    def _request(self) -> transfer_pb2.ImportRoomRequest:
        manifest = self._reader.manifest
        assert manifest is not None
        try:
            return transfer_pb2.ImportRoomRequest(
                name=self._name or manifest.room.name,
                title=manifest.room.title,
                private=manifest.room.private,
                created_by=manifest.room.created_by,
                created_at=bundle.timestamp(manifest.room.created_at),
                members=manifest.members,
                operator=self._operator,
            )
        except ValueError:
            raise bundle.refused("its first line holds what can't be") from None

    async def _bring(self) -> None:
        facts, self._facts, self._size = self._facts, [], 0
        if not facts or self._is_complete:
            return
        assert self._room is not None
        request = transfer_pb2.ImportFactsRequest(room_id=self._room.room_id, facts=facts)
        step = f"facts.{self._try}.{facts[0].sequence}"
        await self._call.ask(request, transfer_pb2.ImportFactsResponse, step=step, timeout_s=STEP_S)

    async def _finish(self) -> tuple[views_pb2.Room, int]:
        await self._bring()
        await self._bring_versions()
        assert self._room is not None
        assert self._reader.manifest is not None
        if self._versions_brought != self._versions_count and not self._is_complete:
            raise bundle.refused(f"{self._versions_brought:,} of {self._versions_count:,} versions were brought")
        facts = self._reader.count - self._versions_count
        request = transfer_pb2.FinishImportRequest(room_id=self._room.room_id, facts=facts)
        reply = await self._call.ask(request, transfer_pb2.FinishImportResponse, step=f"finish.{self._try}")
        self._is_complete = True
        asked = service_pb2.GetRoomRequest(room=self._room.room_id)
        try:
            room = (await self._call.ask(asked, service_pb2.GetRoomResponse)).message.room
        except Refusal:  # the operator brings private rooms, and does not see them
            room = bundle.shown(self._reader.manifest, self._room.room_id, self._room.name)
        return room, reply.sequence

    async def _give_up(self) -> None:
        if self._room is None or self._is_complete:
            return
        request = transfer_pb2.AbandonImportRequest(room_id=self._room.room_id)
        with contextlib.suppress(Refusal, Unavailable, Internal):
            await self._call.ask(request, transfer_pb2.AbandonImportResponse, step=f"abandon.{self._try}")
