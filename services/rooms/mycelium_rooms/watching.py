"""Follows a bucket in memory that the gateways write, for ever, through restarts of NATS, which empty it.

A gateway may also make it again (`kernel/in_memory`): then the watch falls silent, and another is begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import nats.errors
import nats.js.errors
from nats.js.kv import KeyValue

from mycelium_kernel.errors import words
from mycelium_kernel.in_memory import open_bucket

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
LOOK_S = 1.0
SILENCE_S = 5.0  # with no news for so long, the watch itself may be lost: begin another
RETRY_S = 0.2
TROUBLE = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError)


class Shown(Protocol):
    """The keys of a bucket as a watch has shown them."""

    def put(self, key: str, value: str, now: float) -> None:
        """A key was written."""

    def remove(self, key: str) -> None:
        """A key was deleted or has expired."""


@dataclass(frozen=True)
class Follower:
    """Follows one bucket: `begin` makes an empty picture, `show` is given it once it is whole."""

    bucket: str
    begin: Callable[[], Shown]
    show: Callable[[Shown], None]
    now: Callable[[], float] = time.monotonic

    async def follow(self, runtime: Runtime) -> None:
        """Follow until cancelled."""
        again = asyncio.Event()
        runtime.connection.on_reconnect(again.set)
        try:
            while True:
                again.clear()
                try:
                    await self._watch(await open_bucket(runtime.connection, self.bucket), again)
                except TROUBLE as error:
                    LOGGER.debug("%s can't be watched: %s", self.bucket, words(error))
                    await asyncio.sleep(RETRY_S)
        finally:
            runtime.connection.off_reconnect(again.set)

    async def _watch(self, bucket: KeyValue, again: asyncio.Event) -> None:
        """Follow one watch until it may be lost. The picture before it stands until the new one is whole."""
        watcher = await bucket.watchall()
        picture, heard = self.begin(), self.now()
        try:
            while not again.is_set() and self.now() - heard < SILENCE_S:
                try:
                    entry = await watcher.updates(timeout=LOOK_S)
                except nats.errors.TimeoutError:
                    continue
                heard = self.now()
                if entry is None:
                    self.show(picture)
                elif isinstance(entry, KeyValue.Entry):
                    self._take(picture, entry)
        finally:
            with contextlib.suppress(*TROUBLE):
                await watcher.stop()

    def _take(self, picture: Shown, entry: KeyValue.Entry) -> None:
        if entry.operation:
            picture.remove(entry.key)
        else:
            picture.put(entry.key, (entry.value or b"").decode(errors="replace"), self.now())
