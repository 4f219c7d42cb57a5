"""The hub's Temporal server as a child process: one SQLite file in the home, written through, on loopback only.

Started once the hub answers: rooms do without it. It has no sign-in, so what it stores is sealed with a key of the
home, which only the engine service has (`mycelium_kernel.temporal`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from mycelium_engine.settings import read_key
from mycelium_hub.home import Home, write_private
from mycelium_hub.roster import Member, Roster
from mycelium_hub.supervisor import ChildCommand

TEMPORAL = "temporal"
NAMESPACE = "mycelium"
KEY_BYTES = 32
LOOK_S = 0.1
# The preface of HTTP/2 and an empty SETTINGS frame: a server that turns answers with its own settings.
MODEL_KEY = "llm_api_key"  # where `mycelium config set` keeps it, below the folder of secrets
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
FRAME_HEAD = 9


def log_path(home: Home) -> Path:
    return home.logs / f"{TEMPORAL}.log"


def database(home: Home) -> Path:
    return home.temporal / "temporal.db"


def key_file(home: Home) -> Path:
    """The file of the key that payloads are sealed with, made when it is first asked for."""
    path = home.secrets / "temporal.key"
    if not path.exists():
        home.prepare()
        _write_bytes(path, secrets.token_bytes(KEY_BYTES))
    return path


def told_key(home: Home, key: str) -> Path:
    """The file in which the engine service finds the model's key: the home's own, or one while it was set elsewhere."""
    kept, told = home.secrets / MODEL_KEY, home.run / MODEL_KEY
    if not key or read_key(str(kept)) == key:
        told.unlink(missing_ok=True)
        return kept
    write_private(told, key)
    return told


def _write_bytes(path: Path, data: bytes) -> None:
    """Whole or not at all, for its owner only; the first writer wins."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        os.link(beside, path)
    beside.unlink()


def hold(port: int) -> socket.socket:
    """A socket that keeps the port from others without taking calls."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError):
        held.bind(("127.0.0.1", port))
    return held


def command(home: Home, port: int, roster: Roster, level: str) -> ChildCommand:
    binary = Path(sys.executable).parent / "temporal"
    command = [
        str(binary), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port),
        "--namespace", NAMESPACE, "--db-filename", str(database(home)),
        "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=full",
        "--log-level", "info" if level == "debug" else "error", "--log-format", "json",
        "--disable-config-file", "--disable-config-env",
    ]  # fmt: skip

    def started(pid: int, restarts: int) -> None:
        roster.put(Member(TEMPORAL, TEMPORAL, 1, pid, port, restarts=restarts))

    return ChildCommand(
        TEMPORAL, command, _ready(port), signal.SIGINT, _answers(port), started=started, output=log_path(home)
    )


def _ready(port: int) -> Callable[[], Awaitable[None]]:
    async def ready() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await _greeting(port)
                return
            await asyncio.sleep(LOOK_S)

    return ready


def _answers(port: int) -> Callable[[], Awaitable[None]]:
    async def answers() -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await _greeting(port)

    return answers


async def _greeting(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        writer.write(HELLO)
        await reader.readexactly(FRAME_HEAD)
