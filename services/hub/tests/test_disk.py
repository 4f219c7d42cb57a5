"""A hub whose disk fills up, on a real and small one: refused with 507, nothing acknowledged lost, recovers alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_kernel import testing
from mycelium_kernel.space import Space
from services.hub.tests import calls

if TYPE_CHECKING:
    from services.hub.tests.conftest import HubCommand

Wait = Callable[[Callable[[], object]], None]
MEGABYTE = 1024 * 1024
FULL = 507
TEXT = "x" * 200 * 1024


@pytest.fixture
def small(hub: HubCommand) -> Iterator[HubCommand]:
    """A hub whose home is a disk of 64 MB."""
    try:
        with testing.small_disk(hub.home.path, 64):
            yield hub
            hub("down")
    except PermissionError as error:
        pytest.skip(f"no small disk can be mounted ({error}); try as root, or under `unshare -Urm`")


def _fill(hub: HubCommand, free: int) -> Path:
    """What another program writes, until only `free` bytes are left."""
    path = hub.home.path / "filler"
    with path.open("wb", buffering=0) as file:
        file.write(b"\0" * max(0, Space(str(hub.home.path)).look()[0] - free))
    return path


def _try(hub: HubCommand, text: str) -> int:
    return calls.call(hub.url, "POST", "/api/rooms/demo/messages", {"content": text, "sender_handle": "tester"})[0]


def _is_ok(hub: HubCommand) -> bool:
    return bool(calls.call(hub.url, "GET", "/health")[1]["status"] == "ok")


def _create(hub: HubCommand) -> None:
    hub.start()
    assert calls.call(hub.url, "POST", "/api/rooms", {"name": "demo", "handle": "tester"})[0] == calls.CREATED


def test_a_full_disk_refuses_posts_and_loses_none(small: HubCommand, wait: Wait) -> None:
    """Posts fill it up to what is kept free: 507 and when to come back; readers go on; with room, posts do too."""
    _create(small)
    filler = _fill(small, 12 * MEGABYTE)
    kept: list[str] = []
    while _try(small, f"{len(kept)} {TEXT}") == calls.CREATED:
        kept.append(f"{len(kept)} {TEXT}")
        assert len(kept) < 100
    body = {"content": "small", "sender_handle": "tester"}
    status, headers, said = calls.ask(small.url, "POST", "/api/rooms/demo/messages", body)
    assert (status, said["slug"]) == (FULL, "store.full")
    assert int(headers["Retry-After"]) > 0
    assert not _is_ok(small)
    assert calls.texts(small.url) == kept[::-1]
    filler.unlink()
    assert _try(small, "after") == calls.CREATED
    assert calls.texts(small.url) == ["after", *kept[::-1]]
    wait(lambda: _is_ok(small))


def test_a_room_can_be_deleted_when_nothing_more_can_be_posted(small: HubCommand) -> None:
    """The way out of a full disk is open."""
    _create(small)
    filler = _fill(small, 6 * MEGABYTE)
    assert _try(small, "small") == FULL
    assert calls.call(small.url, "DELETE", "/api/rooms/demo")[0] == 204
    filler.unlink()


def test_a_disk_that_somebody_else_fills_to_the_last_byte_is_survived(small: HubCommand, wait: Wait) -> None:
    """Under posts in flight NATS may meet the end of the disk; once there is room it is started again, unasked."""
    _create(small)
    kept = ["first"]
    assert _try(small, "first") == calls.CREATED
    filler = _fill(small, 0)
    served = small.nats_pid()
    until = time.monotonic() + 2
    while time.monotonic() < until:
        assert _try(small, "refused") == FULL
    filler.unlink()
    wait(lambda: small.nats_pid_or_none() not in {None, served})
    wait(lambda: _is_ok(small))
    assert _try(small, "after") == calls.CREATED
    assert calls.texts(small.url) == ["after", *kept]
