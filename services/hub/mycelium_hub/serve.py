"""The hub's own process: takes the home and the port, starts NATS and the services, stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import NoReturn
from urllib.parse import urlsplit

from mycelium_hub import __version__, address, again, disk, drift, logs, nats_server, processes
from mycelium_hub.again import Kept
from mycelium_hub.apart import Apart
from mycelium_hub.daemon import ANSWERS
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home, Running, Started
from mycelium_hub.late import Late
from mycelium_hub.roster import Roster, end_leftovers
from mycelium_hub.services import NAMES, PARTS, Part, Surroundings
from mycelium_hub.settings import SECRETS, HubSettings
from mycelium_hub.together import Together
from mycelium_kernel import tasks
from mycelium_kernel.errors import words
from mycelium_kernel.files import allow_many_files

LOGGER = logging.getLogger(__name__)
ANSWER_S = 20.0
LEAST_S = 0.5  # between the tries to end a task
LOOK_S = 1.0  # between looks whether the home is still there
GIVE_UP_S = 5.0  # for a start that was interrupted
Leave = Callable[[Kept], NoReturn]


def serve(
    home: Home, load: Callable[[], HubSettings], *, echo: bool, command: Sequence[str], kept: Kept | None = None
) -> None:
    """Be the hub of `home` until told to stop. Refuses what is in the way. `echo` shows warnings on stderr.

    `command` starts this process anew, and `kept` is what it was handed then. `load` may give settings that a hub
    can't be started with: one that had others before comes back with those.
    """
    os.umask(0o077)
    again.ignore_requests()
    allow_many_files()
    names = [name for setting in SECRETS for name in setting.environment]
    hidden = {name: os.environ[name] for name in names if name in os.environ}
    try:
        settings = kept.before() if kept and kept.refused else load()
        for name in hidden:  # the one service that needs it is told; no other process inherits it
            os.environ.pop(name, None)
        _serve(home, settings, kept, echo=echo, leave=partial(again.become, command, hidden=hidden))
    except Exception as error:
        if kept is None or kept.refused:
            raise
        reason = words(error)
        print(f"error: {reason}; the hub goes on with the settings before", file=sys.stderr, flush=True)
        again.become(command, replace(kept, refused=reason), hidden=hidden)


def _serve(home: Home, settings: HubSettings, kept: Kept | None, *, echo: bool, leave: Leave) -> None:
    home.prepare()
    address.check(settings.host, insecure=settings.insecure, sign_in=settings.auth.enabled)
    with home.owned(os.dup(kept.lock) if kept else None) as lock:
        opened = _listen(home, settings, kept)
        with contextlib.closing(opened) as listener:
            import uvloop

            try:
                uvloop.run(Hub(home, settings, listener, lock, kept, echo=echo, leave=leave).run())
            finally:
                home.withdraw()


def _listen(home: Home, settings: HubSettings, kept: Kept | None) -> socket.socket:
    """The socket that callers wait at already, where the address is still that one; else a new one."""
    if kept and kept.same_address(settings):
        return socket.socket(fileno=os.dup(kept.listener))
    home.withdraw()
    if kept is None:
        return address.listen(settings.host, settings.port)
    kept.release_listener()
    return address.listen(settings.host, kept.port_for(settings))


class Hub:
    """One hub, from start to stop. `leave` starts this process anew, with what it is handed."""

    def __init__(
        self,
        home: Home,
        settings: HubSettings,
        listener: socket.socket,
        lock: int,
        kept: Kept | None,
        *,
        echo: bool,
        leave: Leave,
    ) -> None:
        self.home = home
        self.settings = settings
        self.listener = listener
        self._lock = lock
        self._kept = kept
        self._leave = leave
        self._again = False
        self.url = address.url(listener)
        self._echo = echo
        self._roster = Roster(home)
        self._nats: nats_server.Servers | None = None
        self._late = Late(home, self._roster, settings) if settings.engines else None
        self._services: Together | Apart = (
            Apart(self._surroundings, self._roster) if settings.split else Together(self._surroundings)
        )
        self._minding: list[asyncio.Task[None]] = []
        self._end = asyncio.Event()

    async def run(self) -> None:
        """Start, wait for SIGTERM, SIGINT or SIGHUP, stop. A signal during the start ends it there.

        On `again.ASKED` it stops and starts anew in the same process.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._end_or_die)
        loop.add_signal_handler(again.ASKED, self._start_again)
        ending = asyncio.create_task(self._end.wait())
        starting = asyncio.create_task(self._start())
        try:
            await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await ending
        finally:
            await tasks.end([starting, ending], again_s=GIVE_UP_S)
            await self._stop()

    def _end_or_die(self) -> None:
        """The first signal ends the hub in order, a second one at once; its children die with it."""
        if self._end.is_set() and not self._again:
            os._exit(1)
        self._again = False  # while it stops in order to start again: it stays stopped
        self._end.set()

    def _start_again(self) -> None:
        """Stop in order, then start anew; a hub that ends already goes on ending."""
        if not self._end.is_set():
            LOGGER.info("starting again, with the settings as they are now")
            self._again = True
            self._end.set()

    async def _start(self) -> None:
        end_leftovers(self.home)
        users = tuple(part.user for part in PARTS)
        self._nats = await nats_server.start(self.home, users, self._roster, self.settings.nats_servers)
        logs.write(self.home, () if self.settings.split else NAMES, self.settings.log_level, echo=self._echo)
        if self.settings.traces_endpoint and not self.settings.split:
            from mycelium_kernel import telemetry

            telemetry.configure_traces("mycelium", endpoint=self.settings.traces_endpoint)
        for place, child in zip(self._nats.places, self._nats.children, strict=True):
            guard = disk.guard(self.home.store_of(place.number), child.restart)
            self._minding.append(asyncio.create_task(guard, name="disk"))
        LOGGER.info("starting, version %s, home %s", __version__, self.home.path)
        await self._services.start()
        await _answers(self.url)
        self._tell()
        self._minding.append(asyncio.create_task(self._watch_home()))
        LOGGER.info("ready at %s", self.url)
        print(f"{ANSWERS} {self.url}", flush=True)
        if self._late:
            self._late.begin(self._surroundings)

    def _surroundings(self, part: Part) -> Surroundings:
        assert self._nats
        nats = nats_server.settings(self.home, self._nats.places, part.name)
        temporal = self._late.temporal if self._late else ""
        return Surroundings(self.home, self.settings, nats, self.listener, temporal)

    def _tell(self) -> None:
        """Tell others where the hub is, and what it was started with."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {key: (sourced.value, sourced.source) for key, sourced in self.settings.found.items()}
        marks = drift.marks(self.settings)
        times, refused = (self._kept.times, self._kept.refused) if self._kept else (1, "")
        started = Started(os.getpid(), told, time.time(), processes.boot_s(), marks, times, refused)
        self.home.record(started)
        self.home.announce(Running(self.url, os.getpid(), __version__, now))

    async def _watch_home(self) -> None:
        """End when the home is gone: a hub that acknowledges into deleted files promises what it can't keep."""
        while self.home.is_here():  # noqa: ASYNC110 - a deletion tells nobody
            await asyncio.sleep(LOOK_S)
        print(f"error: the hub's home {self.home.path} was deleted or replaced; it ends", file=sys.stderr, flush=True)
        LOGGER.error("the home %s was deleted or replaced under a running hub: it ends", self.home.path)
        self._end.set()

    async def _stop(self) -> None:
        """Stop in the reverse order of the start, so that nothing loses what it stands on."""
        if not self._again:
            self.home.withdraw()
        await tasks.end(self._minding, again_s=LEAST_S)
        if self._nats:
            await self._nats.end_if_frozen()
        if self._late:
            await self._late.stop()
        clean = await self._services.stop()
        if self._nats:
            await self._nats.stop()
        self._roster.clear()
        LOGGER.info("stopped")
        if self._again:
            self._hand_over()
        if not clean:  # what does not end would keep the process; all that was acknowledged is on disk
            logging.shutdown()
            os._exit(1)

    def _hand_over(self) -> NoReturn:
        """Start this process anew. What has not ended ends with the old one; what was acknowledged is on disk."""
        from mycelium_kernel import telemetry

        telemetry.flush()
        logging.shutdown()
        found, secrets = (
            {key: (sourced.value, sourced.source) for key, sourced in some.items()}
            for some in (self.settings.found, self.settings.secrets)
        )
        times = self._kept.times if self._kept else 1
        port = self.listener.getsockname()[1]
        self._leave(Kept(self._lock, self.listener.fileno(), port, times + 1, found, secrets))


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
