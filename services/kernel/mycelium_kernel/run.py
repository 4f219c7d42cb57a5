"""Starts a service: connects, checks the server, opens the tables, catches up, then answers. Stops it in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from mycelium_kernel import subjects, tasks, telemetry
from mycelium_kernel.bus import TIMEOUT_S, Bus
from mycelium_kernel.clock import Clock, NewId, new_id, system_clock
from mycelium_kernel.connections import Connection, NatsSettings
from mycelium_kernel.decide import Decider
from mycelium_kernel.durable import react
from mycelium_kernel.errors import Refusal, Unavailable
from mycelium_kernel.in_memory import look_after
from mycelium_kernel.log import Log
from mycelium_kernel.projector import Projector
from mycelium_kernel.server import Asked, Handler, Server
from mycelium_kernel.service import Actor, Command, Context, Direct, LogQuery, Query, Service
from mycelium_kernel.space import Space
from mycelium_kernel.sweeping import sweep
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import read
from mycelium_kernel.timers import Timers

LOGGER = logging.getLogger(__name__)
WORKER_PAUSE_S = (0.1, 5.0)  # between the end of a worker and its next start: first, longest
WORKER_STEADY_S = 30.0  # a worker that ran this long is well again
GUARD_RETRY_S = 0.1
STOP_S = 5.0  # for a worker to end in its own way, before it is cancelled again


@dataclass
class Runtime:
    """A running service: what its reactions, timers and workers may use."""

    service: Service
    connection: Connection
    clock: Clock
    new_id: NewId
    bus: Bus
    log: Log
    timers: Timers
    tables: Tables | None = None
    projector: Projector | None = None
    _server: Server | None = None
    _handlers: dict[type[Message], Handler] = field(default_factory=dict)
    _workers: set[asyncio.Task[None]] = field(default_factory=set)
    _faults: dict[str, tuple[str, float]] = field(default_factory=dict)
    _tells: dict[str, Callable[[], Any]] = field(default_factory=dict)

    @property
    def epoch(self) -> str:
        """A text that differs for every stream of facts ever made; it begins the ids of live events."""
        return self.connection.epoch

    def health(self) -> dict[str, Any]:
        """`status` (`ok` or `degraded`), `detail`, and the numbers an operator looks at first."""
        now = time.monotonic()
        faults = {part: fault for part, (fault, until) in self._faults.items() if until > now}
        if not self.connection.client.is_connected:
            faults["nats"] = "not connected"
        shortage = Space(self.connection.settings.store).shortage()
        if shortage:
            faults["log"] = shortage
        if self.projector and self.projector.failure:
            kind = type(self.projector.failure).__name__
            faults.setdefault("tables", f"stopped after fact {self.projector.tables.position} ({kind})")
        detail = "; ".join(f"{part}: {fault}" for part, fault in sorted(faults.items()))
        status = "degraded" if faults else "ok"
        said: dict[str, Any] = {"status": status, "detail": detail, "version": self.service.version}
        if self.tables:
            said["position"] = self.tables.position
        return said | {part: say() for part, say in self._tells.items()}

    def report(self, part: str, fault: str, for_s: float = math.inf) -> None:
        """Say in health, for that long, that a part does not work; an empty fault says that it works again."""
        self._faults[part] = (fault, time.monotonic() + for_s if fault else 0.0)

    def tell(self, part: str, say: Callable[[], Any]) -> None:
        """Have health show what `say` returns of a part at the moment."""
        self._tells[part] = say

    async def do(self, request: Message) -> Message:
        """Ask the service itself, in its own name: what a request over the bus comes to, without that way.

        Raises `Refusal`, `Unavailable`, or whatever bug the service has.
        """
        deadline = system_clock() + timedelta(seconds=TIMEOUT_S)
        asked = Asked(request, Actor("", ""), "", deadline, self.service.name)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return (await self._handlers[type(request)](asked))[0]
        except TimeoutError:
            raise Unavailable(f"{type(request).DESCRIPTOR.name} was not done in time") from None

    def spawn(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run a worker until the service stops; when it ends by an error, log it, say so in health, start it again."""
        task = asyncio.create_task(self._keep(name, work), name=name)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    async def _keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        pause_s = WORKER_PAUSE_S[0]
        while True:
            began = time.monotonic()
            try:
                await work()
            except Exception as error:
                LOGGER.exception("worker %s failed", name)
                if time.monotonic() - began > WORKER_STEADY_S:
                    pause_s = WORKER_PAUSE_S[0]
                self.report(name, type(error).__name__, pause_s + WORKER_STEADY_S)
            else:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, WORKER_PAUSE_S[1])

    async def stop(self) -> None:
        """Answer what is in work, end the workers, close. Safe to call on a service that started only in part."""
        if self._server:
            await self._server.stop()
        await tasks.end(self._workers, again_s=STOP_S)
        await self.log.stop()
        if self.projector:
            await self.projector.stop()
        if self.tables:
            self.tables.close()
        await self.connection.close()


async def start(
    service: Service,
    settings: NatsSettings,
    tables_folder: Path | None,
    *,
    clock: Clock = system_clock,
    ids: NewId = new_id,
) -> Runtime:
    """Start `service`; it answers when this returns. `tables_folder` None keeps the tables in memory.

    Raises `connections.Unfit` when the NATS server can't keep the promises.
    """
    runtime = _build(service, await Connection.open(settings), clock, ids)
    try:
        await runtime.connection.prepare()
        if service.projection:
            await _open_tables(runtime, tables_folder)
        runtime.log.start()
        await _listen(runtime)
    except BaseException:
        await runtime.stop()
        raise
    LOGGER.info("%s is ready", service.name)
    return runtime


def _build(service: Service, connection: Connection, clock: Clock, ids: NewId) -> Runtime:
    batches = telemetry.BATCHES.labels(service.name)
    return Runtime(
        service=service,
        connection=connection,
        clock=clock,
        new_id=ids,
        bus=Bus(connection, service.name),
        log=Log(
            connection, system_clock, on_batch=batches.observe
        ),  # deadlines are in real time, whatever `clock` says
        timers=Timers(connection, service.name),
    )


async def _open_tables(runtime: Runtime, folder: Path | None) -> None:
    service, projection = runtime.service, runtime.service.projection
    if projection is None:
        return
    if folder:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240 - once, before anything is answered
    path = folder / f"{service.name}.sqlite" if folder else None
    runtime.tables = Tables.open(path, projection, runtime.epoch)
    if runtime.tables.position > await runtime.connection.last_sequence(None):
        # The log is older than the tables (a restored backup): what it has lost must not be shown.
        runtime.tables.rebuild()
    applied, position = telemetry.FACTS_APPLIED.labels(service.name), telemetry.POSITION.labels(service.name)
    tables = runtime.tables

    def on_applied(count: int) -> None:
        applied.inc(count)
        position.set(tables.position)

    runtime.projector = Projector(runtime.connection, projection, runtime.tables, on_applied)
    await runtime.projector.start()


async def _listen(runtime: Runtime) -> None:
    service = runtime.service
    runtime._handlers = _handlers(runtime)  # noqa: SLF001 - the runner and its record are one module
    runtime.spawn("log", partial(_guard, runtime))
    runtime.spawn("in-memory", partial(look_after, runtime.connection, runtime.report))
    if runtime.projector:
        runtime.spawn("sweeper", partial(sweep, runtime.projector))
    for worker in service.workers:
        runtime.spawn(getattr(worker, "__name__", "worker"), partial(worker, runtime))
    for reaction in service.reactions:
        runtime.spawn(reaction.name, partial(react, reaction, runtime))
    if service.on_timer:
        runtime.spawn("timers", _timing(service.on_timer, runtime))
    runtime._server = Server(runtime.connection, service.name, service.version, runtime.health)  # noqa: SLF001
    await runtime._server.start(runtime._handlers)  # noqa: SLF001


async def _guard(runtime: Runtime) -> None:
    """After each reconnect, make sure that the log is still the one that the tables were made from."""
    again = asyncio.Event()
    runtime.connection.on_reconnect(again.set)
    try:
        while True:
            await again.wait()
            again.clear()
            try:
                epoch, last = await runtime.connection.look()
            except Unavailable:
                await asyncio.sleep(GUARD_RETRY_S)
                again.set()
                continue
            if epoch != runtime.epoch or (runtime.tables and last < runtime.tables.position):
                _lose(runtime)
    finally:
        runtime.connection.off_reconnect(again.set)


def _lose(runtime: Runtime) -> None:
    """The log is gone, another one, or an older state of it: what the tables hold must not be answered."""
    fault = "NATS came back with another log, or an older state of it; restart the services when that is meant"
    LOGGER.error("%s", fault)
    runtime.report("log", fault)
    if runtime.projector:
        runtime.projector.fail(Unavailable(fault), for_good=True)


def _timing(
    on_timer: Callable[[Runtime, str, bytes], Awaitable[None]], runtime: Runtime
) -> Callable[[], Awaitable[None]]:
    arm = runtime.service.arm

    async def due(room: str, data: bytes) -> None:
        await on_timer(runtime, room, data)

    def report(fault: str, for_s: float) -> None:
        runtime.report("timers", fault, for_s)

    return lambda: runtime.timers.follow(due, partial(arm, runtime) if arm else None, report)


def _handlers(runtime: Runtime) -> dict[type[Message], Handler]:
    handlers: dict[type[Message], Handler] = {}
    for command in runtime.service.commands:
        handlers[command.request] = _command_handler(runtime, command)
    for query in runtime.service.queries:
        handlers[query.request] = _query_handler(runtime, query)
    for request in handlers:
        is_query = subjects.is_query(subjects.method_of(request.DESCRIPTOR))
        if is_query != any(query.request is request for query in runtime.service.queries):
            raise TypeError(f"{request.DESCRIPTOR.name}: the proto and service.py disagree on whether it writes")
    return handlers | {direct.request: _direct_handler(runtime, direct) for direct in runtime.service.direct}


def _context(runtime: Runtime, asked: Asked) -> Context:
    return Context(asked.actor, asked.key, runtime.clock(), runtime.new_id, asked.deadline)


def _command_handler(runtime: Runtime, command: Command) -> Handler:
    if runtime.projector is None:
        raise TypeError(f"{runtime.service.name} has commands but no projection to decide from")
    decider = Decider(runtime.connection, runtime.log, runtime.projector)
    appended = telemetry.FACTS_APPENDED.labels(runtime.service.name)

    async def handle(asked: Asked) -> tuple[Message, int]:
        if command.callers and asked.caller not in command.callers:
            what = command.request.DESCRIPTOR.name
            raise Refusal("auth.refused", f"{what} is asked by {' and '.join(command.callers)} alone")
        outcome = await decider.run(command, asked.message, _context(runtime, asked))
        if outcome.sequence:
            appended.inc()
        if command.then and outcome.event:
            with contextlib.suppress(Unavailable):  # the fact stands; a reaction does the rest
                await command.then(runtime, outcome.event, outcome.sequence)
        return outcome.answer, outcome.sequence

    return handle


def _direct_handler(runtime: Runtime, direct: Direct) -> Handler:
    async def handle(asked: Asked) -> tuple[Message, int]:
        return await direct.run(runtime, asked.message, _context(runtime, asked))

    return handle


def _query_handler(runtime: Runtime, query: Query | LogQuery) -> Handler:
    projector = runtime.projector
    if projector is None:
        raise TypeError(f"{runtime.service.name} has queries but no projection to read from")

    async def handle(asked: Asked) -> tuple[Message, int]:
        await projector.catch_up()
        tables, request, context = projector.tables, asked.message, _context(runtime, asked)
        if isinstance(query, Query):
            return query.run(tables, request, context), 0
        page = await read(runtime.connection, query.part(tables, request, context))
        return query.run(tables, request, context, page), 0

    return handle
