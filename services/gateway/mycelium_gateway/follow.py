"""Follows a bucket in memory for ever, through restarts of NATS, which empty it, and when it is made again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import nats.errors
from nats.js.kv import KeyValue

from mycelium_kernel.connections import NATS_ERRORS
from mycelium_kernel.errors import words
from mycelium_kernel.in_memory import keep_bucket, leave, open_bucket

if TYPE_CHECKING:
    from mycelium_kernel.connections import Connection

LOGGER = logging.getLogger(__name__)
LOOK_S = 1.0
SILENCE_S = 5.0  # gateways beat every second: with no news for so long, the watch itself may be lost
RETRY_S = 0.2


class Follower:
    """Calls `begin` before a new watch shows every key, then `take` with each key and its value (None: gone)."""

    def __init__(
        self,
        connection: Connection,
        bucket: str,
        begin: Callable[[], None],
        take: Callable[[str, bytes | None], None],
        *,
        beats: bool = True,
    ) -> None:
        self._connection = connection
        self.bucket = bucket
        self._begin = begin
        self._take = take
        self._silence_s = SILENCE_S if beats else SILENCE_S * 12

    async def follow(self) -> None:
        """Follow until cancelled."""
        again = asyncio.Event()
        self._connection.on_reconnect(again.set)
        keep_bucket(self._connection, self.bucket, again.set)
        try:
            while True:
                again.clear()
                try:
                    await self._watch(await open_bucket(self._connection, self.bucket), again)
                except NATS_ERRORS as error:
                    LOGGER.debug("%s can't be watched: %s", self.bucket, words(error))
                    await asyncio.sleep(RETRY_S)
        finally:
            self._connection.off_reconnect(again.set)
            leave(self._connection, again.set)

    async def _watch(self, bucket: KeyValue, again: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        watcher = await bucket.watchall()
        self._begin()
        heard = loop.time()
        try:
            while not again.is_set() and loop.time() - heard < self._silence_s:
                try:
                    entry = await watcher.updates(timeout=LOOK_S)
                except nats.errors.TimeoutError:
                    continue
                heard = loop.time()
                if isinstance(entry, KeyValue.Entry):
                    self._take(entry.key, None if entry.operation else entry.value or b"")
        finally:
            with contextlib.suppress(*NATS_ERRORS):
                await watcher.stop()
