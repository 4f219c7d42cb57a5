"""The program starts in little more than its interpreter: what a command does not need it does not load."""

from __future__ import annotations

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
