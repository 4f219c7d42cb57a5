"""The hub's own process: takes the home and the port, starts NATS and the services, stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import resource
import signal
import socket
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mycelium_hub import __version__, address, disk, logs, nats_server, processes
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home, Running, Started
from mycelium_hub.services import NAMES, PARTS, Part, Surroundings
from mycelium_hub.settings import HubSettings
from mycelium_hub.supervisor import Child
from mycelium_kernel import tasks

if TYPE_CHECKING:  # loaded with the first service
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
ANSWER_S = 20.0
STOP_S = 6.0  # for all services together
LEAST_S = 0.5  # for each, also when one before took all the time
LOOK_S = 1.0  # between looks whether the home is still there
AGAIN_S = 1.0  # between the tries to start a part again
GIVE_UP_S = 5.0  # for a start that was interrupted


def serve(home: Home, settings: HubSettings, *, echo: bool) -> None:
    """Be the hub of `home` until told to stop. Refuses what is in the way. `echo` shows warnings on stderr."""
    os.umask(0o077)
    _allow_many_files()
    home.prepare()
    address.check(settings.host, insecure=settings.insecure)
    with home.owned():
        home.withdraw()
        with contextlib.closing(address.listen(settings.host, settings.port)) as listener:
            import uvloop

            try:
                uvloop.run(Hub(home, settings, listener, echo=echo).run())
            finally:
                home.withdraw()


def _allow_many_files() -> None:
    """Every reader of a live stream is an open file, and the usual limit is for programs with a few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit than they tell
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Hub:
    """One hub, from start to stop."""

    def __init__(self, home: Home, settings: HubSettings, listener: socket.socket, *, echo: bool) -> None:
        self.home = home
        self.settings = settings
        self.listener = listener
        self.url = address.url(listener)
        self._echo = echo
        self._nats: Child | None = None
        self._running: list[tuple[str, Runtime]] = []
        self._guard: asyncio.Task[None] | None = None
        self._minding: list[asyncio.Task[None]] = []
        self._end = asyncio.Event()

    async def run(self) -> None:
        """Start, wait for SIGTERM, SIGINT or SIGHUP, stop. A signal during the start ends it there."""
        end = self._end
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, _end_or_die, end)
        ending = asyncio.create_task(end.wait())
        starting = asyncio.create_task(self._start())
        try:
            await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await ending
        finally:
            await tasks.end([starting, ending], again_s=GIVE_UP_S)
            await self._stop()

    async def _start(self) -> None:
        self._nats, nats_port = await nats_server.start(self.home, tuple(part.user for part in PARTS))
        logs.write(self.home, NAMES, self.settings.log_level, echo=self._echo)
        if self.settings.traces_endpoint:
            from mycelium_kernel import telemetry

            telemetry.configure_traces("mycelium", endpoint=self.settings.traces_endpoint)
        self._guard = asyncio.create_task(disk.guard(self.home.store, self._nats.restart), name="disk")
        LOGGER.info("starting, version %s, home %s", __version__, self.home.path)
        for part in PARTS:
            nats = nats_server.settings(self.home, nats_port, part.name)
            surroundings = Surroundings(self.home, self.settings, nats, self.listener)
            self._running.append((part.name, await _start_part(part, surroundings)))
            self._minding.append(asyncio.create_task(self._mind(part, surroundings)))
        await _answers(self.url)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {key: (sourced.value, sourced.source) for key, sourced in self.settings.found.items()}
        self.home.record(Started(os.getpid(), told, time.time(), processes.boot_s()))
        self.home.announce(Running(self.url, os.getpid(), __version__, now))
        self._minding.append(asyncio.create_task(self._watch_home()))
        LOGGER.info("ready at %s", self.url)
        print(f"The hub answers at {self.url}", flush=True)

    async def _watch_home(self) -> None:
        """End when the home is gone: a hub that acknowledges into deleted files promises what it can't keep."""
        while self.home.is_here():  # noqa: ASYNC110 - a deletion tells nobody
            await asyncio.sleep(LOOK_S)
        print(f"error: the hub's home {self.home.path} was deleted or replaced; it ends", file=sys.stderr, flush=True)
        LOGGER.error("the home %s was deleted or replaced under a running hub: it ends", self.home.path)
        self._end.set()

    async def _mind(self, part: Part, surroundings: Surroundings) -> None:
        """Start a part anew whenever NATS has closed its connection for good."""
        place = [name for name, _ in self._running].index(part.name)
        while True:
            runtime = self._running[place][1]
            await runtime.connection.lost.wait()
            LOGGER.error("%s has lost its connection for good: starting it again", part.name)
            stopping = asyncio.create_task(runtime.stop())
            await asyncio.wait((stopping,), timeout=STOP_S)
            await tasks.end([stopping], again_s=LEAST_S)
            self._running[place] = (part.name, await self._start_again(part, surroundings))

    async def _start_again(self, part: Part, surroundings: Surroundings) -> Runtime:
        while True:
            try:
                return await _start_part(part, surroundings)
            except Refused:  # logged where it was raised
                await asyncio.sleep(AGAIN_S)

    async def _stop(self) -> None:
        """Stop in the reverse order of the start, so that nothing loses what it stands on."""
        self.home.withdraw()
        await tasks.end([self._guard, *self._minding], again_s=LEAST_S)
        if self._nats:
            await self._nats.end_if_frozen()
        stuck = False
        until = asyncio.get_running_loop().time() + STOP_S
        while self._running:
            name, runtime = self._running.pop()
            stopping = asyncio.create_task(runtime.stop())
            left = max(LEAST_S, until - asyncio.get_running_loop().time())
            await asyncio.wait((stopping,), timeout=left)
            if not stopping.done():
                stuck = True
                LOGGER.error("%s did not stop within %.1f s", name, left)
            elif stopping.exception():
                LOGGER.error("%s did not stop cleanly", name, exc_info=stopping.exception())
        if self._nats:
            await self._nats.stop()
        LOGGER.info("stopped")
        if stuck:  # what does not end would keep the process; all that was acknowledged is on disk
            logging.shutdown()
            os._exit(1)


def _end_or_die(end: asyncio.Event) -> None:
    """The first signal ends the hub in order, a second one at once; its children die with it."""
    if end.is_set():
        os._exit(1)
    end.set()


async def _start_part(part: Part, surroundings: Surroundings) -> Runtime:
    """Start a service in a context of its own, by which the log knows whose record it is."""
    from structlog.contextvars import bind_contextvars

    context = contextvars.copy_context()
    context.run(bind_contextvars, service=part.name)
    try:
        return await asyncio.create_task(part.start(surroundings), context=context)
    except Exception as error:
        LOGGER.exception("%s can't be started", part.name)
        raise Refused(f"{part.name} can't be started: {error or type(error).__name__}") from error


async def _answers(url: str) -> None:
    """Return once the hub answers at its address, as a stranger sees it."""
    place = urlsplit(url)
    request = f"GET /healthz HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            with contextlib.closing(writer):
                writer.write(request.encode())
                said = (await reader.readline()).decode(errors="replace").strip()
    except (OSError, TimeoutError) as error:
        raise Refused(f"the gateway does not answer at {url}; see `mycelium logs gateway`") from error
    if said.split(" ")[1:2] != ["200"]:
        raise Refused(f"{url}/healthz answers {said!r}; see `mycelium logs gateway`")
