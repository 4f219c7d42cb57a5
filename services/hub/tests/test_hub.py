"""The hub as its user runs it: real processes, on a home and a port of the test's own.

That what was acknowledged survives a kill of the hub or of NATS is proven in e2e/test_hub.py, and more of it there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mycelium_hub import address, processes
from mycelium_hub.roster import Member, Roster
from services.hub.tests import calls
from services.hub.tests.conftest import HubCommand, wait_for

Wait = Callable[[Callable[[], object]], None]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubCommand]:
    """A hub that tests share: they end nothing of it."""
    hub = HubCommand(tmp_path_factory.mktemp("running") / "home")
    pid = hub.start()
    assert json.loads(hub.home.hub_file.read_text())["pid"] == pid
    yield hub
    for pid in hub.processes():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not hub.processes())


def test_it_tells_where_it_is_only_once_it_answers_there(running: HubCommand) -> None:
    """Where it is stands in `run/hub.json`, private. How soon, on an empty home, is measured in bench/."""
    written = json.loads(running.home.hub_file.read_text())
    assert written.keys() == {"url", "pid", "version", "started_at"}
    assert running.home.hub_file.stat().st_mode & 0o777 == 0o600
    assert calls.call(written["url"], "GET", "/healthz") == (200, "ok")
    assert calls.call(written["url"], "GET", "/health")[1]["status"] == "ok"


def test_up_twice_says_where_it_already_is(running: HubCommand) -> None:
    """In the background that is what was asked for; in the foreground it is refused with the reason."""
    pid = running.home.owner()
    again = running("up", "--detach")
    assert (again.returncode, again.stdout) == (0, f"The hub is already running at {running.url} (pid {pid})\n")
    foreground = running("up")
    assert foreground.returncode == 1
    said = f"error: a hub already runs on {running.home.path}: pid {pid}, {running.url}. Next: mycelium status\n"
    assert foreground.stderr == said


def test_a_server_that_outlived_its_hub_is_ended_first(hub: HubCommand, wait: Wait) -> None:
    """Where the system can't end children with their parent, the next start does."""
    hub.start()
    hub("down")
    config = hub.home.run / "nats.conf"
    with subprocess.Popen([str(Path(sys.executable).parent / "nats-server"), "-c", str(config)]) as left:
        wait(lambda: processes.command_line(left.pid))
        Roster(hub.home).put(Member("nats", "nats", 1, left.pid))
        hub.start()
        assert left.wait(timeout=60) == -signal.SIGKILL
    assert hub.nats_pid() != left.pid


def test_a_room_has_its_folders_in_the_home(running: HubCommand, wait: Wait) -> None:
    """Made with the room, and gone with it."""
    assert calls.call(running.url, "POST", "/api/rooms", {"name": "demo", "handle": "tester"})[0] == calls.CREATED
    folder = running.home.rooms / "demo"
    wait((folder / "decisions").is_dir)
    assert calls.call(running.url, "DELETE", "/api/rooms/demo")[0] == 204
    wait(lambda: not folder.exists())


def test_it_stops_in_order_and_says_so(hub: HubCommand) -> None:
    """`down` returns when every process is gone; a second one has nothing to do."""
    pid = hub.start()
    done = hub("down")
    assert (done.returncode, done.stdout) == (0, f"The hub is stopped (pid {pid})\n")
    assert not hub.processes()
    assert not hub.home.hub_file.exists()
    again = hub("down")
    assert (again.returncode, again.stdout) == (0, f"No hub was running on {hub.home.path}\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_foreground_it_prints_its_address_and_ends_by_a_signal(hub: HubCommand, number: int) -> None:
    """Ctrl-C or SIGTERM is the ordinary end: status 0, nothing left."""
    command = [sys.executable, "-P", "-m", "mycelium_hub", "up", "--port", "0"]
    environment = hub.environment | {"MYCELIUM_HOME": str(hub.home.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode() == f"The hub answers at {hub.url}\n"
        assert str(hub.home.path) in processes.command_line(process.pid)
        process.send_signal(number)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert not hub.processes()


def test_a_signal_while_it_starts_ends_it_there(hub: HubCommand, wait: Wait) -> None:
    """Ctrl-C at once also leaves nothing."""
    command = [sys.executable, "-P", "-m", "mycelium_hub", "up", "--port", "0", "--home", str(hub.home.path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=hub.environment) as process:
        wait(hub.nats_pid_or_none)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert not hub.processes()


@pytest.mark.parametrize("gone", ["", "nats"])
def test_a_hub_whose_home_is_deleted_ends(hub: HubCommand, gone: str) -> None:
    """It must not go on acknowledging into files that nobody can find again."""
    pid = hub.start()
    shutil.rmtree(hub.home.path / gone)

    assert processes.wait_until(lambda: not hub.processes(), 20), pid


def test_a_home_may_have_any_letters(hub: HubCommand, tmp_path: Path) -> None:
    """The server's configuration names the home, in a notation that has no escapes for them."""
    other = type(hub)(tmp_path / "jörg's 家")
    other.start()
    try:
        assert calls.call(other.url, "GET", "/health")[1]["status"] == "ok"
    finally:
        other("down")


@pytest.mark.parametrize("how", ["flag", "environment", "file"])
def test_a_port_in_use_is_said_with_a_way_out(hub: HubCommand, how: str) -> None:
    """Wherever the port was asked for; nothing is left of the attempt."""
    with closing(address.listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        hub.home.prepare()
        if how == "file":
            (hub.home.path / "config.toml").write_text(f"[runtime]\nbackend_port = {port}\n")
        flags = ["--port", str(port)] if how == "flag" else []
        environment = {"MYCELIUM_BACKEND_PORT": str(port)} if how == "environment" else {}
        refused = hub("up", "--detach", *flags, **environment)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: port {port} is in use (pid {os.getpid()}, ")
    assert refused.stderr.count("\n") == 1
    assert not hub.processes()


def test_an_open_address_without_sign_in_is_refused(hub: HubCommand) -> None:
    """Nothing is left of the attempt."""
    refused = hub("up", "--detach", "--port", "0", MYCELIUM_BIND_ADDR="0.0.0.0")
    assert refused.returncode == 1
    assert "0.0.0.0 can be reached from other machines, and sign-in is off" in refused.stderr
    assert not hub.processes()


def test_status_shows_processes_address_and_health(hub: HubCommand, running: HubCommand) -> None:
    """As lines and as JSON; 3 when none runs."""
    nothing = hub("status")
    assert (nothing.returncode, nothing.stdout) == (
        3, f"no hub is running on {hub.home.path}; `mycelium up --detach` starts one\n",
    )  # fmt: skip
    said = json.loads(running("status", "--json").stdout)
    told = (said["running"], said["pid"], said["url"], said["nats_pid"])
    assert told == (True, running.home.owner(), running.url, running.nats_pid())
    assert said["health"]["services"]["rooms"]["status"] == "ok"
    shown = running("status")
    assert shown.returncode == 0
    assert [line.split()[:2] for line in shown.stdout.splitlines()[:4]] == [
        ["hub", "ok"], ["nats", "ok"], ["gateway", "ok"], ["rooms", "ok"],
    ]  # fmt: skip


def test_logs_of_all_and_of_one_are_shown(hub: HubCommand) -> None:
    """Also after the end, when one wants to know why."""
    hub.start()
    hub("down")
    everything = hub("logs").stdout
    assert all(
        word in everything for word in ("Server is ready", "rooms is ready", "gateway is ready", "ready at http")
    )
    rooms = hub("logs", "rooms", "--json", "--tail", "1000").stdout.splitlines()
    assert {json.loads(line)["service"] for line in rooms} == {"rooms"}
    assert hub("logs", "nonsense").returncode == 3


def test_volumes_deletes_the_data_and_nothing_else(hub: HubCommand) -> None:
    """Only after a yes; settings stay."""
    hub.start()
    (hub.home.path / "config.toml").write_text("")
    unasked = hub("down", "--volumes")
    assert unasked.returncode == 2
    assert "--yes" in unasked.stderr
    assert hub.home.owner() is not None
    assert hub("down", "--volumes", "--yes").returncode == 0
    assert [path.name for path in hub.home.path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [(("up", "--detatch"), "--detach"), (("down", "--volume"), "--volumes"), (("logs", "--folow"), "--follow")],
)
def test_a_misspelt_flag_is_answered_with_the_right_one(hub: HubCommand, words: tuple[str, ...], hint: str) -> None:
    """Usage errors have status 2 and name what was meant."""
    refused = hub(*words)
    assert refused.returncode == 2
    assert hint in refused.stderr
