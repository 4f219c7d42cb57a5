"""Appends facts to the log: singly while little waits, in atomic batches when much does, always acknowledged from disk.

One writer loop a process for free facts. JetStream syncs once a message but only about four times a batch of any size,
so a batch pays from about sixteen waiting facts (docs/decisions). Only free facts share a batch: two facts of one
entity in one batch would both be judged against the state before it. So a conditional fact waits for nobody: it goes
out at once, beside whatever else is on its way.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime

import nats.errors
import nats.js.errors
from nats.js.api import PubAck

from mycelium_kernel import headers, tasks
from mycelium_kernel.appending import Append, Appended
from mycelium_kernel.clock import Clock
from mycelium_kernel.connections import NATS_ERRORS, Connection
from mycelium_kernel.errors import StoreFull, Unavailable, WrongSequence, words
from mycelium_kernel.space import Space

LOGGER = logging.getLogger(__name__)
BATCH_FROM = 16  # measured: below this, single appends in flight together are as quick
BATCH_MESSAGES = 1_000  # JetStream's limit
BATCH_BYTES = 4 * 1024 * 1024
GROUPS = 8  # batches of one decision each that are on their way at once; JetStream takes 50 a stream of all processes
QUEUE_LIMIT = 10_000  # facts that may wait before callers are told to come back later
ATTEMPT_S = 2.0
RETRY_S = 0.05

NEVER = (nats.errors.MaxPayloadError, nats.errors.BadSubjectError, nats.errors.BadHeaderError)  # bugs: no use to retry
WRONG_SEQUENCE = {10071, 10164}
STORE_FULL = {10023, 10047, 10077, 10122}


class Log:
    """The writer of one process. `append` answers when the fact is on disk."""

    def __init__(
        self, connection: Connection, clock: Clock, on_batch: Callable[[int], None] = lambda _size: None
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._on_batch = on_batch
        self._space = Space(connection.settings.store)
        self._waiting: list[Append] = []
        self._sending: list[Append] = []
        self._alone: dict[asyncio.Task[None], Append] = {}  # conditional facts on their way
        self._together = asyncio.Semaphore(GROUPS)
        self._wake = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the writer loop."""
        self._writer = asyncio.create_task(self._write(), name="log-writer")

    async def stop(self) -> None:
        """Stop the writer; what waits or has no answer yet is told that the log is unavailable."""
        writer, self._writer = self._writer, None
        left = [*self._alone.values(), *self._sending, *self._waiting]
        await tasks.end([writer, *self._alone])
        for append in left:
            append.fail(Unavailable("the service is stopping"))
        self._waiting, self._sending = [], []

    async def append(
        self, subject: str, data: bytes, fact_headers: dict[str, str], *, expect: int | None, deadline: datetime
    ) -> Appended:
        """Append one fact and return its place.

        Raises `WrongSequence` when `expect` does not hold, `DeadlinePassed` when nothing was sent in time,
        `StoreFull` when the disk or a limit of the server is full, `Unavailable` when no acknowledgement came before
        the deadline: then it may or may not be stored, and a retry under the same key finds out.
        """
        if self._writer is None:
            raise Unavailable("the service is stopping")
        if len(self._waiting) + len(self._alone) >= QUEUE_LIMIT:
            raise Unavailable("too many facts wait for the log")
        append = Append(subject, data, fact_headers, expect, deadline, asyncio.get_running_loop().create_future())
        if expect is None and headers.MESSAGE_ID not in fact_headers:
            append.headers = {**fact_headers, headers.MESSAGE_ID: uuid.uuid4().hex}
            append.own_id = True
        if expect is None:
            self._waiting.append(append)
            self._wake.set()
        else:
            self._send_alone(append)
        try:
            async with asyncio.timeout(self._left(append)):
                return await append.done
        except TimeoutError:
            raise append.overdue() from None

    async def append_together(
        self, facts: Sequence[tuple[str, bytes, dict[str, str]]], *, expect: int, deadline: datetime
    ) -> Appended:
        """Append two to a thousand facts in one step, all or none, and return the place of the last.

        `expect` is the last sequence that the last one's subject must have; another has it in its headers, or is free.
        Tried again like a conditional fact alone. Raises what `append` raises.
        """
        if self._writer is None:
            raise Unavailable("the service is stopping")
        if self._space.is_short():
            raise StoreFull(self._space.shortage() or "the log's disk was full a moment ago")
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        appends = [Append(subject, data, dict(stored), None, deadline, done) for subject, data, stored in facts]
        last = appends[-1]
        last.headers[headers.EXPECTED] = str(expect)
        while self._left(last) > 0.001:
            try:
                async with self._together, asyncio.timeout(self._left(last)):
                    return Appended(await self._send_batch(appends))
            except nats.js.errors.APIError as error:
                if not _is_passing(error):
                    raise _judge(error) from error
            except NATS_ERRORS as error:
                LOGGER.debug("append of %d facts: %s", len(appends), words(error))
            await asyncio.sleep(RETRY_S)
        raise last.overdue()

    def _left(self, append: Append) -> float:
        return (append.deadline - self._clock()).total_seconds()

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                self._sending = self._with_room(self._take())
                if len(self._sending) >= BATCH_FROM:
                    await self._batch(self._sending)
                else:
                    await asyncio.gather(*(self._single(append) for append in self._sending))

    def _send_alone(self, append: Append) -> None:
        """Send a conditional fact in a task of its own."""
        if self._with_room([append]):
            task = asyncio.create_task(self._single(append), name="log-append")
            self._alone[task] = append
            task.add_done_callback(self._alone.pop)

    def _take(self) -> list[Append]:
        """What is appended next: as much as waits, up to the limits of one batch, in order of arrival."""
        size = 0
        for count, append in enumerate(self._waiting):
            size += append.size
            if count and (count >= BATCH_MESSAGES or size > BATCH_BYTES):
                taken, self._waiting = self._waiting[:count], self._waiting[count:]
                return taken
        taken, self._waiting = self._waiting, []
        return taken

    def _with_room(self, appends: list[Append]) -> list[Append]:
        """Those that the disk has room for.

        Facts of entities may use half of what is kept free: a room can still be deleted, a delivery acknowledged.
        """
        if not self._space.is_short():
            return appends
        half = self._space.is_short(2)
        for append in appends:
            if half or append.expect is None:
                append.fail(StoreFull(self._space.shortage() or "the log's disk was full a moment ago"))
        return [append for append in appends if not append.done.done()]

    async def _batch(self, appends: list[Append]) -> None:
        """Append all or none; on a refusal of the whole, each by itself."""
        live = [append for append in appends if self._is_in_time(append)]
        if len(live) >= 2:  # the server refuses a batch of one
            try:
                last = await self._send_batch(live)
            except NATS_ERRORS as error:
                LOGGER.info("a batch of %d facts was not stored whole (%s): one by one", len(live), error)
            else:
                self._on_batch(len(live))
                for place, append in enumerate(live):
                    append.succeed(last - len(live) + 1 + place)
                return
        await asyncio.gather(*(self._single(append) for append in live))

    async def _send_batch(self, appends: list[Append]) -> int:
        """Send an atomic batch (NATS ADR-50); returns the sequence of its last fact."""
        batch = uuid.uuid4().hex
        client = self._connection.client
        for place, append in enumerate(appends, 1):
            batched = {**append.headers, headers.BATCH_ID: batch, headers.BATCH_SEQUENCE: str(place)}
            if place == len(appends):
                batched[headers.BATCH_COMMIT] = "1"
                for sent in appends:
                    sent.sent = True
                ack = await self._publish(append.subject, append.data, batched, ATTEMPT_S * 2)
                if ack.seq is None:
                    raise nats.js.errors.Error("a batch was acknowledged without a sequence")
                return ack.seq
            if place == 1:
                async with self._connection.attempt(ATTEMPT_S):
                    answer = await client.request(append.subject, append.data, timeout=ATTEMPT_S + 1, headers=batched)
                if answer.data:
                    raise nats.js.errors.Error(answer.data.decode(errors="replace")[:200])
            else:
                await client.publish(append.subject, append.data, headers=batched)
        raise AssertionError("a batch has a last fact")

    async def _single(self, append: Append) -> None:
        """Append one fact; whatever happens, the writer goes on."""
        try:
            await self._try(append)
        except Exception as error:
            append.fail(error)

    async def _try(self, append: Append) -> None:
        """Append one fact, trying again while the outcome is unknown and the deadline has not passed.

        Trying again is safe: a free fact carries a message id, and a conditional one can't be stored twice.
        """
        stored = dict(append.headers)
        if append.expect is not None:
            stored[headers.EXPECTED] = str(append.expect)
        while self._is_in_time(append):
            attempt_s = max(0.05, min(ATTEMPT_S, self._left(append)))
            append.sent = True
            try:
                ack = await self._publish(append.subject, append.data, stored, attempt_s)
            except NEVER:
                raise
            except nats.js.errors.APIError as error:
                if not _is_passing(error):
                    raise _judge(error) from error
            except NATS_ERRORS as error:
                LOGGER.debug("append to %s: %s", append.subject, words(error))
            else:
                append.succeed(ack.seq, duplicate=bool(ack.duplicate))
                return
            await asyncio.sleep(RETRY_S)

    async def _publish(self, subject: str, data: bytes, stored: dict[str, str], timeout_s: float) -> PubAck:
        async with self._connection.attempt(timeout_s):
            return await self._connection.jetstream.publish(subject, data, timeout=timeout_s + 1, headers=stored)

    def _is_in_time(self, append: Append) -> bool:
        """Whether the caller still waits and its deadline stands; tells it when the deadline has passed."""
        if append.done.done():
            return False
        if self._left(append) > 0.001:
            return True
        append.fail(append.overdue())
        return False


def _is_passing(error: nats.js.errors.APIError) -> bool:
    """Whether the server itself expects to do better soon (no leader, starting)."""
    return error.code == 503 and error.err_code not in STORE_FULL


def _judge(error: nats.js.errors.APIError) -> Exception:
    description = error.description or ""
    if error.err_code in WRONG_SEQUENCE or "wrong last sequence" in description:
        return WrongSequence(description)
    if error.err_code in STORE_FULL or "no space left" in description or "resource" in description:
        return StoreFull(f"the log's disk is full: {description}")
    return Unavailable(f"the log refused a fact: {description}")
