"""`doctor`: what it sees in a home, a running hub, its server, its log and its tables; what it mends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_hub import address, examine_home, examine_tables, nats_config
from mycelium_hub.finding import FIXED, NOTE, OK, WRONG, Finding
from mycelium_hub.home import Home
from mycelium_hub.roster import Member, Roster
from mycelium_kernel import testing
from services.hub.tests import calls

if TYPE_CHECKING:
    from pathlib import Path

    from services.hub.tests.conftest import HubCommand

Wait = Callable[[Callable[[], object]], None]
PARTS = ["config", "files", "hub", "tree", "port", "drift", "limits", "nats", "stream", "log", "clock"]
PARTS += ["tables", "tables", "tables", "model"]


def look(hub: HubCommand, *flags: str, **environment: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and rows of `doctor --json`."""
    done = hub("doctor", "--json", *flags, **environment)
    assert "Traceback" not in done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return done.returncode, rows


def seen(hub: HubCommand, part: str, *flags: str, **environment: str) -> dict[str, Any]:
    """The first row of a part."""
    return next(row for row in look(hub, *flags, **environment)[1] if row["part"] == part)


def _create(hub: HubCommand) -> None:
    hub.start()
    assert calls.call(hub.url, "POST", "/api/rooms", {"name": "demo", "handle": "tester"})[0] == calls.CREATED
    calls.post(hub.url, "kept")


def test_tables_of_replicas_are_told_apart(tmp_path: Path) -> None:
    """By the name that their logs have."""
    home = Home(tmp_path)
    for folder in (home.tables, home.tables / "2"):
        folder.mkdir()
        with closing(sqlite3.connect(folder / "rooms.sqlite")) as tables, tables:
            tables.execute("CREATE TABLE meta (name TEXT, value TEXT)")
            tables.execute("INSERT INTO meta VALUES ('position', '7')")
    said = [finding.seen for finding in examine_tables.check(home, None)]
    assert said[:2] == ["rooms: whole, up to fact 7", "rooms-2: whole, up to fact 7"]


def test_a_working_hub_has_nothing_wrong(hub: HubCommand) -> None:
    """Every look is ok, exit status 0; as lines for people, too."""
    _create(hub)
    status, rows = look(hub)
    assert status == 0
    assert [row["part"] for row in rows] == PARTS
    assert {row["state"] for row in rows} == {OK}
    assert all(row.keys() == {"part", "state", "seen", "next", "fixable"} for row in rows)
    told = {row["part"]: row["seen"] for row in rows}
    assert "syncs every fact" in told["nats"]
    assert told["log"].startswith("facts 1 to 2, ")
    tables = [row["seen"] for row in rows if row["part"] == "tables"]
    assert tables == ["rooms: whole, at fact 2 of 2", "memory: whole, at fact 1 of 1", "board: whole, at fact 2 of 2"]
    done = hub("doctor")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "nothing is wrong"


def test_without_a_hub_it_says_how_to_start_one(hub: HubCommand) -> None:
    """Nothing is made by looking, and not running is no fault."""
    done = hub("doctor", MYCELIUM_BACKEND_PORT=str(address.free_ports(1)[0]))
    assert done.returncode == 0
    assert "→ mycelium up" in done.stdout
    assert not hub.home.path.exists()


def test_settings_that_mean_nothing_are_named_with_the_nearest(hub: HubCommand) -> None:
    """A misspelt key, a key of nobody, a value that can't be, a file that is no TOML; what commands read is theirs."""
    hub.home.prepare()
    path = hub.home.path / "config.toml"
    path.write_text("[runtime]\nbackend_prot = 1\n[server]\napi_url = 'x'\n[nobody]\nreads = 'it'\n")
    rows = [row for row in look(hub)[1] if row["part"] == "config"]
    assert ["did you mean runtime.backend_port?" in row["seen"] for row in rows] == [True, False]
    assert rows[1]["next"] == f"take nobody.reads out of {path}"
    for text, words in (("[log]\nlevel = 'loud'\n", "log.level is 'loud' in config.toml"), ("= =", "can't be read")):
        path.write_text(text)
        row = seen(hub, "config")
        assert row["state"] == WRONG
        assert words in row["seen"]


def test_files_that_others_can_read_are_closed(hub: HubCommand) -> None:
    """With --fix; then nothing is wrong with them."""
    hub.home.prepare()
    secret = hub.home.secrets / "nats.json"
    secret.write_text("{}")
    secret.chmod(0o644)
    hub.home.logs.chmod(0o755)
    row = seen(hub, "files")
    assert (row["state"], row["fixable"], row["next"]) == (WRONG, True, "mycelium-hub doctor --fix")
    assert str(secret) in row["seen"]
    assert seen(hub, "files", "--fix")["state"] == FIXED
    assert secret.stat().st_mode & 0o777 == 0o600
    assert hub.home.logs.stat().st_mode & 0o777 == 0o700
    assert seen(hub, "files")["state"] == OK


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_somebody_else_are_named(hub: HubCommand) -> None:
    """They can't be taken back without asking, so the command is said."""
    hub.home.prepare()
    os.chown(hub.home.tables, 12345, 12345)
    row = seen(hub, "files", "--fix")
    assert (row["state"], row["next"]) == (WRONG, f"sudo chown -R $USER {hub.home.path}")


def test_what_a_killed_hub_left_is_swept(hub: HubCommand, wait: Wait) -> None:
    """Its file, a half-written one, a server that outlived it."""
    pid = hub.start()
    config = hub.home.run / "nats.conf"
    os.kill(pid, signal.SIGKILL)
    wait(lambda: not hub.processes())
    (hub.home.run / ".hub.json.abc").write_text("{")
    with subprocess.Popen([str(nats_config.binary()), "-c", str(config)]) as left:
        Roster(hub.home).put(Member("nats", "nats", 1, left.pid))
        wait(lambda: hub.nats_pid_or_none() == left.pid)
        row = seen(hub, "hub")
        assert (row["state"], row["fixable"]) == (WRONG, True)
        assert str(hub.home.hub_file) in row["seen"]
        assert f"pid {left.pid}" in row["seen"]
        assert seen(hub, "hub", "--fix")["state"] == FIXED
        assert left.wait(timeout=60) == -signal.SIGKILL
    assert not hub.home.hub_file.exists()
    assert seen(hub, "hub")["state"] == NOTE


def test_a_port_that_somebody_has_is_said(hub: HubCommand) -> None:
    """With its holder."""
    hub.home.prepare()
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        row = seen(hub, "port", MYCELIUM_BACKEND_PORT=str(port))
    assert row["state"] == WRONG
    assert row["seen"].startswith(f"port {port} is in use (pid {os.getpid()}, ")


def test_settings_changed_under_a_running_hub_are_drift(hub: HubCommand) -> None:
    """What came from the file is wrong now; what came from a flag is only noted."""
    hub.home.prepare()
    path = hub.home.path / "config.toml"
    path.write_text("[log]\nlevel = 'warning'\n")
    hub.start()
    path.write_text("[log]\nlevel = 'debug'\n[runtime]\nbackend_port = 8123\n")
    rows = {row["state"]: row for row in look(hub)[1] if row["part"] == "drift"}
    assert rows.keys() == {WRONG, NOTE}
    assert "log.level 'warning' (config.toml), now it is 'debug'" in rows[WRONG]["seen"]
    assert "runtime.backend_port 0 (--port), now it is 8123" in rows[NOTE]["seen"]
    assert rows[WRONG]["next"] == "mycelium config apply"
    assert rows[NOTE]["next"] == "mycelium down, then mycelium up without --port"


def test_a_clock_that_was_set_is_noticed(hub: HubCommand) -> None:
    """Against the clock that nobody can set, and against the last fact's time."""
    _create(hub)
    told = json.loads(hub.home.started_file.read_text())
    told["wall_s"] -= 3600
    hub.home.started_file.write_text(json.dumps(told))
    row = seen(hub, "clock")
    assert row["state"] == NOTE
    assert "was set forward by 3600 s since the hub started" in row["seen"]


def test_a_frozen_server_is_said(hub: HubCommand) -> None:
    """The look ends, and says what to do."""
    hub.start()
    os.kill(hub.nats_pid(), signal.SIGSTOP)
    row = seen(hub, "nats")
    assert (row["state"], row["next"]) == (WRONG, "mycelium down && mycelium up")
    assert "does not answer" in row["seen"]


def test_damaged_tables_are_named_and_made_again(hub: HubCommand) -> None:
    """They come from the log: --fix takes them away, the next start makes them, and nothing is lost."""
    _create(hub)
    hub("down")
    path = hub.home.tables / "rooms.sqlite"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    row = seen(hub, "tables")
    assert (row["state"], row["fixable"]) == (WRONG, True)
    assert seen(hub, "tables", "--fix")["state"] == FIXED
    hub.start()
    assert calls.texts(hub.url) == ["kept"]
    assert seen(hub, "tables")["state"] == OK


def test_tables_of_another_log_are_named(hub: HubCommand) -> None:
    """As when only a part of a home was brought back; under a running hub nothing is taken away."""
    _create(hub)
    hub("down")
    shutil.copy(hub.home.tables / "rooms.sqlite", hub.home.path / "kept.sqlite")
    hub("down", "--volumes", "--yes")
    hub.start()
    for path in hub.home.tables.iterdir():
        path.unlink()
    shutil.copy(hub.home.path / "kept.sqlite", hub.home.tables / "rooms.sqlite")
    row = seen(hub, "tables", "--fix")
    assert row["state"] == WRONG
    assert "made from another log; it can't be mended here: a hub already runs" in row["seen"]


def test_a_disk_without_room_is_said(hub: HubCommand) -> None:
    """Posts are refused, and where room has to be made."""
    try:
        with testing.small_disk(hub.home.path, 32):
            hub.start()
            with (hub.home.path / "filler").open("wb", buffering=0) as file:
                file.write(b"\0" * (28 << 20))
            row = seen(hub, "log")
            hub("down")
    except PermissionError as error:
        pytest.skip(f"no small disk can be mounted ({error}); try as root, or under `unshare -Urm`")
    assert row["state"] == WRONG
    assert "posts are refused" in row["seen"]
    assert row["next"].startswith("make room on the disk of ")


def test_what_cannot_be_mended_says_why() -> None:
    """The finding stays wrong, with the reason."""

    def fail() -> None:
        raise PermissionError(1, "Operation not permitted")

    finding = Finding("files", WRONG, "seen", "next", fail).mended()
    assert finding.state == WRONG
    assert finding.seen == "seen; it can't be mended here: [Errno 1] Operation not permitted"


def test_few_files_are_a_limit(tmp_path: Any) -> None:
    """What the next hub could open is told even when none runs."""
    [finding] = examine_home.check_limits(Home(tmp_path))
    assert finding.part == "limits"
    assert "a hub may open" in finding.seen
