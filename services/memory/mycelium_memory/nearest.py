"""Who is asked for what is near a question: the index of this process, or the replica that owns one.

The owner is the only one that listens for `FindNear` and `RenewVectors`. While none does, a search goes by words, says
so, and does not ask again for a moment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from mycelium.memory.v1 import search_pb2
from mycelium_kernel import rooms_seen
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor, Context, Direct
from mycelium_memory.child import Away, Failed
from mycelium_memory.index import Index
from mycelium_memory.vectors import Within

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

SETTLE_S, FEW = 0.3, 16  # a search waits that long for the last few writes to its room
ASK_S = 1.0
PAUSE_S = 2.0  # before the owner is asked again after it was not there
NOBODY = "no replica that keeps the index answers"


class Nearest(Protocol):
    """What finds by meaning."""

    def version(self) -> str:
        """What answers depend on beside the documents: the model. Empty: it is not known, and no answer is kept."""
        ...

    async def find(self, runtime: Runtime, asked: search_pb2.FindNearRequest) -> search_pb2.FindNearResponse:
        """What is near, or why it can't be looked for; never raises."""
        ...


class Here:
    """The index of this process."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def version(self) -> str:
        return self._index.meaning.model.stamp if self._index.meaning else ""

    async def find(self, runtime: Runtime, asked: search_pb2.FindNearRequest) -> search_pb2.FindNearResponse:
        index = self._index
        index.wake()
        if runtime.tables:
            index.tell(runtime.tables)
        answer = search_pb2.FindNearResponse(meaning=self._state(asked.room_id))
        if index.meaning is None:
            return answer
        if 0 < answer.meaning.waiting <= FEW:
            await index.meaning.settled([asked.room_id], SETTLE_S)
        try:
            near = await index.meaning.search(asked.query, within_of(asked), asked.most)
        except (Away, Failed) as error:
            answer.meaning.why_not = str(error)
            return answer
        for one in near:
            answer.near.add(document=one.document, section=one.section, sequence=one.sequence)
        answer.meaning.CopyFrom(self._state(asked.room_id))
        return answer

    def _state(self, room_id: str) -> search_pb2.MeaningState:
        meaning = self._index.meaning
        if meaning is None:
            return search_pb2.MeaningState(why_not=self._index.why)
        return search_pb2.MeaningState(model=meaning.model.name, waiting=meaning.waiting([room_id]))

    def answers(self) -> tuple[Direct, ...]:
        """What the owner answers."""
        return (Direct(search_pb2.FindNearRequest, self._find), Direct(search_pb2.RenewVectorsRequest, self._renew))

    async def _find(
        self, runtime: Runtime, asked: search_pb2.FindNearRequest, _context: Context
    ) -> tuple[search_pb2.FindNearResponse, int]:
        if runtime.projector:
            await runtime.projector.catch_up()
        return await self.find(runtime, asked), 0

    async def _renew(
        self, runtime: Runtime, request: search_pb2.RenewVectorsRequest, context: Context
    ) -> tuple[search_pb2.RenewVectorsResponse, int]:
        assert runtime.projector is not None, "an index is made from tables"
        await runtime.projector.catch_up()
        room = rooms_seen.find_room(runtime.projector.tables, request.room, context)
        self._index.wake()
        documents = self._index.meaning.renew(room.id) if self._index.meaning else 0
        return search_pb2.RenewVectorsResponse(documents=documents, meaning=self._state(room.id)), 0


class Elsewhere:
    """Another replica's."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def version(self) -> str:
        return ""

    async def find(self, runtime: Runtime, asked: search_pb2.FindNearRequest) -> search_pb2.FindNearResponse:
        why = NOBODY
        if time.monotonic() >= self._not_before:
            try:
                actor = Actor("", "")
                reply = await runtime.bus.ask(asked, search_pb2.FindNearResponse, actor=actor, timeout_s=ASK_S)
            except (Unavailable, Refusal, Internal) as error:
                self._not_before = time.monotonic() + PAUSE_S
                why = NOBODY if isinstance(error, Unavailable) else str(error)
            else:
                return reply.message
        return search_pb2.FindNearResponse(meaning=search_pb2.MeaningState(why_not=why))


def within_of(asked: search_pb2.FindNearRequest) -> Within:
    """Where a question looks."""
    return Within(
        rooms=(asked.room_id,),
        prefix=asked.prefix,
        tags=tuple(asked.tags),
        author=asked.author,
        since_ms=asked.since_ms if asked.HasField("since_ms") else None,
        until_ms=asked.until_ms if asked.HasField("until_ms") else None,
    )
