"""`mycelium config apply`: the running hub of a home takes its settings as they are now.

The hub starts itself again in its own process (`again`); this looks before, asks, and sees what came of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from mycelium_hub import address, again, daemon, drift, nats_server, processes, settings_file
from mycelium_hub.drift import Difference
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home, Started
from mycelium_hub.settings_file import Fault

ENDED_S = 10.0
DOWN_UP = "mycelium down && mycelium up"
WRONG, NOT_RUNNING, SAME, APPLIED, REFUSED, LOST = "wrong", "not running", "same", "applied", "refused", "lost"
_STATUS = {WRONG: 2, REFUSED: 1, LOST: 1}


@dataclass(frozen=True)
class Told:
    """What came of it: `outcome` is one of the words above, `reason` and `next` say why it was not done."""

    outcome: str
    home: str
    url: str = ""
    pid: int | None = None
    wrong: tuple[Fault, ...] = ()
    differences: tuple[Difference, ...] = ()
    reason: str = ""
    next: str = ""

    @property
    def status(self) -> int:
        """The exit status."""
        return _STATUS.get(self.outcome, 0)

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "outcome": self.outcome,
            "home": self.home,
            "url": self.url or None,
            "pid": self.pid,
            "wrong": [fault.document() for fault in self.wrong],
            "changed": [one.document() for one in self.differences if not one.overruled],
            "overruled": [one.document() for one in self.differences if one.overruled],
            "reason": self.reason or None,
            "next": self.next or None,
        }


def apply(home: Home, *, check: bool = False, restart: bool = False) -> Told:
    """Look at the file; where a hub runs with something else, make it start again. `restart`: in any case."""
    told = Told(WRONG, str(home.path), wrong=tuple(settings_file.faults(home.path)))
    if told.wrong or check:
        return told if told.wrong else replace(told, outcome=SAME)
    if daemon.wait_for_other(home) is None and not home.owner():
        return replace(told, outcome=NOT_RUNNING, next="mycelium up")
    with _one_at_a_time(home):
        running, started = home.running(), home.started()
        if running is None or started is None or not started.times:
            reason = f"the hub on {home.path} does not tell what it runs with; it may be of another version"
            return replace(told, outcome=REFUSED, reason=reason, next=DOWN_UP)
        found = tuple(drift.differences(home, started))
        told = replace(told, url=running.url, pid=running.pid, differences=found)
        if not restart and all(one.overruled for one in found):
            return replace(told, outcome=SAME)
        try:
            _look_ahead(home, started, running.url)
        except Refused as refused:
            return replace(told, outcome=REFUSED, reason=f"{refused}; nothing was touched")
        return _restarted(home, told, started)


@contextlib.contextmanager
def _one_at_a_time(home: Home) -> Iterator[None]:
    """Two at once are one after the other, so that a hub in the middle of a start is not asked for another."""
    descriptor = os.open(home.run / "apply.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _look_ahead(home: Home, started: Started, url: str) -> None:
    """Refuse what the hub could not be started with, before it is stopped for it."""
    wanted = drift.next_values(home, started)
    address.check(wanted.host, insecure=wanted.insecure, sign_in=wanted.auth.enabled)
    nats_server.check_count(home, wanted.nats_servers)
    before = {key: value for key, (value, _source) in started.settings.items()}
    if wanted.port not in {before["runtime.backend_port"], address.port_of(url)}:
        port = wanted.port
    elif wanted.host != before["runtime.bind_addr"]:
        port = 0  # its own port is taken by itself; this asks whether the address is one of this machine
    else:
        return
    with closing(address.listen(wanted.host, port)):
        pass


def _restarted(home: Home, told: Told, before: Started) -> Told:
    assert told.pid
    try:
        os.kill(told.pid, again.ASKED)
    except PermissionError:
        reason = f"the hub on {home.path} is another user's, pid {told.pid}"
        return replace(told, outcome=REFUSED, reason=reason, next="ask that user to run it")
    except ProcessLookupError:
        return _lost(home, told)

    def settled() -> bool:
        now = home.started()
        return home.owner() != told.pid or (now is not None and now.times > before.times and bool(home.running()))

    if not processes.wait_until(settled, daemon.READY_S):
        reason = f"the hub has not answered again within {daemon.READY_S:.0f} s"
        return replace(told, outcome=REFUSED, reason=reason, next="mycelium logs hub --tail 50")
    now, running = home.started(), home.running()
    if now is None or running is None or home.owner() != told.pid:
        return _lost(home, told)
    if now.refused:
        reason = f"the hub can't be started with that: {now.refused}; it runs with the settings before"
        return replace(told, outcome=REFUSED, url=running.url, reason=reason)
    return replace(told, outcome=APPLIED, url=running.url)


def _lost(home: Home, told: Told) -> Told:
    assert told.pid
    processes.wait_until(lambda: not processes.command_line(told.pid or 0), ENDED_S)  # then it has said why
    said = daemon.last_words(home)
    reason = f"the hub, pid {told.pid}, has ended" + (f": {said}" if said else "") + "; what was acknowledged is kept"
    return replace(told, outcome=LOST, url="", pid=None, reason=reason, next="mycelium up --detach")
