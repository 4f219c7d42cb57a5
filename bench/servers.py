"""The servers that are compared: a hub of its own home, and the floor on a NATS server with the same settings."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.wire import Wire
from mycelium_kernel import testing

BIN = Path(sys.executable).parent
UP = (str(BIN / "mycelium-hub"), "up", "--port", "0")
BOUND_S = 20.0
ENGINES_S = 60.0


@dataclass(frozen=True)
class RunningHub:
    """A hub that answers: its port, home, process, and the environment in which the CLI finds it."""

    port: int
    home: Path
    environment: dict[str, str]
    pid: int


@contextlib.asynccontextmanager
async def hub(**settings: str) -> AsyncIterator[RunningHub]:
    """A hub on an empty home and a free port."""
    with tempfile.TemporaryDirectory(prefix="mycelium-bench-") as folder:
        async with hub_at(Path(folder) / "home", UP, **settings) as running:
            yield running


@contextlib.asynccontextmanager
async def hub_at(home: Path, command: tuple[str, ...] = UP, **settings: str) -> AsyncIterator[RunningHub]:
    """A hub on that home and a free port; `settings` are added to its environment."""
    environment = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(home.parent),
        "MYCELIUM_HOME": str(home),
        "MYCELIUM_RUNTIME_ENGINES": "false",  # what is measured is not what starts beside it
        **settings,
    }
    home.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        said = await _said(home / "run" / "hub.json")
        port = int(said["url"].rsplit(":", 1)[1])
        await _assert_hub(port)
        yield RunningHub(port, home, environment, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=BOUND_S)


async def _said(path: Path) -> dict[str, str]:
    async with asyncio.timeout(BOUND_S):
        while not path.exists():
            await asyncio.sleep(0.02)
    said: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return said


async def _assert_hub(port: int) -> None:
    wire = Wire(port)
    health = await wire.request("GET", "/health")
    async with asyncio.timeout(ENGINES_S):
        while health["status"] != "ok":  # engines come after rooms
            await asyncio.sleep(0.1)
            health = await wire.request("GET", "/health")
    wire.close()
    assert health["services"]["rooms"]["status"] == "ok", health


@dataclass(frozen=True)
class RunningFloor:
    """A server that we are compared with: its port and process."""

    port: int
    pid: int


@contextlib.asynccontextmanager
async def floor(module: str = "bench.floor") -> AsyncIterator[RunningFloor]:
    """A program that does the same with the least code, on a NATS server of its own with the same settings."""
    with tempfile.TemporaryDirectory(prefix="mycelium-floor-") as folder:
        async with testing.nats_server(Path(folder)) as server:
            port = testing.free_port()
            process = subprocess.Popen([sys.executable, "-m", module, server.url, str(port)])
            try:
                await _assert_floor(port)
                yield RunningFloor(port, process.pid)
            finally:
                process.terminate()
                process.wait(timeout=BOUND_S)


async def _assert_floor(port: int) -> None:
    async with asyncio.timeout(BOUND_S):
        while True:
            wire = Wire(port)
            try:
                assert await wire.request("GET", "/who") == {"who": "floor"}
            except OSError:
                await asyncio.sleep(0.02)
                continue
            finally:
                wire.close()
            return


def resident_kb(pid: int) -> int:
    """Memory that a process holds now."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))
