"""A server that was killed finds its log as it was acknowledged, also where a bit of it was flipped meanwhile."""

from __future__ import annotations

import os
import signal

from mycelium_hub import deep
from mycelium_hub.deep_store import FACTS, KEPT
from mycelium_hub.finding import WRONG
from services.hub.tests import calls
from services.hub.tests.conftest import HubCommand, wait_for
from services.hub.tests.test_deep import flip

TEXTS = [f"text number {place}" for place in range(9, -1, -1)]


def killed(hub: HubCommand) -> None:
    """A hub with ten messages that was killed, its server too, before that wrote down where it was."""
    pid = hub.start()
    assert calls.call(hub.url, "POST", "/api/rooms", {"name": "demo", "handle": "tester"})[0] == calls.CREATED
    for text in reversed(TEXTS):
        calls.post(hub.url, text)
    for victim in (pid, hub.nats_pid()):
        os.kill(victim, signal.SIGKILL)
    wait_for(lambda: not hub.processes())


def test_a_flipped_bit_is_put_right_before_the_server_drops_what_follows(hub: HubCommand) -> None:
    """Left to itself the server would drop the message with the bit and the five after it."""
    killed(hub)
    path = hub.home.store / FACTS / "msgs/1.blk"
    flip(path, path.read_bytes().index(b"text number 4"), 2)
    hub.start()
    assert calls.texts(hub.url) == TEXTS
    assert not [finding for finding in deep.check(hub.home) if finding.state == WRONG]
    assert "bit 2 of byte " in (hub.home.logs / "start.log").read_text()


def test_a_record_that_nobody_can_put_right_takes_no_other_with_it(hub: HubCommand) -> None:
    """It is lost, which is said; the block as it was is kept."""
    killed(hub)
    path = hub.home.store / FACTS / "msgs/1.blk"
    at = path.read_bytes().index(b"text number 4")
    for place in range(4):
        flip(path, at + place, 2)
    before = path.read_bytes()
    hub.start()
    assert calls.texts(hub.url)[:5] == TEXTS[:5]
    [kept] = (hub.home.store / KEPT).iterdir()
    assert kept.read_bytes() == before
    assert any("nats: lacks fact " in finding.seen for finding in deep.check(hub.home))
    assert "taken out" in (hub.home.logs / "start.log").read_text()


def test_an_unfinished_record_is_left_to_the_server(hub: HubCommand) -> None:
    """It was not acknowledged."""
    killed(hub)
    path = hub.home.store / FACTS / "msgs/1.blk"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    hub.start()
    assert calls.texts(hub.url) == TEXTS
    assert not (hub.home.store / KEPT).exists()
