"""A service as a process of its own, as `mycelium up --split` and a cluster run it.

Each service's `__main__` calls `run`. Settings come from `config.toml` of `--home` and from the environment; one port
inside is opened for probes and metrics (`probes`); SIGTERM ends it in order.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from mycelium_kernel import collector, tasks, telemetry
from mycelium_kernel import settings as kernel_settings
from mycelium_kernel.connections import NatsSettings, Unfit
from mycelium_kernel.errors import words
from mycelium_kernel.files import allow_many_files
from mycelium_kernel.probes import Probes
from mycelium_kernel.run import Runtime, start
from mycelium_kernel.service import Service
from mycelium_kernel.settings import Setting, Sourced, Value

LOGGER = logging.getLogger(__name__)
STOP_S = 6.0  # for what is under way to be answered; then the process ends anyway
FAILED = 1
Build = Callable[[Mapping[str, Value]], Service]

SETTINGS = (
    Setting(
        "nats.servers", "str", "nats://127.0.0.1:4222", "Where NATS is: one address or several, parted by commas.",
        unit="urls", scope="service",
    ),
    Setting("nats.user", "str", "", "As whom the service connects; empty is the service's own name.", scope="service"),
    Setting("nats.password", "str", "", "That user's password.", scope="service", secret=True),
    Setting(
        "nats.monitor_user", "str", "monitor", "The user of the system account who reads the servers' settings back.",
        scope="service",
    ),
    Setting("nats.monitor_password", "str", "", "That user's password.", scope="service", secret=True),
    Setting(
        "nats.replicas", "int", 1, "How many servers keep each fact: 1, or 3 on a cluster.", unit="servers",
        scope="service",
    ),
    Setting(
        "nats.store", "str", "", "The folder of the server's store, when it is on this machine: its disk is watched.",
        unit="folder", scope="service",
    ),
    Setting(
        "service.tables", "str", "", "Where the service keeps its tables; empty keeps them in memory.", unit="folder",
        scope="service",
    ),
    Setting(
        "service.probe_host", "str", "127.0.0.1", "The address of the port for probes and metrics.", unit="address",
        scope="service",
    ),
    Setting("service.probe_port", "int", 9100, "The port for probes and metrics.", unit="port", scope="service"),
    Setting(
        "service.log_file", "str", "", "The file that records go to, rotated; empty is stderr.", unit="file",
        scope="service",
    ),
    Setting("log.level", "str", "info", "The least severe records that are written.", unit="level", scope="service"),
    Setting(
        "telemetry.traces_endpoint", "str", "", "Where spans are sent (OTLP/HTTP); empty records none.", unit="url",
        scope="service",
    ),
)  # fmt: skip


def run(name: str, build: Build, more: tuple[Setting, ...] = ()) -> None:
    """Be the service `name` until told to stop; ends the process with status 1 when it can't be started.

    `more` are the service's own settings; `build` makes the service from the values of all, by key.
    """
    parser = argparse.ArgumentParser(prog=f"mycelium-{name}")
    parser.add_argument("--home", default="", help="The folder with config.toml; shown in the process list.")
    parser.add_argument("--name", default=name, help="This replica's name in the process list.")
    arguments = parser.parse_args()
    try:
        found = kernel_settings.load((*SETTINGS, *more), Path(arguments.home or os.devnull), os.environ)
    except kernel_settings.BadSetting as error:
        sys.exit(f"error: {error}")
    os.umask(0o077)
    allow_many_files()
    import uvloop

    sys.exit(uvloop.run(_Program(name, build, found).run()))


class _Program:
    """One run of a service, from start to stop."""

    def __init__(self, name: str, build: Build, found: Mapping[str, Sourced]) -> None:
        self._name = name
        self._build = build
        self._values = {key: sourced.value for key, sourced in found.items()}

    async def run(self) -> int:
        """Start, wait for a signal or for NATS to close the connection for good, stop. The exit status."""
        end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end.set)
        telemetry.configure_logs(self._text("log.level"), file=self._text("service.log_file"))
        telemetry.configure_traces(f"mycelium-{self._name}", endpoint=self._text("telemetry.traces_endpoint"))
        probes = Probes(self._text("service.probe_host"), int(self._values["service.probe_port"]))
        probes.start()
        try:
            return await self._serve(probes, end)
        finally:
            probes.stop()

    async def _serve(self, probes: Probes, end: asyncio.Event) -> int:
        ending = asyncio.create_task(end.wait())
        starting = asyncio.create_task(self._start())
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            await tasks.end([starting])
            return 0
        ending.cancel()
        try:
            runtime = starting.result()
        except Exception as error:
            LOGGER.exception("%s can't be started", self._name)
            print(f"error: {self._name} can't be started: {words(error)}", file=sys.stderr)
            return FAILED
        collector.settle()
        probes.ready(runtime.health)
        status = await _until_over(runtime, end)
        stopping = asyncio.create_task(runtime.stop())
        await asyncio.wait((stopping,), timeout=STOP_S)
        if not stopping.done():  # all that was acknowledged is on disk
            LOGGER.error("%s did not stop within %.0f s", self._name, STOP_S)
            logging.shutdown()
            os._exit(FAILED)
        stopping.result()
        LOGGER.info("%s has stopped", self._name)
        return status

    async def _start(self) -> Runtime:
        tables = self._text("service.tables")
        service = self._build(self._values)
        return await start(service, self._nats(), Path(tables) if tables and service.projection else None)

    def _nats(self) -> NatsSettings:
        replicas = int(self._values["nats.replicas"])
        if replicas not in {1, 3, 5}:
            raise Unfit(f"nats.replicas is {replicas}: use 1, 3 or 5")
        return NatsSettings(
            servers=tuple(self._text("nats.servers").replace(",", " ").split()),
            user=self._text("nats.user") or self._name,
            password=self._text("nats.password"),
            replicas=replicas,
            monitor_user=self._text("nats.monitor_user"),
            monitor_password=self._text("nats.monitor_password"),
            store=self._text("nats.store"),
        )

    def _text(self, key: str) -> str:
        return str(self._values[key])


async def _until_over(runtime: Runtime, end: asyncio.Event) -> int:
    """Wait for a signal (status 0), or until the connection is closed for good (1: the supervisor starts it again)."""
    told, lost = asyncio.create_task(end.wait()), asyncio.create_task(runtime.connection.lost.wait())
    await asyncio.wait((told, lost), return_when=asyncio.FIRST_COMPLETED)
    was_lost = not told.done()
    await tasks.end([told, lost])
    if was_lost:
        LOGGER.error("the connection to NATS is closed for good: the process ends, to be started again")
    return FAILED if was_lost else 0
