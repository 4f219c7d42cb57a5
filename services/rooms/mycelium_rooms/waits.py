"""Which waits are open now, as the gateways tell it in a bucket in memory. A hint: it decides `woken` or `queued`.

A wait's key is `<room id>.<token of the queue>.<wait id>` with the gateway's instance as its value; a gateway renews
`instance.<instance>` every second. A wait counts while its gateway was heard of within three seconds, by our own clock,
so that a lost connection, a killed gateway or a restarted NATS never makes a wait look open that is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import nats.errors
import nats.js.errors
from nats.js.api import KeyValueConfig, StorageType
from nats.js.kv import KeyValue

from mycelium_kernel import subjects

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
BUCKET = "gateway_waits"
INSTANCE = "instance"
LIVE_S = 3.5  # a gateway that was not heard of for so long is gone
LOOK_S = 1.0
SILENCE_S = 5.0  # with no news for so long, the watch itself may be lost: begin another
RETRY_S = 0.2
MARKER_S = 5.0
TROUBLE = (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError)


class Picture:
    """The keys of the bucket as a watch has shown them."""

    def __init__(self) -> None:
        self._instances: dict[str, float] = {}
        self._waits: dict[str, dict[str, dict[str, str]]] = {}  # room, token of the queue, wait, instance

    def put(self, key: str, value: str, now: float) -> None:
        """A key was written."""
        room_id, _, rest = key.partition(".")
        if room_id == INSTANCE:
            self._instances[rest] = now
            return
        queue, _, wait = rest.partition(".")
        self._waits.setdefault(room_id, {}).setdefault(queue, {})[wait] = value

    def remove(self, key: str) -> None:
        """A key was deleted or has expired; with a gateway go all its waits."""
        room_id, _, rest = key.partition(".")
        if room_id == INSTANCE:
            self._instances.pop(rest, None)
            self._drop(lambda instance: instance == rest)
            return
        queue, _, wait = rest.partition(".")
        queues = self._waits.get(room_id, {})
        waits = queues.get(queue, {})
        waits.pop(wait, None)
        if not waits:
            queues.pop(queue, None)
        if not queues:
            self._waits.pop(room_id, None)

    def _drop(self, is_gone: Callable[[str], bool]) -> None:
        gone = [
            f"{room_id}.{queue}.{wait}"
            for room_id, queues in self._waits.items()
            for queue, waits in queues.items()
            for wait, instance in waits.items()
            if is_gone(instance)
        ]
        for key in gone:
            self.remove(key)

    def queues(self, room_id: str, now: float) -> Iterator[str]:
        """Tokens of the queues of a room for which a wait of a living gateway is open."""
        for queue in self._waits.get(room_id, {}):
            if self.is_open(room_id, queue, now):
                yield queue

    def is_open(self, room_id: str, queue: str, now: float) -> bool:
        """Whether a wait of a living gateway is open for the queue of that token."""
        waits = self._waits.get(room_id, {}).get(queue, {})
        return any(now - self._instances.get(instance, -LIVE_S) < LIVE_S for instance in waits.values())


class Waits:
    """The open waits of all gateways; `watch` is the worker that keeps them up to date."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._picture = Picture()

    def is_open(self, room_id: str, queue: str) -> bool:
        """Whether a wait for exactly this queue is open."""
        return self._picture.is_open(room_id, subjects.token(queue), self._now())

    def is_waiting(self, room_id: str, handle: str) -> bool:
        """Whether a wait for the handle's own queue or one of its seats is open."""
        own = subjects.token(handle)
        seats = own + subjects.token("#")
        return any(queue == own or queue.startswith(seats) for queue in self._picture.queues(room_id, self._now()))

    async def watch(self, runtime: Runtime) -> None:
        """Follow the bucket for ever, through restarts of NATS, which empty it."""
        again = asyncio.Event()
        runtime.connection.on_reconnect(again.set)
        try:
            while True:
                again.clear()
                try:
                    await self._follow(await _bucket(runtime), again)
                except TROUBLE as error:
                    LOGGER.debug("open waits can't be watched: %s", error or type(error).__name__)
                    await asyncio.sleep(RETRY_S)
        finally:
            runtime.connection.off_reconnect(again.set)

    async def _follow(self, bucket: KeyValue, again: asyncio.Event) -> None:
        """Follow one watch until it may be lost. The picture before it stands until the new one is whole."""
        watcher = await bucket.watchall()
        picture, heard = Picture(), self._now()
        try:
            while not again.is_set() and self._now() - heard < SILENCE_S:
                try:
                    entry = await watcher.updates(timeout=LOOK_S)
                except nats.errors.TimeoutError:
                    continue
                heard = self._now()
                if entry is None:
                    self._picture = picture
                elif isinstance(entry, KeyValue.Entry):
                    self._take(picture, entry)
        finally:
            with contextlib.suppress(*TROUBLE):
                await watcher.stop()

    def _take(self, picture: Picture, entry: KeyValue.Entry) -> None:
        if entry.operation:
            picture.remove(entry.key)
        else:
            picture.put(entry.key, (entry.value or b"").decode(errors="replace"), self._now())


async def _bucket(runtime: Runtime) -> KeyValue:
    """The bucket, made if no gateway has made it yet."""
    jetstream = runtime.connection.jetstream
    config = KeyValueConfig(
        bucket=BUCKET,
        storage=StorageType.MEMORY,
        history=1,
        limit_marker_ttl=MARKER_S,
        replicas=runtime.connection.settings.replicas,
    )
    try:
        return await jetstream.create_key_value(config)
    except nats.js.errors.BadRequestError:  # it is there, made with other settings
        return await jetstream.key_value(BUCKET)
