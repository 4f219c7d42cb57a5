"""Turns the log into a service's tables, fact by fact, and lets readers wait until a fact is in them.

The tables are a pure function of the facts read: applying one more fact to them, or all facts to empty ones, gives the
same rows. A fact that can't be applied stops the projector, which makes the service unhealthy; nothing is skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import Message

from mycelium_kernel import events, headers, subjects, telemetry
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Unavailable
from mycelium_kernel.service import Projection, Stored
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact, Tail

LOGGER = logging.getLogger(__name__)


class Applier:
    """Applies facts to tables as a projection says: the pure half of the projector, and what its law is tested on."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._apply = {events.type_name(kind): function for kind, function in projection.apply.items()}
        self._evolve = {events.type_name(kind): steps for kind, steps in projection.entities.items()}
        self._erased = {events.type_name(kind): function for kind, function in projection.erased.items()}
        self._types = self._apply.keys() | self._evolve.keys() | self._erased.keys()

    def apply(self, tables: Tables, fact: RawFact) -> None:
        """Change the tables as one fact says. Raises whatever a projection function raises."""
        room_id = subjects.room_of(fact.subject)
        if fact.type not in self._types or tables.is_erased(room_id):
            return
        event = events.decode(fact.type, fact.data)
        with telemetry.span(f"project {event.DESCRIPTOR.name}", fact.headers):
            self._evolve_entities(tables, fact, event)
            if fact.type in self._apply:
                self._apply[fact.type](tables, event, _stored(fact))
            _remember(tables, fact, room_id)
            if self._projection.feed:
                _feed(tables, fact, event, room_id)
            if fact.type in self._erased:
                erase(self._projection, tables, self._erased[fact.type](event))

    def _evolve_entities(self, tables: Tables, fact: RawFact, event: Message) -> None:
        for step in self._evolve.get(fact.type, ()):
            subject = step.seeds(event) if step.seeds else fact.subject
            before = tables.entity(subject, step.state).state
            tables.put_entity(subject, 0 if step.seeds else fact.sequence, step.evolve(before, event))


def _stored(fact: RawFact) -> Stored:
    get = fact.headers.get
    return Stored(fact.sequence, fact.subject, get(headers.KEY, ""), get(headers.ACTOR, ""), get(headers.SESSION, ""))


def _remember(tables: Tables, fact: RawFact, room_id: str) -> None:
    key, body = fact.headers.get(headers.KEY, ""), fact.headers.get(headers.BODY, "")
    if key and body:
        actor = fact.headers.get(headers.ACTOR, "")
        sql = "INSERT OR IGNORE INTO answered VALUES (?, ?, ?, ?, ?)"
        tables.execute(sql, actor, key, fact.sequence, body, room_id)


def _feed(tables: Tables, fact: RawFact, event: object, room_id: str) -> None:
    if room_id == subjects.HUB:
        return
    room_id = getattr(event, "room_id", room_id)
    tables.execute("INSERT INTO feed VALUES (?, ?, ?, ?)", fact.sequence, room_id, fact.type, fact.data)


def erase(projection: Projection, tables: Tables, room_id: str) -> None:
    """Drop a room from every table, for good."""
    for table in (*projection.room_tables, "feed", "answered"):
        tables.execute(f"DELETE FROM {table} WHERE room_id = ?", room_id)  # noqa: S608 - names from the code
    # The subjects of a room's entities are `evt.<service>.<room>.…`: between `.` and the character after it.
    for row in tables.all("SELECT DISTINCT substr(subject, 1, instr(substr(subject, 5), '.') + 3) FROM entity"):
        low = f"{row[0]}.{room_id}."
        tables.execute("DELETE FROM entity WHERE subject >= ? AND subject < ?", low, low[:-1] + "/")
    tables.execute("INSERT OR IGNORE INTO erased VALUES (?)", room_id)


@dataclass
class Projector:
    """Keeps one service's tables up with the log."""

    connection: Connection
    projection: Projection
    tables: Tables
    on_applied: Callable[[int], None] = lambda _count: None
    failure: Exception | None = None
    _waiters: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    _tail: Tail | None = None
    _look: asyncio.Task[int] | None = None

    async def start(self) -> None:
        """Follow the log from where the tables are, and return when they hold all that was stored before."""
        self._tail = Tail(self.connection, self.projection.filters, self._on_facts)
        await self._tail.start(self.tables.position)
        await self.catch_up()

    async def stop(self) -> None:
        """Stop following. The tables stay open."""
        if self._tail:
            await self._tail.stop()
        for _sequence, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(Unavailable("the service is stopping"))
        self._waiters.clear()

    def __post_init__(self) -> None:
        self._applier = Applier(self.projection)

    def _on_facts(self, facts: list[RawFact]) -> None:
        if self.failure:
            return
        try:
            self.tables.begin()
            for fact in facts:
                if fact.sequence > self.tables.position:
                    self._applier.apply(self.tables, fact)
            self.tables.commit(max(self.tables.position, facts[-1].sequence))
        except Exception as error:
            self._fail(error, facts)
            return
        self.on_applied(len(facts))
        ready = [item for item in self._waiters if item[0] <= self.tables.position]
        if ready:
            self._waiters = [item for item in self._waiters if item[0] > self.tables.position]
        for _sequence, waiter in ready:
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: Exception, facts: list[RawFact]) -> None:
        self.failure = error
        LOGGER.exception("facts %d to %d can't be applied", facts[0].sequence, facts[-1].sequence)
        try:
            self.tables.rollback()
        except Exception:
            LOGGER.exception("the tables can't be rolled back")
        for _sequence, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(Unavailable("the tables can't follow the log"))
        self._waiters.clear()

    async def wait(self, sequence: int) -> None:
        """Return when the tables hold the fact of that sequence. Raises `Unavailable` when they no longer follow."""
        if self.failure:
            raise Unavailable("the tables can't follow the log") from self.failure
        if sequence <= self.tables.position:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((sequence, waiter))
        await waiter

    async def catch_up(self) -> None:
        """Return when the tables hold every fact that was acknowledged before this call (read your writes).

        Calls that come while one look is under way share the next one: a look that began earlier may be too old.
        """
        previous = self._look
        if previous is not None and not previous.done():
            await asyncio.wait({previous})
        if self._look is previous or self._look is None:
            self._look = asyncio.create_task(self._last_sequence(), name="projector-look")
        await self.wait(await asyncio.shield(self._look))

    async def _last_sequence(self) -> int:
        lasts = [await self.connection.last_sequence(subject) for subject in self.projection.filters]
        return max(lasts, default=0)
