"""A real hub, machines that use it through the real `mycelium` program, and rooms to test in.

Nothing here imports the product. A machine has a home of its own, so that what a test sets stays in that test.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from e2e.processes import Background, Result, children
from e2e.waiting import until
from e2e.web import Api

BIN = Path(sys.executable).parent
MYCELIUM = BIN / "mycelium"
START_S = 90.0
# Below the ports that the system gives to outgoing connections: while a hub is down, a client that keeps trying could
# otherwise connect to itself on the hub's own port.
# `make test-split` runs the same suite on hubs whose services are processes of their own, two of each.
SPLIT = {"MYCELIUM_RUNTIME_SPLIT": "true", "MYCELIUM_RUNTIME_REPLICAS": "2"} if os.environ.get("E2E_SPLIT") else {}
LOW_PORTS = range(10_000, 19_999)


def free_port() -> int:
    """A port for a hub that will come back on it."""
    for port in random.sample(LOW_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


class Machine:
    """Somebody's computer: a home, perhaps the address of a hub elsewhere, and the `mycelium` program."""

    def __init__(self, home: Path, url: str = "") -> None:
        self.home = home
        self.url = url
        self.running: list[Background] = []

    def environment(
        self, handle: str = "", session: str = "", room: str = "", env: dict[str, str] | None = None
    ) -> dict[str, str]:
        """Nothing of the developer's own, and what the test says."""
        said = {
            "MYCELIUM_API_URL": self.url,
            "MYCELIUM_AGENT_HANDLE": handle,
            "MYCELIUM_SESSION": session or (f"{handle}-session" if handle else ""),
            "MYCELIUM_ACTIVE_ROOM": room,
        }
        clean = {
            "PATH": f"{BIN}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(self.home.parent),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "MYCELIUM_HOME": str(self.home),
            "MYCELIUM_RUNTIME_ENGINES": "false",  # they take seconds and 250 MB; `e2e/engines.py` runs hubs with them
            **SPLIT,
        }
        return clean | {name: value for name, value in said.items() if value} | (env or {})

    def run(
        self,
        *args: str,
        handle: str = "",
        session: str = "",
        room: str = "",
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        cwd: Path | None = None,
        within_s: float = 60.0,
    ) -> Result:
        """One command line, to its end."""
        done = subprocess.run(
            [MYCELIUM, *args],
            env=self.environment(handle, session, room, env),
            cwd=cwd,
            input=stdin,
            capture_output=True,
            timeout=within_s,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def start(
        self, *args: str, handle: str = "", session: str = "", room: str = "", env: dict[str, str] | None = None
    ) -> Background:
        """One command line, in the background until it ends or the test does."""
        return self.start_program([MYCELIUM, *args], self.environment(handle, session, room, env))

    def start_program(self, command: list[str | Path], environment: dict[str, str]) -> Background:
        """Any program of this machine, ended with the test."""
        started = Background(command, environment)
        self.running.append(started)
        return started

    def close(self) -> None:
        """End what was started here, last first."""
        while self.running:
            self.running.pop().end()


class Hub:
    """A hub of its own: started by `mycelium up`, found by `run/hub.json`, ended by its pid."""

    def __init__(self, home: Path, port: int = 0, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.port = port
        self.env = env or {}
        self.machine = Machine(home)
        self.process: Background | None = None
        self.url = ""
        self.version = ""

    @property
    def hub_file(self) -> Path:
        """Where the hub says that it is there."""
        return self.home / "run" / "hub.json"

    @property
    def api(self) -> Api:
        """The hub over HTTP."""
        return Api(self.url)

    @property
    def pid(self) -> int:
        """The hub's process."""
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether the hub's process runs."""
        return self.process is not None and self.process.alive

    def start(self) -> "Hub":
        """Start it and make sure that it is this one that answers."""
        assert not self.alive
        command: list[str | Path] = [MYCELIUM, "up", "--port", str(self.port)]
        self.process = Background(command, self.machine.environment(env=self.env))
        self.url = str(until(self._announced, "the hub announces itself", START_S)["url"])
        health = self.api.get("/health").json
        assert health["version"] == self.version, f"another program answers at {self.url}: {health}"
        if SPLIT and "MYCELIUM_RUNTIME_SPLIT" not in self.env:
            split = {f"{name}{replica}" for name in ("rooms", "memory", "board", "gateway") for replica in ("", "-2")}
            assert self.processes().keys() >= split, "it is not split"
        return self

    def processes(self) -> dict[str, int]:
        """The hub's processes by name, as it lists them."""
        listed = json.loads((self.home / "run" / "processes.json").read_text())["items"]
        return {str(item["name"]): int(item["pid"]) for item in listed}

    def _announced(self) -> dict[str, Any] | None:
        assert self.process is not None
        if not self.process.alive:
            raise AssertionError(f"the hub ended at its start: {self.process.ended()}")
        try:
            found: dict[str, Any] = json.loads(self.hub_file.read_text())
        except (OSError, ValueError):
            return None
        self.version = found["version"]
        return found if found["pid"] == self.pid else None

    def nats(self) -> int:
        """The process of this hub's NATS server."""
        found = [pid for pid, command in children(self.pid).items() if "nats-server" in command]
        assert len(found) == 1, f"one NATS server, not {found}"
        return found[0]

    def kill(self) -> None:
        """SIGKILL: no farewell, nothing flushed."""
        assert self.process is not None
        self.process.kill()

    def restart(self) -> None:
        """Kill it and start it again at the same address."""
        assert self.port, "a hub that comes back needs a port of its own"
        self.kill()
        self.start()

    def stop(self) -> Result:
        """SIGTERM, as `mycelium down` and Ctrl-C do."""
        assert self.process is not None
        self.process.signal(signal.SIGTERM)
        return self.process.ended(30.0)

    def close(self) -> None:
        """End whatever of it still runs."""
        self.machine.close()
        if self.process is not None:
            self.process.end()

    def errors(self) -> list[str]:
        """Every record of level error that its logs hold: a bug writes one."""
        logs = [path for path in (self.home / "logs").glob("*.log") if path.stem != "nats"]
        lines = [line for path in logs for line in path.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if '"level": "error"' in line or '"level":"error"' in line]
