"""A hub that starts again in its own process: whatever comes meanwhile, and however often it is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_hub import again, roster
from services.hub.tests import calls
from services.hub.tests.test_applying import apply, starts, write
from services.hub.tests.test_stop import Load, prepare

if TYPE_CHECKING:
    from services.hub.tests.conftest import HubCommand

Wait = Callable[[Callable[[], object]], None]


def test_two_at_once_are_one_after_the_other(hub: HubCommand) -> None:
    """The second finds nothing left to do."""
    hub.start()
    write(hub, "[log]\nlevel = 'debug'\n")
    command = [sys.executable, "-P", "-m", "mycelium_hub", "apply", "--home", str(hub.home.path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, env=hub.environment) for _ in range(2)]
    told = [json.loads(one.communicate(timeout=90)[0])["outcome"] for one in both]
    assert (sorted(told), starts(hub)) == (["applied", "same"], 2)


def test_down_while_it_starts_again_ends_it(hub: HubCommand) -> None:
    """In order, and for good."""
    pid = hub.start()
    os.kill(pid, again.ASKED)
    assert hub("down").returncode == 0
    assert not hub.processes()
    assert not hub.home.hub_file.exists()
    hub.start()


def test_a_hub_that_dies_of_it_is_said(hub: HubCommand, wait: Wait) -> None:
    """With what to do. It is frozen until it has been asked, then killed."""
    pid = hub.start()
    write(hub, "[log]\nlevel = 'debug'\n")
    os.kill(pid, signal.SIGSTOP)
    command = [sys.executable, "-P", "-m", "mycelium_hub", "apply", "--home", str(hub.home.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=hub.environment) as asking:
        wait(lambda: _is_asked(pid))
        os.kill(pid, signal.SIGKILL)
        told = json.loads(asking.communicate(timeout=90)[0])
    assert (asking.returncode, told["outcome"], told["next"]) == (1, "lost", "mycelium up --detach")
    assert f"the hub, pid {pid}, has ended; what was acknowledged is kept" in told["reason"]


def _is_asked(pid: int) -> bool:
    """Whether the signal waits for it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    waiting = next(int(line.split()[1], 16) for line in lines if line.startswith("ShdPnd"))
    return bool(waiting >> (again.ASKED - 1) & 1)


def test_a_hub_of_another_version_is_not_asked(hub: HubCommand) -> None:
    """One that does not count its starts would die of the signal."""
    hub.start()
    told = json.loads(hub.home.started_file.read_text())
    hub.home.started_file.write_text(json.dumps({name: told[name] for name in ("pid", "settings", "wall_s", "boot_s")}))
    answer = apply(hub, "--restart", status=1)
    assert (answer["outcome"], answer["next"]) == ("refused", "mycelium down && mycelium up")
    assert calls.call(hub.url, "GET", "/healthz")[0] == calls.OK


def test_a_call_that_comes_while_the_hub_starts_again_waits_for_it(hub: HubCommand, wait: Wait) -> None:
    """When everything has stopped and nothing runs yet, the socket takes the call, and the hub answers it."""
    pid = hub.start()
    url = hub.url
    os.kill(pid, again.ASKED)
    wait(lambda: not roster.path(hub.home).exists())
    assert calls.call(url, "GET", "/healthz") == (calls.OK, "ok")
    assert hub.url == url


def test_nobody_who_posts_meanwhile_is_turned_away_or_loses_what_was_acknowledged(hub: HubCommand, wait: Wait) -> None:
    """Callers wait at the socket; three times, the last with every service a process of its own."""
    prepare(hub)
    load = Load(hub.url, iter(range(1_000_000)))

    def more() -> None:
        enough = len(load.acknowledged) + 20
        wait(lambda: len(load.acknowledged) >= enough)

    with load.running():
        for text in ("", "", "[runtime]\nsplit = true\n"):
            more()
            write(hub, text)
            assert apply(hub, "--restart")["outcome"] == "applied"
        more()
    assert load.acknowledged <= set(calls.texts(hub.url))
    assert not [error for error in load.lost if isinstance(error, ConnectionRefusedError)]


def test_a_hub_that_is_asked_again_and_again_starts_again(hub: HubCommand, wait: Wait) -> None:
    """The signal means one thing at any moment, also while the process is not yet a hub that listens for it."""
    prepare(hub)
    calls.post(hub.url, "kept")
    pid = hub.home.owner()
    assert pid
    pace = threading.Event()
    for _ in range(200):
        os.kill(pid, again.ASKED)
        pace.wait(0.01)
    wait(hub.home.running)
    assert calls.texts(hub.url) == ["kept"]
    assert (hub.home.owner(), starts(hub) > 1) == (pid, True)


def test_settings_may_be_long(hub: HubCommand) -> None:
    """A hub hands them to itself, however long they are."""
    hub.start()
    write(hub, f"[runtime]\nallowed_hosts = '{'hub.example.com,' * 10_000}'\n")
    assert apply(hub)["outcome"] == "applied"
    assert apply(hub, "--restart")["outcome"] == "applied"
