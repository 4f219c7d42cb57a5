"""What a product is asked to do in the jobs, whatever its own words for it are: one class a product."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import ClassVar, Protocol

PEERS = Path(__file__).resolve().parents[2] / ".peers"
BIN = PEERS / "venv" / "bin"
BOUND_S = 30.0
RECEIVER = "scout"


class Refused(Exception):
    """The product answered that it will not, or can't, take this message."""


class Sender(Protocol):
    """A client that stays connected and sends to the receiver."""

    async def send(self, text: str) -> None:
        """Return when the product has acknowledged. Raises `Refused`, or `OSError`/`EOFError` for a dead server."""

    async def close(self) -> None:
        """Let the connection go."""


class Receiver(Protocol):
    """A client that waits for messages in the best way that the product has."""

    async def until(self, mark: str) -> None:
        """Return when a message that holds `mark` has come."""

    async def close(self) -> None:
        """Let the connection go."""


class Peer(ABC):
    """A product with a store of its own in `folder`. `cannot` tells which jobs it has no means for, and why."""

    name: ClassVar[str]
    durability: ClassVar[str]
    cannot: ClassVar[dict[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
        self.processes: list[subprocess.Popen[bytes]] = []

    @classmethod
    def missing(cls) -> str:
        """Why it can't run here; empty when it can."""
        return "" if (PEERS / "installed.txt").exists() else "not installed: make bench-peers"

    @abstractmethod
    async def start(self) -> None:
        """Start on the store as it is, wait until it answers, and assert who answers."""

    @abstractmethod
    async def sender(self, number: int = 0) -> Sender:
        """Connect a sender."""

    @abstractmethod
    async def receiver(self) -> Receiver:
        """Connect the receiver."""

    @abstractmethod
    async def send_cold(self, text: str) -> None:
        """Send by a process that starts for it and ends."""

    @abstractmethod
    async def stored(self) -> str:
        """All that the store still gives, in one text."""

    def waiting_command(self) -> tuple[list[str], dict[str, str]]:
        """A program that waits for a message and exits with it, and its environment."""
        raise NotImplementedError

    async def is_waiting(self) -> bool:
        """Whether the product says that the program waits."""
        raise NotImplementedError

    async def taken(self) -> None:
        """What the receiver does after its program has exited, untimed: nothing, in most."""
        return

    async def run(self, *command: str | Path, **environment: str) -> str:
        """What a program of it prints. Raises `CalledProcessError` unless it ends well."""
        return await asyncio.to_thread(self._run, command, {**self.environment, **environment})

    def _run(self, command: tuple[str | Path, ...], environment: dict[str, str]) -> str:
        return subprocess.run(
            command, env=environment, cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def pids(self) -> list[int]:
        """Every process that holds or writes the store."""
        return [pid for process in self.processes for pid in tree(process.pid)]

    def spawn(self, *command: str | Path) -> None:
        """Start a server of it, its output in a file of its folder."""
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes.append(process)

    async def kill(self) -> None:
        """End every process at once, in the middle of what it does."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            await asyncio.to_thread(process.wait)
        self.processes.clear()

    async def stop(self) -> None:
        """End it in good order."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                await asyncio.to_thread(process.wait, BOUND_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self.processes.clear()


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(below for child in children for below in tree(int(child)))]


async def answers(ask: Callable[[], Awaitable[object]]) -> None:
    """Wait until `ask` no longer fails for want of a server."""
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                await ask()
            except (OSError, EOFError):
                await asyncio.sleep(0.02)
            else:
                return


@contextlib.asynccontextmanager
async def running(product: type[Peer]) -> AsyncIterator[Peer]:
    """A product on an empty store."""
    with tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True) as folder:
        peer = product(Path(folder))
        try:
            await peer.start()
            yield peer
        finally:
            await peer.stop()
