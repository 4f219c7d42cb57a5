"""Every service as processes of its own, as a cluster runs them: `mycelium up --split --replicas N`.

`together` is the other way. Each process is supervised: started again when it ends or answers nothing any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable

from mycelium_hub import address
from mycelium_hub.errors import Refused
from mycelium_hub.roster import Member, Roster, replica_name
from mycelium_hub.services import PARTS, Part, Surroundings
from mycelium_hub.supervisor import Child, ChildCommand, StartFailed

LOOK_S = 0.05
OK = b" 200 "


class Apart:
    """Every service in processes of its own. `given` tells what a part is started with."""

    def __init__(self, given: Callable[[Part], Surroundings], roster: Roster) -> None:
        self._given = given
        self._roster = roster
        self._groups: list[list[Child]] = []

    async def start(self) -> None:
        """Start all side by side, and return once each is ready. Refuses when one can't be started."""
        self._groups = groups((part for part in PARTS if part.start), self._given, self._roster)
        starting = [child.start() for group in self._groups for child in group]
        for outcome in await asyncio.gather(*starting, return_exceptions=True):
            if isinstance(outcome, StartFailed):
                raise Refused(f"{outcome}; see `mycelium logs`") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def stop(self) -> bool:
        """Stop in the reverse order of the start, the replicas of one service side by side; whether all ended."""
        while self._groups:
            await asyncio.gather(*(child.stop() for child in self._groups.pop()))
        return True


def groups(parts: Iterable[Part], given: Callable[[Part], Surroundings], roster: Roster) -> list[list[Child]]:
    """The processes of each part, one a replica."""
    found = []
    for part in parts:
        told = given(part)
        replicas = range(1, told.settings.replicas + 1)
        found.append([Child(_command(part, told, replica, roster)) for replica in replicas])
    return found


def _command(part: Part, given: Surroundings, replica: int, roster: Roster) -> ChildCommand:
    name = replica_name(part.name, replica)
    (port,) = address.free_ports(1)
    settings = {**_settings(given, name), "service.probe_port": str(port), **part.settings(given, replica)}
    environment = {f"MYCELIUM_{key.replace('.', '_').upper()}": value for key, value in settings.items()}

    def started(pid: int, restarts: int) -> None:
        roster.put(Member(name, part.name, replica, pid, health_port=port, restarts=restarts))

    return ChildCommand(
        name,
        [sys.executable, "-P", "-m", part.module, "--home", str(given.home.path), "--name", name],
        ready=lambda: _until_ready(port),
        answers=lambda: _answers(port),
        environment={**os.environ, **environment},
        files=(given.listener.fileno(),),
        started=started,
    )


def _settings(given: Surroundings, name: str) -> dict[str, str]:
    """What every service is told: the log, the servers, as whom it connects."""
    nats = given.nats
    return {
        "nats.servers": ",".join(nats.servers),
        "nats.user": nats.user,
        "nats.password": nats.password,
        "nats.monitor_user": nats.monitor_user,
        "nats.monitor_password": nats.monitor_password,
        "nats.replicas": str(nats.replicas),
        "nats.store": nats.store,
        "service.log_file": str(given.home.logs / f"{name}.log"),
        "log.level": given.settings.log_level,
        "telemetry.traces_endpoint": given.settings.traces_endpoint,
    }


async def _until_ready(port: int) -> None:
    while OK not in await _look(port, "/readyz"):  # noqa: ASYNC110 - another process
        await asyncio.sleep(LOOK_S)


async def _answers(port: int) -> None:
    """Return once its event loop turns. Nobody there to call is no silence: it is starting, or has ended."""
    while (said := await _look(port, "/healthz")) and OK not in said:  # noqa: ASYNC110 - another process
        await asyncio.sleep(LOOK_S)


async def _look(port: int, path: str) -> bytes:
    """The first line of the answer; empty when nobody is there."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            return await reader.readline()
    return b""
