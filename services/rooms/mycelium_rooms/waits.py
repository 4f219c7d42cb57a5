"""Which waits are open now, as the gateways tell it in a bucket in memory. A hint: it decides `woken` or `queued`.

A wait's key is `<room id>.<token of the queue>.<wait id>` with the gateway's instance as its value; the id of one that
only one thread wakes ends in `-<thread>`, and of one that no mention wakes in `-lease`. A gateway renews
`instance.<instance>` every second. A wait counts while its gateway was heard of within three seconds, by our own clock,
so that a lost connection, a killed gateway or a restarted NATS never makes a wait look open that is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mycelium_kernel import subjects
from mycelium_rooms.watching import Follower, Shown

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

BUCKET = "gateway_waits"
INSTANCE = "instance"
LIVE_S = 3.5  # a gateway that was not heard of for so long is gone


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

    def is_open(self, room_id: str, queue: str, now: float, thread: str | None = None) -> bool:
        """Whether a wait of a living gateway is open for the queue of that token; one that a post in `thread` wakes."""
        waits = self._waits.get(room_id, {}).get(queue, {})
        return any(
            now - self._instances.get(instance, -LIVE_S) < LIVE_S and (thread is None or _is_woken(wait, thread))
            for wait, instance in waits.items()
        )


def _is_woken(wait: str, thread: str) -> bool:
    _, _, only = wait.partition("-")
    return only in {"", thread.replace("-", "")}


class Waits:
    """The open waits of all gateways; `watch` is the worker that keeps them up to date."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._picture = Picture()

    def is_open(self, room_id: str, queue: str, thread: str = "") -> bool:
        """Whether a wait for exactly this queue is open that a mention in the thread, or in the channel, wakes."""
        return self._picture.is_open(room_id, subjects.token(queue), self._now(), thread)

    def is_waiting(self, room_id: str, handle: str) -> bool:
        """Whether a wait for the handle's own queue or one of its seats is open."""
        own = subjects.token(handle)
        seats = own + subjects.token("#")
        return any(queue == own or queue.startswith(seats) for queue in self._picture.queues(room_id, self._now()))

    async def watch(self, runtime: Runtime) -> None:
        """Follow the bucket for ever."""
        await Follower(BUCKET, Picture, self._show, self._now).follow(runtime)

    def _show(self, picture: Shown) -> None:
        assert isinstance(picture, Picture)
        self._picture = picture
