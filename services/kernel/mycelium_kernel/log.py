"""Appends facts to the log: singly while little waits, in atomic batches when much does, always acknowledged from disk.

One writer loop a process. JetStream syncs once a message but only about four times a batch of any size, so a batch
pays from about sixteen waiting facts (docs/decisions). Only free facts share a batch: two facts of one entity in one
batch would both be judged against the state before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import nats.errors
import nats.js.errors
from nats.js.api import PubAck

from mycelium_kernel import headers
from mycelium_kernel.clock import Clock
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import DeadlinePassed, StoreFull, Unavailable, WrongSequence

LOGGER = logging.getLogger(__name__)
BATCH_FROM = 16  # measured: below this, single appends in flight together are as quick
BATCH_MESSAGES = 1_000  # JetStream's limit
BATCH_BYTES = 4 * 1024 * 1024
QUEUE_LIMIT = 10_000  # facts that may wait before callers are told to come back later
ATTEMPT_S = 2.0
RETRY_S = 0.05

WRONG_SEQUENCE = {10071, 10164}
STORE_FULL = {10023, 10047, 10077, 10122}


@dataclass(frozen=True)
class Appended:
    """Where a fact stands. `duplicate`: the log had a fact of this message id already, and this is its place."""

    sequence: int
    duplicate: bool = False


@dataclass(frozen=True)
class Append:
    """A fact on its way: `expect` is the last sequence its subject must have, None for a free fact."""

    subject: str
    data: bytes
    headers: dict[str, str]
    expect: int | None
    deadline: datetime
    done: asyncio.Future[Appended]

    @property
    def size(self) -> int:
        """Bytes of payload and headers, roughly."""
        return len(self.data) + 512


class Log:
    """The writer of one process. `append` answers when the fact is on disk."""

    def __init__(self, connection: Connection, clock: Clock, on_batch: Callable[[int], None] = lambda _size: None) -> None:
        self._connection = connection
        self._clock = clock
        self._on_batch = on_batch
        self._waiting: list[Append] = []
        self._wake = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the writer loop."""
        self._writer = asyncio.create_task(self._write(), name="log-writer")

    async def stop(self) -> None:
        """Stop the writer; what waits is told that the log is unavailable."""
        if self._writer:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
        waiting, self._waiting = self._waiting, []
        for append in waiting:
            _fail(append, Unavailable("the service is stopping"))

    async def append(
        self, subject: str, data: bytes, fact_headers: dict[str, str], *, expect: int | None, deadline: datetime
    ) -> Appended:
        """Append one fact and return its place.

        Raises `WrongSequence` when `expect` does not hold, `DeadlinePassed` when nothing was sent in time,
        `StoreFull` when the disk or a limit of the server is full, `Unavailable` when no acknowledgement came before
        the deadline: then it may or may not be stored, and a retry under the same key finds out.
        """
        if len(self._waiting) >= QUEUE_LIMIT:
            raise Unavailable("too many facts wait for the log")
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._waiting.append(Append(subject, data, fact_headers, expect, deadline, done))
        self._wake.set()
        return await done

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                waiting = self._take()
                free = [append for append in waiting if append.expect is None]
                if len(free) >= BATCH_FROM:
                    single = [append for append in waiting if append.expect is not None]
                    await asyncio.gather(self._batch(free), *(self._single(append) for append in single))
                else:
                    await asyncio.gather(*(self._single(append) for append in waiting))

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

    async def _batch(self, appends: list[Append]) -> None:
        """Append all or none; on a refusal of the whole, one by one in the same order."""
        live = [append for append in appends if self._is_in_time(append)]
        if len(live) < 2:  # noqa: PLR2004 - the server refuses a batch of one
            await asyncio.gather(*(self._single(append) for append in live))
            return
        try:
            last = await self._send_batch(live)
        except (nats.js.errors.Error, nats.errors.Error, TimeoutError, OSError) as error:
            LOGGER.info("a batch of %d facts was not stored whole (%s): appending them one by one", len(live), error)
            for append in live:
                await self._single(append)
            return
        self._on_batch(len(live))
        for place, append in enumerate(live):
            _succeed(append, Appended(last - len(live) + 1 + place))

    async def _send_batch(self, appends: list[Append]) -> int:
        """Send an atomic batch (NATS ADR-50); returns the sequence of its last fact."""
        batch = uuid.uuid4().hex
        client = self._connection.client
        for place, append in enumerate(appends, 1):
            batched = {**append.headers, headers.BATCH_ID: batch, headers.BATCH_SEQUENCE: str(place)}
            if place == len(appends):
                batched[headers.BATCH_COMMIT] = "1"
                ack = await self._publish(append.subject, append.data, batched, ATTEMPT_S * 2)
                if ack.seq is None:
                    raise nats.js.errors.Error("a batch was acknowledged without a sequence")
                return ack.seq
            if place == 1:
                answer = await client.request(append.subject, append.data, timeout=ATTEMPT_S, headers=batched)
                if answer.data:
                    raise nats.js.errors.Error(answer.data.decode(errors="replace")[:200])
            else:
                await client.publish(append.subject, append.data, headers=batched)
        raise AssertionError("a batch has a last fact")

    async def _single(self, append: Append) -> None:
        """Append one fact, trying again while the outcome is unknown and the deadline has not passed.

        Trying again is safe: a free fact carries a message id, and a conditional one can't be stored twice.
        """
        stored = dict(append.headers)
        if append.expect is not None:
            stored[headers.EXPECTED] = str(append.expect)
        while self._is_in_time(append):
            try:
                left = (append.deadline - self._clock()).total_seconds()
                ack = await self._publish(append.subject, append.data, stored, max(0.05, min(ATTEMPT_S, left)))
                _succeed(append, Appended(ack.seq, bool(ack.duplicate)))
            except nats.js.errors.APIError as error:
                if not _is_passing(error):
                    _fail(append, _judge(error))
                    return
                await asyncio.sleep(RETRY_S)
            except (nats.js.errors.Error, nats.errors.Error, TimeoutError, OSError) as error:
                LOGGER.debug("append to %s: %s", append.subject, error)
                await asyncio.sleep(RETRY_S)
            if append.done.done():
                return

    async def _publish(self, subject: str, data: bytes, stored: dict[str, str], timeout_s: float) -> PubAck:
        return await self._connection.jetstream.publish(subject, data, timeout=timeout_s, headers=stored)

    def _is_in_time(self, append: Append) -> bool:
        """Whether the deadline still stands; tells the caller when it does not."""
        if append.done.done():
            return False
        if self._clock() + timedelta(milliseconds=1) < append.deadline:
            return True
        _fail(append, DeadlinePassed("the log did not take the fact before the deadline"))
        return False


def _is_passing(error: nats.js.errors.APIError) -> bool:
    """Whether the server itself expects to do better soon (no leader, starting)."""
    return error.code == 503 and error.err_code not in STORE_FULL  # noqa: PLR2004 - service unavailable


def _judge(error: nats.js.errors.APIError) -> Exception:
    description = error.description or ""
    if error.err_code in WRONG_SEQUENCE or "wrong last sequence" in description:
        return WrongSequence(description)
    if error.err_code in STORE_FULL or "no space left" in description or "resource" in description:
        return StoreFull(f"the log's disk is full: {description}")
    return Unavailable(f"the log refused a fact: {description}")


def _succeed(append: Append, appended: Appended) -> None:
    if not append.done.done():
        append.done.set_result(appended)


def _fail(append: Append, error: Exception) -> None:
    if not append.done.done():
        append.done.set_exception(error)
