"""Real servers for tests: a NATS server, or three as a cluster, of the test's own, in a folder of its own.

Imported by the tests of every service; never by a service. Each server is ended by its process id.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats.errors
from nats.aio.client import Client

from mycelium_kernel.connections import NatsSettings

PASSWORD = "test"  # noqa: S105 - of a server on loopback that lives as long as one test
BOUND_S = 10.0
CONFIG = """
listen: "127.0.0.1:{port}"
server_name: "{name}"
max_payload: 8388608
jetstream {{ store_dir: "{store}", sync_interval: {sync}, limits {{ default_max_consumers: 20000 }} }}
accounts {{
  APP {{ jetstream: enabled, users: [ {users} ] }}
  SYS {{ users: [ {{user: monitor, password: "{password}"}} ] }}
}}
system_account: SYS
{cluster}
"""
USERS = ("rooms", "gateway", "board", "memory", "engine", "status", "hub", "test")


async def _ignore(_error: Exception) -> None:
    return


ONCE: dict[str, Any] = {
    "inbox_prefix": b"_INBOX_test",
    "connect_timeout": 1,
    "allow_reconnect": False,
    "reconnect_time_wait": 0.01,
    "max_reconnect_attempts": 1,
    "error_cb": _ignore,
}


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def binary() -> str:
    """Path of the NATS server that came with the environment."""
    return str(Path(sys.executable).parent / "nats-server")


@dataclass
class NatsServer:
    """One NATS server; `start`, `kill` and `stop` as often as a test likes, always on the same port and store."""

    folder: Path
    port: int = field(default_factory=free_port)
    name: str = "test"
    cluster: str = ""
    sync: str = "always"
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self.port}"

    def settings(self, user: str = "test", replicas: int = 1) -> NatsSettings:
        """Settings with which a service named `user` connects."""
        return NatsSettings((self.url,), user, PASSWORD, replicas, "monitor", PASSWORD)

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "nats.conf"
        users = ", ".join(f'{{user: {user}, password: "{PASSWORD}"}}' for user in USERS)
        text = CONFIG.format(
            port=self.port, name=self.name, store=self.folder / "store", sync=self.sync, users=users,
            password=PASSWORD, cluster=self.cluster,
        )  # fmt: skip
        config.write_text(text, encoding="utf-8")
        log = (self.folder / "nats.log").open("ab")
        with log:
            self.process = subprocess.Popen([binary(), "-c", str(config)], stdout=log, stderr=log)

    async def start(self) -> None:
        """Start, and return when clients and JetStream are answered."""
        self.launch()
        await self.ready()

    async def ready(self) -> None:
        """Return when JetStream answers. Raises `TimeoutError` after ten seconds."""
        async with asyncio.timeout(BOUND_S):
            while True:
                client = Client()
                try:
                    await client.connect(self.url, user="test", password=PASSWORD, **ONCE)
                    await client.jetstream(timeout=1).account_info()
                except (OSError, nats.errors.Error, TimeoutError):
                    await asyncio.sleep(0.02)
                else:
                    return
                finally:
                    with contextlib.suppress(Exception):  # one that never connected can't be closed quite
                        await client.close()

    def pause(self) -> None:
        """Stop the process in its tracks, as a machine that hangs would; its connections stay open."""
        if self.process:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)  # a signal that was only sent has stopped nothing yet

    def resume(self) -> None:
        """Let a paused process go on."""
        if self.process:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process as a crash would: SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the process as an operator would."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process and process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # a paused process hears nothing else
            process.wait(timeout=BOUND_S)


def settings_of(servers: Sequence[NatsServer], user: str = "test", replicas: int = 3) -> NatsSettings:
    """Settings with which a service named `user` connects to whichever server of a cluster is there."""
    return NatsSettings(tuple(server.url for server in servers), user, PASSWORD, replicas, "monitor", PASSWORD)


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk of that size at `folder`, for the time of the block. Raises `PermissionError` for who may not mount."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.asynccontextmanager
async def nats_server(folder: Path) -> AsyncIterator[NatsServer]:
    """One server for the time of the block."""
    server = NatsServer(folder)
    await server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.asynccontextmanager
async def nats_cluster(folder: Path) -> AsyncIterator[list[NatsServer]]:
    """Three servers that replicate, for the time of the block."""
    routes = [free_port() for _ in range(3)]
    urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    servers = [
        NatsServer(
            folder / f"n{place}", name=f"n{place}",
            cluster=f'cluster {{ name: test, listen: "127.0.0.1:{port}", routes: [ {urls} ] }}',
        )
        for place, port in enumerate(routes)
    ]  # fmt: skip
    for server in servers:
        server.launch()
    try:
        for server in servers:
            await server.ready()
        yield servers
    finally:
        for server in servers:
            server.stop()
