"""A hub of the test's own: a home in the test's folder, any free port, ended whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mycelium_hub import nats_server, processes
from mycelium_hub.home import Home

BOUND_S = 60.0


class HubCommand:
    """`mycelium-hub` on one home, as a person runs it."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("MYCELIUM_", "COVERAGE_"))
        } | {"HOME": str(folder.parent), "MYCELIUM_RUNTIME_ENGINES": "false"}

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "mycelium_hub", *arguments, "--home", str(self.home.path)],
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
        )

    def start(self, **environment: str) -> int:
        """Start it in the background on a free port; its process id."""
        done = self("up", "--detach", "--port", "0", "--json", **environment)
        assert done.returncode == 0, done.stderr
        pid: int = json.loads(done.stdout)["pid"]
        return pid

    @property
    def url(self) -> str:
        running = self.home.running()
        assert running is not None
        return running.url

    def nats_pid(self) -> int:
        found = nats_server.pid(self.home)
        assert found is not None
        return found

    def nats_pid_or_none(self) -> int | None:
        return nats_server.pid(self.home)

    def processes(self) -> list[int]:
        """Every process whose command line names the home."""
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [number for number in numbers if str(self.home.path) in processes.command_line(number)]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubCommand]:
    command = HubCommand(tmp_path / "home")
    yield command
    for pid in command.processes():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not command.processes())


def wait_for(condition: Callable[[], object], within_s: float = BOUND_S) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not become so in time"
        time.sleep(0.02)


@pytest.fixture
def wait() -> Callable[[Callable[[], object]], None]:
    return wait_for
