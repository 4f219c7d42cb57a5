"""What this gateway tells the others in memory: which waits are open here, and what members say that they are doing.

Two buckets. In `gateway_waits` stands one key a wait, and one for this gateway that dies three seconds after it: keys
of a gateway that is gone count for nothing. In `gateway_presence` stands what a member said last, for as long as it
said. Hints only: a lost key makes `woken` into `queued`, or somebody look absent, never the other way round.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from nats.js.api import Header
from nats.js.kv import KeyValue

from mycelium_kernel import subjects, tasks
from mycelium_kernel.connections import NATS_ERRORS, Connection, reaching
from mycelium_kernel.in_memory import keep_bucket, leave, open_bucket

LOGGER = logging.getLogger(__name__)
WAITS = "gateway_waits"
SAID = "gateway_presence"
INSTANCE = "instance"
BEAT_S = 1.0
INSTANCE_TTL_S = 3.0
SPARE_S = 60.0  # a wait's key outlives its time by this, for a gateway that could not remove it
SAID_SPARE_S = 2.0  # readers look at the time in the value; the key need not be exact
PUT_S = 2.0
RETRY_S = 0.2


@dataclass(frozen=True)
class OpenWait:
    """What a key says: in which room and for which queue a wait is open, and for how long at most."""

    room_id: str
    queue: str
    wait_id: str
    timeout_s: float

    @property
    def key(self) -> str:
        """The key: room, queue, wait."""
        return f"{self.room_id}.{subjects.token(self.queue)}.{self.wait_id}"


@dataclass(frozen=True)
class Said:
    """What a member said of itself; times in milliseconds since 1970."""

    room_id: str
    handle: str
    state: str
    note: str
    at: int
    until: int

    @property
    def key(self) -> str:
        """The key: room, handle."""
        return f"{self.room_id}.{subjects.token(self.handle)}"

    @property
    def value(self) -> bytes:
        """The value."""
        kept = {"state": self.state, "note": self.note, "at": self.at, "until": self.until}
        return json.dumps(kept, ensure_ascii=False).encode()


class Keys:
    """The keys of one gateway. `now` gives milliseconds since 1970."""

    def __init__(self, connection: Connection, instance: str, now: Callable[[], int]) -> None:
        self._connection = connection
        self.instance = instance
        self._now = now
        self._open: dict[str, OpenWait] = {}
        self._ended: set[str] = set()  # keys that may still stand although their waits have ended
        self._said: dict[str, Said] = {}
        self._bucket: KeyValue | None = None
        self._beat_at = 0  # where the last beat stands in the bucket
        self._again = asyncio.Event()  # the keys of waits have to be put anew
        self._said_again = asyncio.Event()  # the same of what members said
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Make the buckets and begin to say that this gateway lives, at once or as soon as it can be said.

        A bucket in memory may have lost its leader with the servers that were restarted; callers don't wait for hints.
        """
        try:
            await self._renew()
        except NATS_ERRORS as error:
            LOGGER.warning("open waits can't be told yet, and mentions are told queued: %s", error)
            self._again.set()
        try:
            await self._renew_said()
        except NATS_ERRORS as error:
            LOGGER.warning("what members say can't be told yet: %s", error)
            self._said_again.set()
        for bucket, again in ((WAITS, self._again), (SAID, self._said_again)):
            self._connection.on_reconnect(again.set)
            keep_bucket(self._connection, bucket, again.set)
        self._tasks = [asyncio.create_task(self._beat(), name="keys"), asyncio.create_task(self._repeat(), name="said")]

    async def stop(self) -> None:
        """Say that this gateway is gone."""
        for again in (self._again, self._said_again):
            self._connection.off_reconnect(again.set)
            leave(self._connection, again.set)
        await tasks.end(self._tasks)
        if self._bucket and self._connection.client.is_connected:
            with contextlib.suppress(*NATS_ERRORS):
                await self._bucket.delete(f"{INSTANCE}.{self.instance}")

    async def opened(self, wait: OpenWait) -> None:
        """A wait is open from now on."""
        self._open[wait.key] = wait
        with contextlib.suppress(*NATS_ERRORS):
            await self._put_wait(wait)

    async def closed(self, wait: OpenWait) -> None:
        """A wait has ended. If that can't be told now, it is told again until it was."""
        if self._open.pop(wait.key, None):
            with contextlib.suppress(*NATS_ERRORS):
                await self._remove(wait.key)

    async def _remove(self, key: str) -> None:
        self._ended.add(key)
        if self._bucket and self._connection.client.is_connected:
            await self._bucket.delete(key)
            self._ended.discard(key)

    async def say(self, said: Said) -> None:
        """Tell what a member says. Raises `Unavailable` when it can't be told now."""
        with reaching("the other members"):
            await self._put(SAID, said.key, said.value, self._left_s(said))
        self._said[said.key] = said

    def _left_s(self, said: Said) -> float:
        return (said.until - self._now()) / 1000 + SAID_SPARE_S

    async def _beat(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._again.wait()
            try:
                if self._again.is_set():
                    self._again.clear()
                    await self._renew()
                else:  # refused when another stands there, or none: who watches has then dropped the waits as well
                    await self._put_instance({Header.EXPECTED_LAST_SUBJECT_SEQUENCE: str(self._beat_at)})
                for key in list(self._ended):
                    await self._remove(key)
            except NATS_ERRORS as error:
                LOGGER.debug("open waits can't be told: %s", error)
                self._again.set()
                await asyncio.sleep(RETRY_S)

    async def _repeat(self) -> None:
        while True:
            await self._said_again.wait()
            self._said_again.clear()
            try:
                await self._renew_said()
            except NATS_ERRORS as error:
                LOGGER.debug("what members said can't be told: %s", error)
                self._said_again.set()
                await asyncio.sleep(RETRY_S)

    async def _renew(self) -> None:
        """Make the bucket of waits and put every key into it."""
        self._bucket = await open_bucket(self._connection, WAITS)
        await self._put_instance()
        for wait in list(self._open.values()):
            await self._put_wait(wait)

    async def _renew_said(self) -> None:
        """Make the bucket of what members said and put into it what still holds."""
        await open_bucket(self._connection, SAID)
        self._said = {key: said for key, said in self._said.items() if said.until > self._now()}
        for said in list(self._said.values()):
            await self._put(SAID, said.key, said.value, self._left_s(said))

    async def _put_instance(self, expecting: dict[str, str] | None = None) -> None:
        key, value = f"{INSTANCE}.{self.instance}", self.instance.encode()
        self._beat_at = await self._put(WAITS, key, value, INSTANCE_TTL_S, expecting)

    async def _put_wait(self, wait: OpenWait) -> None:
        await self._put(WAITS, wait.key, self.instance.encode(), wait.timeout_s + SPARE_S)
        if wait.key not in self._open:  # it ended meanwhile, and this may have been put after it was removed
            await self._remove(wait.key)

    async def _put(
        self, bucket: str, key: str, value: bytes, ttl_s: float, expecting: dict[str, str] | None = None
    ) -> int:
        # The client's `put` takes no time to live, so the key's own subject is written to.
        ttl = float(max(1, int(ttl_s)))
        subject = subjects.key(bucket, key)
        ack = await self._connection.jetstream.publish(subject, value, timeout=PUT_S, headers=expecting, msg_ttl=ttl)
        return ack.seq
