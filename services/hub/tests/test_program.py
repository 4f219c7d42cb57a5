"""The program starts in little more than its interpreter: what a command does not need it does not load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVICES = {"asyncio", "google.protobuf", "nats", "sqlite3", "temporalio"}
HEAVY = SERVICES | {"ctypes", "http.client", "logging", "mycelium_hub.daemon"}
PROGRAM = """
import contextlib, sys
from mycelium_hub.errors import Refused
from mycelium_hub.main import group
with contextlib.suppress(SystemExit, Refused):
    group(sys.argv[1:], standalone_mode=False)
sys.stderr.write("\\n" + " ".join(sys.modules))
"""


def loaded(*words: str) -> set[str]:
    """The modules that are loaded once the program has run."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True)
    return set(done.stderr.decode().splitlines()[-1].split())


@pytest.mark.parametrize("command", ["", "up", "down", "status", "logs", "doctor"])
def test_help_loads_no_command_and_nothing_heavy(command: str) -> None:
    """Who asks how a command is used does not wait for what it would do."""
    found = loaded(*command.split(), "--help")
    assert "mycelium_hub.settings" in found
    assert not found & HEAVY


@pytest.mark.parametrize("command", ["down", "status", "logs"])
def test_what_looks_at_a_home_loads_no_service(command: str, tmp_path: Path) -> None:
    """A hub is stopped, and its logs are read, without what only a running one needs."""
    found = loaded(command, "--home", str(tmp_path / "home"))
    assert found & {"mycelium_hub.daemon", "mycelium_hub.status", "mycelium_hub.logs"}
    assert not found & SERVICES


@pytest.mark.parametrize(
    ("words", "settings", "status", "said", "hint"),
    [
        (("down", "--volumes"), "", 2, "deleting every room and message needs --yes", "mycelium down --volumes --yes"),
        (("logs", "nothing"), "", 3, "there is no log of 'nothing'", "mycelium logs hub"),
        (("up",), "[log]\nlevel = 'loud'\n", 1, "log.level is 'loud' in config.toml", "mycelium doctor"),
    ],
)
def test_a_refusal_says_what_to_do_next_and_is_a_document_for_programs(
    words: tuple[str, ...], settings: str, status: int, said: str, hint: str, tmp_path: Path
) -> None:
    """In the shape of every refusal of `mycelium`, which becomes this program."""
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "hub.log").touch()
    (home / "config.toml").write_text(settings)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MYCELIUM_")}
    program = [sys.executable, "-c", "from mycelium_hub.main import run; run()", *words, "--home", str(home)]

    def refused(*more: str) -> str:
        done = subprocess.run(
            [*program, *more], capture_output=True, check=False, env=environment, stdin=subprocess.DEVNULL, text=True
        )
        assert (done.returncode, done.stdout) == (status, "")
        return done.stderr

    line = refused()
    assert line.startswith(f"error: {said}")
    assert line.endswith(f". Next: {hint}\n")
    if words[0] != "logs":  # its lines are JSON already
        told = json.loads(refused("--json"))
        assert (told["next"], told["exit"], told["error"].startswith(said)) == (hint, status, True)
