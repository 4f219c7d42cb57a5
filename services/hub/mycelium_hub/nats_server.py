"""The hub's NATS server as a child process: ended first when a dead hub left one behind, started, seen to answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mycelium_hub import address, nats_config, processes
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home, write_private
from mycelium_hub.nats_config import User
from mycelium_hub.supervisor import Child, ChildCommand, StartFailed

if TYPE_CHECKING:
    from mycelium_kernel.connections import NatsSettings

LOGGER = logging.getLogger(__name__)
TRIES = 3  # another program may take the port between the choice and the start
LOOK_S = 0.01


async def start(home: Home, users: tuple[User, ...]) -> tuple[Child, int]:
    """Start the server on a port that it keeps while the hub lives. Refuses with the server's own words."""
    end_leftover(home)
    known = nats_config.passwords(home, (user.name for user in users))
    command = [str(nats_config.binary()), "-c", str(nats_config.config_path(home))]
    reason = ""
    for _ in range(TRIES):
        port = address.free_port()
        write_private(nats_config.config_path(home), nats_config.render(home, port, users, known))
        child = Child(ChildCommand("nats", command, _ready(port), signal.SIGINT, _answers(port)))
        try:
            await child.start()
        except StartFailed as error:
            reason = f"{error}: {_last_words(home)}"
        except OSError as error:
            raise Refused(f"{command[0]} can't be started: {error.strerror}; `make setup` installs it") from None
        except BaseException:
            await child.stop()
            raise
        else:
            return child, port
    raise Refused(reason)


def settings(home: Home, port: int, user: str) -> NatsSettings:
    """How the service named `user` connects."""
    from mycelium_kernel.connections import NatsSettings

    known = nats_config.passwords(home, (user,))
    return NatsSettings(
        servers=(f"nats://127.0.0.1:{port}",),
        user=user,
        password=known[user],
        monitor_user=nats_config.MONITOR,
        monitor_password=known[nats_config.MONITOR],
        store=str(home.store),
    )


def pid(home: Home) -> int | None:
    """The server of this home, if one runs; whoever's child it is."""
    with contextlib.suppress(OSError, ValueError):
        found = int(nats_config.pid_path(home).read_text())
        if str(nats_config.config_path(home)) in processes.command_line(found):
            return found
    return None


def end_leftover(home: Home) -> None:
    """End a server that outlived its hub: it would keep the store from the new one."""
    found = pid(home)
    if found is not None:
        LOGGER.warning("ending the NATS server that a dead hub left behind, pid %d", found)
        processes.end(found)


def _ready(port: int) -> Callable[[], Awaitable[None]]:
    async def ready() -> None:
        while True:
            with contextlib.suppress(OSError):
                if (await _greeting(port)).startswith(b"INFO "):
                    return
            await asyncio.sleep(LOOK_S)

    return ready


def _answers(port: int) -> Callable[[], Awaitable[None]]:
    """The server greets whoever calls, however busy its disk is. Nobody there to call is no silence."""

    async def answers() -> None:
        with contextlib.suppress(OSError):
            await _greeting(port)

    return answers


async def _greeting(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        return await reader.readline()


def _last_words(home: Home) -> str:
    with contextlib.suppress(OSError):
        lines = nats_config.log_path(home).read_text(errors="replace").splitlines()
        faults = [line.partition("] ")[2] for line in lines if "[FTL]" in line or "[ERR]" in line]
        if faults:
            return faults[-1]
    return f"see {nats_config.log_path(home)}"
