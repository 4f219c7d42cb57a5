"""Live streams: what a watcher missed, then what happens, over one raw ASGI response.

Joining without gap or repeat: who missed little is registered at the log's end and given the gap from memory. Else:
read the feed to its end, register and note the place, read the feed up to that place, then write what has come since.
Facts that the feed had already are left out by their sequence. A room that the reader may not see, or not any more,
is to it one that is gone. Who follows documents is told of them by the memory service in the feed's place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mycelium.memory.v1 import changes_pb2
from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import frames
from mycelium_gateway.actor import Call
from mycelium_gateway.guard import SERVER_SEND, WHEN_GONE
from mycelium_gateway.live import Live
from mycelium_gateway.protocol import write_now
from mycelium_gateway.watcher import Watcher
from mycelium_kernel import events
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.patterns import Pattern

LOGGER = logging.getLogger(__name__)
FEED_PAGE = 500
NO_FACT = 2**63 - 1
MISSED = "the last id is not of this log; read the rooms again"
FORGOTTEN = "what came after the last id is no longer kept; read the rooms again"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class _Forgotten(Exception):
    """The feed no longer goes back to where a watcher was."""


class LiveStream(Response):
    """The answer that lasts.

    `found` is what is watched, as it was at the place `since`; `last_id` is what the watcher had. With `patterns` it is
    documents that are followed, and nothing else of these rooms.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        call: Call,
        found: list[service_pb2.GetRoomResponse],
        since: int,
        last_id: str,
        patterns: Sequence[Pattern] = (),
    ) -> None:
        super().__init__()
        self._call = call
        self._live: Live = call.gateway.live
        self._last_id = last_id
        self._rooms = {one.room.id: one.room.name for one in found}
        self._members: dict[str, list[views_pb2.Member]] = {one.room.id: list(one.members) for one in found}
        self._since = since
        self._watcher = Watcher(
            dict(self._rooms),
            call.gateway.settings.stream_buffer_bytes,
            handle=call.actor.handle,
            may_see=self._may_see,
            patterns=patterns,
        )

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Write until the watcher leaves, is too slow, its token has run out, or its rooms are gone."""
        task = asyncio.current_task()
        assert task
        watcher = self._watcher
        watcher.on_overflow = task.cancel  # it may be waiting for a reader that does not read
        watcher.on_lost = lambda room_id: self._live.leave(watcher, room_id)
        leaving = self._call.gateway.leaving
        scope[WHEN_GONE](lambda: leaving.add(watcher.end))
        lasts_s = self._call.lasts_s()
        ending = asyncio.get_running_loop().call_later(lasts_s, watcher.end) if lasts_s < math.inf else None
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._write(scope[SERVER_SEND])
        except asyncio.CancelledError:
            if not watcher.overflowed:
                raise
            task.uncancel()
        finally:
            if ending:
                ending.cancel()
            self._live.remove(watcher)
            watcher.end()

    async def _write(self, send: Send) -> None:
        try:
            await self._catch_up(send)
            self._watcher.write_now = write_now(send)
            while chunk := await self._watcher.take():
                await _chunk(send, chunk)
        except Refusal:  # a room went while its past was read; the watcher comes back for the others
            await self._tell_gone(send)
        except (Unavailable, Internal) as error:
            LOGGER.info("a stream ends, its watcher resumes: %s", error)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell_gone(self, send: Send) -> None:
        with contextlib.suppress(Unavailable, Internal):
            for room_id, name in self._rooms.items():
                if not await self._may_see(room_id):
                    await _chunk(send, frames.gone(name))

    async def _may_see(self, room_id: str) -> bool:
        request = service_pb2.ReadFeedRequest(rooms=[room_id], after=NO_FACT, limit=1)
        try:
            await self._call.confirm(room_id)
            await self._call.ask_in_turn(request, service_pb2.ReadFeedResponse)
        except Refusal:
            return False
        return True

    async def _catch_up(self, send: Send) -> None:
        """Register the watcher for what comes, and write what it missed.

        Who reads `: connected` sees all that is stored from then on, so a new watcher is registered before it is sent;
        it is told the place at which it begins, so that it can resume though it had no event yet.
        """
        watcher = self._watcher
        watcher.hold()
        after = await self._resume_from()
        if after is None:
            await self._begin(send, frames.CONNECTED, MISSED if self._last_id else "")
        else:
            await _chunk(send, frames.CONNECTED)
            try:
                await self._resume(send, after)
            except _Forgotten:
                await self._begin(send, b"", FORGOTTEN)
        # Their names were looked up before the watcher was registered:
        watcher.release(filter(self._is_doubtful, self._rooms))

    async def _begin(self, send: Send, first: bytes, reset: str) -> None:
        """Start at what is stored now; `reset` says why what came before can't be told."""
        place = self._register()
        await _chunk(send, first + (frames.reset(reset) if reset else b"") + frames.mark(self._live.epoch, place))

    async def _resume(self, send: Send, after: int) -> None:
        """Write what came after that place. Raises `_Forgotten` when it is no longer kept."""
        missed = self._missed(after)
        if missed is not None:
            for first in range(0, len(missed), FEED_PAGE):
                await _chunk(send, b"".join(missed[first : first + FEED_PAGE]))
            return
        write = self._write_changes if self._watcher.patterns else self._write_feed
        after = await write(send, after, 0)
        self._watcher.after = after
        until = self._register()
        if until > after:
            await write(send, after, until)

    def _missed(self, after: int) -> list[bytes] | None:
        """Register, if memory holds all that was missed; not when some of it may be after the reader lost a room."""
        if self._watcher.patterns or any(self._is_doubtful(room_id) for room_id in self._rooms):
            return None
        missed = self._live.recent.after(after, self._rooms)
        if missed is not None:
            self._watcher.after = after
            self._register()
        return missed

    def _is_doubtful(self, room_id: str) -> bool:
        """Whether something happened since the rooms were looked up that may have made the reader a stranger."""
        return self._live.doubts.get(room_id, 0) > self._since

    def _register(self) -> int:
        place = self._live.add(self._watcher)
        while self._members:
            self._call.gateway.presence.begin(*self._members.popitem())
        return place

    async def _resume_from(self) -> int | None:
        """The sequence after which the watcher wants to read on; None: from now, since it had nothing of this log."""
        if not self._last_id:
            return None
        after = frames.read_identifier(self._last_id, self._live.epoch)
        if after is not None and after > self._live.position:
            after = after if after <= await self._call.gateway.connection.last_sequence(None) else None
        return after

    async def _write_feed(self, send: Send, after: int, until: int) -> int:
        """Write the facts between two places, page by page; returns the place up to which they were read."""
        more = True
        while more:
            request = service_pb2.ReadFeedRequest(rooms=self._rooms, after=after, until=until, limit=FEED_PAGE)
            reply = await self._call.ask_in_turn(request, service_pb2.ReadFeedResponse)
            if reply.message.truncated:
                raise _Forgotten
            written = []
            for fact in reply.message.facts:
                after = fact.sequence
                if frames.is_shown(fact.type):
                    event: Any = events.decode(fact.type, fact.data)
                    written.append(frames.frame(self._live.epoch, after, event, self._rooms[event.room_id]))
            if written:
                await _chunk(send, b"".join(written))
            more = reply.message.more
        return after

    async def _write_changes(self, send: Send, after: int, until: int) -> int:
        """Write what documents went through between two places; returns the place up to which was looked."""
        patterns, more = [pattern.text for pattern in self._watcher.patterns], True
        while more:
            request = changes_pb2.ListChangesRequest(rooms=self._rooms, patterns=patterns, after=after, until=until)
            page = (await self._call.ask_in_turn(request, changes_pb2.ListChangesResponse)).message
            written = [frames.changed(self._live.epoch, change, self._rooms[change.room_id]) for change in page.changes]
            if page.looked > after:  # the place is told even if nothing there was wanted
                written.append(frames.mark(self._live.epoch, page.looked))
                await _chunk(send, b"".join(written))
            after, more = page.looked, page.more
        return after


async def _chunk(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
