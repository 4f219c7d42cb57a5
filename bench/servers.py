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
BOUND_S = 20.0


@dataclass(frozen=True)
class RunningHub:
    """A hub that answers: its port, home and the environment in which the CLI finds it."""

    port: int
    home: Path
    environment: dict[str, str]


@contextlib.asynccontextmanager
async def hub() -> AsyncIterator[RunningHub]:
    """A hub on an empty home and a free port."""
    with tempfile.TemporaryDirectory(prefix="mycelium-bench-") as folder:
        home = Path(folder) / "home"
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": folder, "MYCELIUM_HOME": str(home)}
        program = [str(BIN / "mycelium-hub"), "up", "--port", "0"]
        process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            said = await _said(home / "run" / "hub.json")
            port = int(said["url"].rsplit(":", 1)[1])
            await _assert_hub(port)
            yield RunningHub(port, home, environment)
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
    wire.close()
    assert health["status"] == "ok", health
    assert health["services"]["rooms"]["status"] == "ok", health


@contextlib.asynccontextmanager
async def floor() -> AsyncIterator[int]:
    """The barest FastAPI and NATS code; yields its port."""
    with tempfile.TemporaryDirectory(prefix="mycelium-floor-") as folder:
        async with testing.nats_server(Path(folder)) as server:
            port = testing.free_port()
            program = [sys.executable, "-m", "bench.floor", server.url, str(port)]
            process = subprocess.Popen(program)
            try:
                await _assert_floor(port)
                yield port
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
