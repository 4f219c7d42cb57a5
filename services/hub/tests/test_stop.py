"""`down` and a server that freezes: bounded times, nothing acknowledged lost, again and again and under load."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from services.hub.tests import calls

if TYPE_CHECKING:
    from services.hub.tests.conftest import HubCommand

Wait = Callable[[Callable[[], object]], None]
DOWN_S = 5.0
DOWN_FROZEN_S = 30.0
NOTICED_S = 60.0
WRITERS = 4


class Load:
    """Writers that post, readers that wait and watch, until they are told to end; what was acknowledged."""

    def __init__(self, url: str, numbers: Iterator[int]) -> None:
        self.url = url
        self.numbers = numbers
        self.acknowledged: set[str] = set()
        self.lost: list[BaseException] = []
        self.ending = threading.Event()
        work = [self._post] * WRITERS
        self._writers = [threading.Thread(target=self._repeat, args=(one,)) for one in work]
        # These end with the hub: nothing ends them while it runs, and nobody waits for them.
        held = (self._wait, self._watch)
        self._readers = [threading.Thread(target=self._repeat, args=(one,), daemon=True) for one in held]

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self.ending.is_set():
            try:
                work()
            except calls.LOST as error:
                self.lost.append(error)
                self.ending.wait(0.01)

    def _post(self) -> None:
        text = f"post {next(self.numbers)}"
        status, _ = calls.call(
            self.url, "POST", "/api/rooms/demo/messages", {"content": text, "sender_handle": "tester"}
        )
        if status == calls.CREATED:
            self.acknowledged.add(text)

    def _wait(self) -> None:
        calls.call(self.url, "POST", "/api/rooms/demo/await", {"handle": "waiter", "timeout_s": 60})

    def _watch(self) -> None:
        calls.call(self.url, "GET", "/api/rooms/demo/stream")

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in (*self._writers, *self._readers):
            thread.start()
        try:
            yield
        finally:
            self.ending.set()
            for thread in self._writers:
                thread.join(timeout=30)


def prepare(hub: HubCommand) -> None:
    hub.start()
    assert calls.call(hub.url, "POST", "/api/rooms", {"name": "demo", "handle": "tester"})[0] == calls.CREATED
    waiter = {"handle": "waiter", "kind": "agent"}
    assert calls.call(hub.url, "POST", "/api/rooms/demo/members", waiter)[0] == calls.CREATED


def _cycles(hub: HubCommand, wait: Wait, count: int) -> None:
    """Stop the hub in the middle of load, `count` times."""
    acknowledged: set[str] = set()
    numbers = itertools.count()
    took: list[float] = []
    prepare(hub)
    for _ in range(count):
        load = Load(hub.url, numbers)
        with load.running():
            wait(lambda load=load: len(load.acknowledged) >= 20)  # type: ignore[misc]
            began = time.monotonic()
            assert hub("down").returncode == 0
            took.append(time.monotonic() - began)
        acknowledged |= load.acknowledged
        assert not hub.processes()
        hub.start()
    assert min(took) < DOWN_S, took  # a machine that is busy delays some, what is wrong delays all
    assert acknowledged <= set(calls.texts(hub.url))


def test_down_is_quick_and_loses_nothing_under_load(hub: HubCommand, wait: Wait) -> None:
    """While agents post, wait and watch: under five seconds, and every acknowledged post is there afterwards."""
    _cycles(hub, wait, 2)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_down_is_quick_again_and_again(hub: HubCommand, wait: Wait) -> None:
    """The same twenty times."""
    _cycles(hub, wait, 20)


def test_down_does_not_wait_for_a_frozen_server(hub: HubCommand) -> None:
    """Health is red within moments, `down` ends in ten seconds, and what was acknowledged is there afterwards."""
    prepare(hub)
    calls.post(hub.url, "kept")
    os.kill(hub.nats_pid(), signal.SIGSTOP)
    assert calls.call(hub.url, "GET", "/health")[1]["status"] == "degraded"
    began = time.monotonic()
    assert hub("down").returncode == 0
    assert time.monotonic() - began < DOWN_FROZEN_S
    assert not hub.processes()
    hub.start()
    assert calls.texts(hub.url) == ["kept"]


@pytest.mark.long
def test_a_frozen_server_is_noticed_killed_and_started_again(hub: HubCommand, wait: Wait) -> None:
    """After ten seconds of silence; a post that was waiting for it is stored once, and nothing is lost."""
    prepare(hub)
    calls.post(hub.url, "before")
    frozen = hub.nats_pid()
    os.kill(frozen, signal.SIGSTOP)
    began = time.monotonic()
    wait(lambda: hub.nats_pid_or_none() not in {None, frozen})
    assert time.monotonic() - began < NOTICED_S
    wait(lambda: calls.call(hub.url, "GET", "/health")[1]["status"] == "ok")
    calls.post(hub.url, "after")
    assert calls.texts(hub.url) == ["after", "before"]
