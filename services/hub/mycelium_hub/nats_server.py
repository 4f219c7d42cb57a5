"""The hub's NATS server, or three of them, as child processes: started together, seen to answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mycelium_hub import address, nats_config
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home, write_private
from mycelium_hub.nats_config import Place, User
from mycelium_hub.roster import NATS, Member, Roster, members
from mycelium_hub.supervisor import Child, ChildCommand, StartFailed

if TYPE_CHECKING:
    from mycelium_kernel.connections import NatsSettings

LOGGER = logging.getLogger(__name__)
TRIES = 3  # another program may take the port between the choice and the start
LOOK_S = 0.01


@dataclass(frozen=True)
class Servers:
    """The servers of one hub, each a supervised child."""

    children: tuple[Child, ...]
    places: tuple[Place, ...]

    async def stop(self) -> None:
        """End them all, each in its own way."""
        await asyncio.gather(*(child.stop() for child in self.children))

    async def end_if_frozen(self) -> None:
        """End those that answer nothing, so that nobody waits for them while all is being stopped."""
        await asyncio.gather(*(child.end_if_frozen() for child in self.children))


async def start(home: Home, users: tuple[User, ...], roster: Roster, count: int = 1) -> Servers:
    """Start `count` servers on ports that they keep while the hub lives. Refuses with a server's own words."""
    check_count(home, count)
    known = nats_config.passwords(home, (user.name for user in users))
    reason = ""
    for _ in range(TRIES):
        places = _places(count)
        routes = [place.route for place in places if place.route]
        for place in places:
            home.store_of(place.number).mkdir(mode=0o700, exist_ok=True)
            text = nats_config.render(home, place, users, known, routes)
            write_private(nats_config.config_path(home, place.number), text)
        servers = Servers(tuple(Child(_command(home, place, roster)) for place in places), places)
        try:
            await _start_all(servers.children)
        except StartFailed as error:
            await servers.stop()
            reason = f"{error}: {_last_words(home)}"
        except OSError as error:
            raise Refused(
                f"{nats_config.binary()} can't be started: {error.strerror}; `make setup` installs it"
            ) from None
        except BaseException:
            await servers.stop()
            raise
        else:
            return servers
    raise Refused(reason)


def check_count(home: Home, count: int) -> None:
    """A log that one server keeps is not taken along by three, nor the other way round."""
    kept = home.stores
    if (count > 1 and kept == [home.store]) or (count == 1 and any(store != home.store for store in kept)):
        began = "one NATS server" if count > 1 else "three NATS servers"
        raise Refused(
            f"{home.path} began with {began} and stays with that: set runtime.nats_servers back, or export its rooms"
            " and import them on a new home"
        )


def _places(count: int) -> tuple[Place, ...]:
    ports = address.free_ports(count if count == 1 else 2 * count)
    return tuple(Place(at + 1, ports[at], ports[count + at] if count > 1 else 0) for at in range(count))


def _command(home: Home, place: Place, roster: Roster) -> ChildCommand:
    command = [str(nats_config.binary()), "-c", str(nats_config.config_path(home, place.number))]

    def started(pid: int, restarts: int) -> None:
        roster.put(Member(place.name, NATS, place.number, pid, place.port, restarts=restarts))

    ready, answers = _ready(place.port), _answers(place.port)
    from mycelium_hub import guard  # late: it reads stores, and brings much that nothing else here needs

    before = partial(guard.look, home.store_of(place.number), is_only=not place.route)
    return ChildCommand(place.name, command, ready, signal.SIGINT, answers, started=started, before=before)


async def _start_all(children: tuple[Child, ...]) -> None:
    """Side by side: three servers are of use only together. Raises the first failure, once all have settled."""
    for outcome in await asyncio.gather(*(child.start() for child in children), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def settings(home: Home, places: Sequence[Place], user: str) -> NatsSettings:
    """How the service named `user` connects."""
    from mycelium_kernel.connections import NatsSettings

    known = nats_config.passwords(home, (user,))
    return NatsSettings(
        servers=tuple(f"nats://127.0.0.1:{place.port}" for place in places),
        user=user,
        password=known[user],
        replicas=len(places),
        monitor_user=nats_config.MONITOR,
        monitor_password=known[nats_config.MONITOR],
        store=str(home.store),
    )


def pid(home: Home) -> int | None:
    """The first server of this home, if it runs; whoever's child it is."""
    return next((one.pid for one in members(home) if one.name == NATS), None)


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
