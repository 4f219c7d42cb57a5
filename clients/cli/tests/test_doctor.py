"""`doctor`: what it sees in settings, files and a hub's answers, and what it mends."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli import __version__, config
from mycelium_cli.doctor import files, outside, settings
from mycelium_cli.doctor.command import draw_findings
from mycelium_cli.doctor.finding import FIXED, NOTE, OK, WRONG, Finding
from mycelium_cli.output import PLAIN
from mycelium_cli.problems import is_local

HEALTH: dict[str, Any] = {
    "status": "ok",
    "version": __version__,
    "services": {"rooms": {"status": "ok", "detail": ""}},
    "auth": {"enabled": False},
    "nats": {"connected": True, "version": "2.15.1"},
    "warnings": [],
}


@pytest.fixture
def client_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of a hub is installed."""
    monkeypatch.setattr("mycelium_cli.doctor.command._inside", lambda *, fix, deep: iter(()))  # noqa: ARG005


def told(found: Iterator[Finding]) -> list[tuple[str, str, str]]:
    """State, what was seen and the next command."""
    return [(finding.state, finding.seen, finding.next) for finding in found]


def write(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True, mode=0o700)
    (home / "config.toml").write_text(text, encoding="utf-8")
    (home / "config.toml").chmod(0o600)


def test_no_settings_at_all_are_fine(home: Path) -> None:
    """The environment alone is enough, and a home is not made by looking for one."""
    assert [state for state, _, _ in told(settings.check())] == [OK]
    assert [state for state, _, _ in told(files.check_files())] == [OK]
    assert not home.exists()


def test_settings_that_nothing_reads_and_wrong_values_are_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nearest right name; a value is not repeated, since it may be a secret."""
    write(home, '[server]\napi_ur = "x"\n[runtime]\nbackend_port = 70000\n[rooms]\nactive = "demo"\n')
    monkeypatch.setenv("MYCELIUM_ACTIVE_ROOM", "other")
    path = config.path()
    assert told(settings.check()) == [
        (WRONG, f"{path} sets server.api_ur, which nothing reads; did you mean server.api_url?",
         "mycelium config set server.api_url <value>"),
        (WRONG, "runtime.backend_port is a port from 0 to 65535, not 70000",
         "mycelium config set runtime.backend_port <value>"),
        (NOTE, f"MYCELIUM_ACTIVE_ROOM is set in this shell, and wins over rooms.active in {path}",
         "unset MYCELIUM_ACTIVE_ROOM, or leave it so"),
    ]  # fmt: skip


@pytest.mark.usefixtures("client_alone")
def test_a_broken_settings_file_hides_nothing_else(home: Path, run: Run) -> None:
    """The other looks go on."""
    write(home, "[server\n")
    ran = run("doctor", "--json")
    found = json.loads(ran.out)
    assert ran.status == 1
    assert found["items"][0]["seen"].startswith(f"{config.path()} is not valid TOML")
    assert {"files", "disk"} <= {row["part"] for row in found["items"]}


def test_files_that_others_can_read_are_closed_by_fix(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets and settings; what people edit by hand in rooms is theirs."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:1")  # this machine may have a hub at the default address
    write(home, "")
    (home / "secrets").mkdir()
    for place, mode in ((home / "secrets" / "nats.json", 0o640), (home / "config.toml", 0o644)):
        place.touch()
        place.chmod(mode)
    (home / "secrets").chmod(0o755)
    (home / "rooms" / "demo").mkdir(parents=True, mode=0o755)
    found = list(files.check_files())
    assert [finding.state for finding in found] == [WRONG]
    assert "config.toml" in found[0].seen
    assert run("doctor", "--mode", "spoke", "--fix").status == 1  # no hub answers, which nothing here can mend
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert (home / "secrets").stat().st_mode & 0o777 == 0o700
    assert [finding.state for finding in files.check_files()] == [OK]


def test_a_hub_file_of_a_hub_that_is_gone_is_removed_by_fix(home: Path) -> None:
    """It runs as long as somebody holds the lock."""
    (home / "run").mkdir(parents=True)
    place = home / "run" / "hub.json"
    place.write_text('{"url": "http://127.0.0.1:1"}')
    with (home / "run" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [finding.state for finding in files.check_hub_file()] == [OK]
    (stale,) = files.check_hub_file()
    assert (stale.state, stale.mended().state) == (WRONG, FIXED)
    assert not place.exists()
    assert list(files.check_hub_file()) == []


def test_what_can_not_be_mended_says_why() -> None:
    """And stays wrong."""

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted")

    finding = Finding("files", WRONG, "open", "x", refused).mended()
    assert (finding.state, finding.seen) == (WRONG, "open; it can't be mended here: Operation not permitted")


@pytest.mark.parametrize(
    ("url", "here"),
    [("http://localhost:8000", True), ("http://127.0.0.1:1", True), ("http://[::1]:1", True), ("https://hub", False)],
)
def test_the_mode_is_told_by_the_hubs_address(url: str, here: bool) -> None:
    """A hub on this machine is looked at from inside too."""
    assert is_local(url) is here


def healthy(**changes: Any) -> bytes:
    date = format_datetime(changes.pop("date", datetime.now(UTC)), usegmt=True)
    return answer(200, {**HEALTH, **changes}, f"Date: {date}")


def test_a_spoke_looks_at_the_hub_and_at_who_and_where_it_acts(scripted: ScriptedHub, run: Run) -> None:
    """One line each, and nothing of what only the hub's machine can know."""
    scripted.play(healthy(), answer(200, {"registered": True}), answer(200, {"name": "demo"}))
    ran = run("doctor", "--mode", "spoke")
    assert ran.status == 0
    assert ran.out.splitlines() == [
        "looking as a spoke (--mode)",
        f"ok     config    no {config.path()}; the environment and the defaults are used",
        f"ok     files     {config.home()} is not there; nothing is kept on this machine",
        f"ok     hub       {scripted.url} answers (address from MYCELIUM_API_URL)",
        "ok     nats      ok, version 2.15.1",
        "ok     rooms     ok",
        f"ok     version   {__version__}, here and there",
        "note   sign-in   off, although the hub is on another machine: everybody is who they say",
        "                 → turn sign-in on at the hub, or let only people reach it whom you trust",
        "ok     clock     the hub's clock agrees with this machine's",
        "ok     identity  @avery (from MYCELIUM_AGENT_HANDLE)",
        "ok     room      demo (from MYCELIUM_ACTIVE_ROOM)",
        "nothing is wrong",
    ]


def test_everything_wrong_at_the_hub_is_a_line_with_what_to_do(scripted: ScriptedHub, run: Run) -> None:
    """Parts that are down, another version, a clock that is off, a missing room, an unknown handle."""
    scripted.play(
        healthy(
            status="degraded",
            version="9.9.9",
            services={
                "rooms": {"status": "down", "detail": "no answer"},
                "engine": {"status": "starting", "detail": "it starts once the hub answers"},
            },
            nats={"connected": False, "version": ""},
            warnings=["rooms is down: no answer", "anybody can reach this hub"],
            date=datetime(2020, 1, 1, tzinfo=UTC),
        ),
        answer(200, {"registered": False}),
        answer(404, {"slug": "room.not_found", "detail": "Room not found: demo"}),
    )
    ran = run("doctor", "--mode", "spoke", "--json")
    assert ran.status == 1
    rows = {(row["part"], row["state"]): (row["seen"], row["next"]) for row in json.loads(ran.out)["items"]}
    assert rows[("nats", WRONG)] == ("down: the gateway has no connection to it", "mycelium logs nats --tail 50")
    assert rows[("rooms", WRONG)] == ("down: no answer", "mycelium logs rooms --tail 50")
    assert rows[("engine", NOTE)][0] == "starting: it starts once the hub answers"
    assert rows[("hub", NOTE)] == ("anybody can reach this hub", None)
    assert rows[("version", NOTE)][0] == f"this command is {__version__}, the hub 9.9.9"
    assert "ahead of the hub's" in rows[("clock", WRONG)][0]
    assert rows[("identity", NOTE)][1] == "mycelium iam avery"
    assert rows[("room", WRONG)][0] == "404 Room not found: demo (from MYCELIUM_ACTIVE_ROOM)"


@pytest.mark.usefixtures("client_alone")
def test_a_port_that_another_program_has_is_said(scripted: ScriptedHub, run: Run, home: Path) -> None:
    """Something answers there that is no hub."""
    port = scripted.url.rpartition(":")[2]
    write(home, f"[runtime]\nbackend_port = {port}\n")
    scripted.play(answer(200, b"<html>", kind="text/html"))
    ran = run("doctor")
    assert ran.status == 1
    assert f"port {port} is in use by another program: address already in use" in ran.out
    assert f"→ lsof -i :{port}" in ran.out


def test_drift_between_settings_and_the_running_hub_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands would ask another hub than the one that runs here."""
    (home / "run").mkdir(parents=True)
    (home / "run" / "hub.json").write_text('{"url": "http://127.0.0.1:9000"}')
    monkeypatch.setenv("MYCELIUM_BACKEND_PORT", "8001")
    with (home / "run" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        here, there = "http://localhost:8000", "http://127.0.0.1:9000"
        asked = f"Runtime config drift: commands ask {here}, but the hub of {home} is at {there}"
        port = f"Runtime config drift: MYCELIUM_BACKEND_PORT says port 8001, but the hub answers at {there}"
        assert told(outside.drift(here)) == [
            (WRONG, asked, f"mycelium config set server.api_url {there}"),
            (NOTE, port, "mycelium down && mycelium up"),
        ]


def test_the_hubs_own_findings_are_taken_over(tmp_path: Path) -> None:
    """A program without a doctor, or of another shape, adds nothing."""
    program = tmp_path / "mycelium-hub"
    rows = [{"part": "log", "state": "wrong", "seen": "behind", "next": "mycelium logs rooms"}, {"state": "new"}]
    program.write_text(f"#!/bin/sh\necho '{json.dumps({'items': rows})}'\n")
    program.chmod(0o755)
    found = list(outside.check_inside(str(program)))
    assert found == [Finding("log", WRONG, "behind", "mycelium logs rooms"), Finding("hub file", NOTE, "")]
    program.write_text("""#!/bin/sh\necho '{"items": [{"part": "log", "state": "ok", "seen": "'"$*"'"}]}'\n""")
    assert [finding.seen for finding in outside.check_inside(str(program), fix=True, deep=True)] == [
        "doctor --json --fix --deep"
    ]
    program.write_text("#!/bin/sh\necho no such command >&2\nexit 2\n")
    assert list(outside.check_inside(str(program))) == []


def test_what_the_hubs_own_program_tells_is_told_once_and_mended_by_it(
    home: Path, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A line a part; what commands are set to is theirs alone to tell."""
    write(home, f'[server]\napi_ur = "x"\napi_url = "{scripted.url}"\n[runtime]\nbackend_prot = 1\n')
    (home / "config.toml").chmod(0o644)
    program = tmp_path / "mycelium-hub"
    again = "mycelium-hub doctor --fix"
    rows: list[dict[str, Any]] = [
        {"part": "config", "state": WRONG, "seen": "sets runtime.backend_prot", "next": "x", "fixable": False},
        {"part": "files", "state": WRONG, "seen": "open", "next": again, "fixable": True},
        {"part": "hub", "state": WRONG, "seen": "left behind", "next": again, "fixable": True},
        {"part": "nats", "state": OK, "seen": "syncs", "next": None, "fixable": False},
        {"part": "clock", "state": OK, "seen": "steady", "next": None, "fixable": False},
    ]
    mended = [{**row, "state": FIXED, "next": None} if row["fixable"] else row for row in rows]
    lines = [json.dumps({"items": shown}) for shown in (mended, rows)]
    program.write_text(f"#!/bin/sh\nif [ \"$3\" = --fix ]; then echo '{lines[0]}'; else echo '{lines[1]}'; fi\n")
    program.chmod(0o755)
    monkeypatch.setattr("mycelium_cli.machine.hub.program", lambda: str(program))
    answers = [healthy(), answer(200, {"registered": True}), answer(200, {"name": "demo"})]
    scripted.play(*answers, *answers)
    found = json.loads(run("doctor", "--mode", "hub", "--json").out)["items"]
    parts = [row["part"] for row in found]
    assert sorted({part for part in parts if parts.count(part) > 1}) == ["config"]
    assert [row["seen"].removeprefix(f"{config.path()} ") for row in found if row["part"] == "config"] == [
        "sets runtime.backend_prot",
        "sets server.api_ur, which nothing reads; did you mean server.api_url?",
    ]
    mendable = [(row["part"], row["next"]) for row in found if row["fixable"]]
    assert mendable == [("files", "mycelium doctor --fix"), ("hub file", "mycelium doctor --fix")]
    found = json.loads(run("doctor", "--mode", "hub", "--json", "--fix").out)["items"]
    assert [row["part"] for row in found if row["state"] == FIXED] == ["files", "hub file"]
    assert [row["part"] for row in found] == parts


def test_the_sum_says_how_much_fix_would_mend() -> None:
    """A line each, the next command below."""
    rows = [Finding("files", WRONG, "open", "mycelium doctor --fix", lambda: None), Finding("hub", WRONG, "away", "up")]
    document = {"mode": "hub", "why": "x", "items": [row.document() for row in rows]}
    assert list(draw_findings(document, PLAIN)) == [
        "looking as a hub (x)",
        "wrong  files  open",
        "              → mycelium doctor --fix",
        "wrong  hub    away",
        "              → up",
        "2 wrong; mycelium doctor --fix mends 1",
    ]
    deep = "mycelium down && mycelium doctor --deep --fix && mycelium up"
    document["items"] = [Finding("contents", WRONG, "other", deep, lambda: None).document()]
    assert list(draw_findings(document, PLAIN))[-1] == "1 wrong; mycelium doctor --deep --fix mends 1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_owner_are_named_with_the_way_back(home: Path) -> None:
    """The documented command."""
    write(home, "")
    os.chown(home / "config.toml", 12345, -1)
    (found,) = files.check_files()
    assert (found.state, found.next) == (WRONG, f"sudo chown -R $USER {home}")
    assert "belong to somebody else" in found.seen
