"""Turns the log into a service's tables, fact by fact, and lets readers wait until a fact is in them.

A fact that can't be applied stops the projector, which makes the service unhealthy; nothing is skipped. It is tried
again ever more seldom, since the cause may have been a full disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from mycelium_kernel import subjects, tasks
from mycelium_kernel.applier import Applier
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Unavailable, words
from mycelium_kernel.service import Projection
from mycelium_kernel.table_file import is_damage
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact, Tail

# Turns of the event loop that the tables wait for more facts: live readers in the same process come first (measured:
# a watcher has a post a tenth sooner), and nobody waits longer, since a look at the log takes more turns than that.
TURNS = 8
LOGGER = logging.getLogger(__name__)
MEND_S = (1.0, 30.0)  # before a fact that failed is tried again: first, longest
LOOK_S = 5.0  # for asking the log how far it is, over a restart of NATS
ATTEMPT_S = 1.0
RETRY_S = 0.05
FEW = 2_000  # facts among which one under a filter is looked for, rather than for the last of all (0.1 ms for as many)


@dataclass
class Projector:
    """Keeps one service's tables up with the log. `failure` says why they no longer follow."""

    connection: Connection
    projection: Projection
    tables: Tables
    on_applied: Callable[[int], None] = lambda _count: None
    failure: Exception | None = None
    _waiters: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    _tail: Tail | None = None
    _look: asyncio.Task[int] | None = None
    _mender: asyncio.Task[None] | None = None
    _halted: bool = True
    _for_good: bool = False
    _held: list[RawFact] | None = None
    _seen: int = 0  # as far as the log is known to have nothing that is missing in the tables
    _stored: int = 0  # the last fact that is known to be under the filters, and comes to the tables

    def __post_init__(self) -> None:
        self._applier = Applier(self.projection)
        self.tables.on_damage = self.fail

    async def start(self) -> None:
        """Follow the log from where the tables are, and return when they hold all that was stored before.

        Returns with `failure` set when a fact can't be applied: the service then says so in its health. The log is
        asked before it is followed: while very many facts come at once, its answer would come too late.
        """
        last = await self._last_sequence()
        await self._follow()
        try:
            await self.wait(last)
        except Unavailable:
            if not self.failure:
                raise

    async def stop(self) -> None:
        """Stop following. The tables stay open."""
        self._halted = True
        await tasks.end([self._mender, self._look])
        if self._tail:
            await self._tail.stop()
        self._refuse_waiters("the service is stopping")

    async def _follow(self) -> None:
        if self._tail:
            await self._tail.stop()
        self._halted, self._seen, self._stored = False, 0, 0
        if self._held:
            self._held.clear()  # they come again, after those before them
        self._tail = Tail(self.connection, self.projection.filters, self._on_facts, turns=TURNS)
        await self._tail.start(self.tables.position)

    def _on_facts(self, facts: list[RawFact]) -> None:
        """Apply facts in one transaction; when one of them fails, one by one up to that."""
        if self._halted:
            return
        if self._held is not None:
            self._held += facts
            return
        try:
            self._apply(facts)
        except Exception as error:
            self._roll_back()
            if len(facts) == 1:
                LOGGER.exception("fact %d can't be applied", facts[0].sequence)
                self.fail(error)
            for fact in facts if len(facts) > 1 else ():
                self._on_facts([fact])
            return
        self.on_applied(len(facts))
        self._release_waiters()

    def _apply(self, facts: list[RawFact]) -> None:
        self.tables.begin()
        for fact in facts:
            if fact.sequence > self.tables.position:
                self._applier.apply(self.tables, fact)
        self.tables.commit(max(self.tables.position, facts[-1].sequence))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Write nothing within the block, so that another may; the facts that come meanwhile are applied at its end."""
        self._held = []
        try:
            yield
        finally:
            facts, self._held = self._held, None
            if facts:
                self._on_facts(facts)

    def _roll_back(self) -> None:
        try:
            self.tables.rollback()
        except Exception:
            LOGGER.exception("the tables can't be rolled back")

    def fail(self, error: Exception, *, for_good: bool = False) -> None:
        """Follow no further, and answer nobody from these tables. Unless it is for good, mend it by and by."""
        self.failure = error
        self._halted = True
        self._refuse_waiters("the tables can't follow the log")
        self._for_good |= for_good
        if self._for_good:
            if self._mender:
                self._mender.cancel()
        elif self._mender is None or self._mender.done():
            self._mender = asyncio.get_running_loop().create_task(self._mend(), name="projector-mender")

    async def _mend(self) -> None:
        """Follow again from the last fact that was applied, from the first when the file is damaged."""
        pause_s = MEND_S[0]
        while not self._for_good:  # its cancellation can be lost on the way (`tasks.end`)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MEND_S[1])
            try:
                if self.failure and is_damage(self.failure):
                    self.tables.rebuild()
                await self._follow()
                await self._reach(await self._last_sequence())
            except Exception as error:
                LOGGER.warning("the tables still can't follow the log: %s", words(error))
            else:
                self._mended()
                return

    def _mended(self) -> None:
        """Answer again, unless the log was lost meanwhile."""
        if self._for_good:
            self._halted = True
        else:
            LOGGER.info("the tables follow the log again")
            self.failure = None

    def _release_waiters(self) -> None:
        ready = [waiter for sequence, waiter in self._waiters if sequence <= self.tables.position]
        if ready:
            self._waiters = [item for item in self._waiters if item[0] > self.tables.position]
        for waiter in ready:
            if not waiter.done():
                waiter.set_result(None)

    def _refuse_waiters(self, reason: str) -> None:
        waiters, self._waiters = self._waiters, []
        for _sequence, waiter in waiters:
            if not waiter.done():
                waiter.set_exception(Unavailable(reason))

    async def wait(self, sequence: int) -> None:
        """Return when the tables hold the fact of that sequence. Raises `Unavailable` when they no longer follow."""
        if self.failure:
            raise Unavailable("the tables can't follow the log") from self.failure
        await self._reach(sequence)

    async def _reach(self, sequence: int) -> None:
        if sequence <= self.tables.position:
            return
        if self._halted:
            raise Unavailable("the tables do not follow the log")
        item = (sequence, asyncio.get_running_loop().create_future())
        self._waiters.append(item)
        try:
            await item[1]
        finally:
            with contextlib.suppress(ValueError):
                self._waiters.remove(item)

    async def catch_up(self) -> None:
        """Return when the tables hold every fact that was acknowledged before this call (read your writes).

        Calls that come while one look is under way share the next one: a look that began earlier may be too old.
        Raises `Unavailable` when the log can't be asked, or the tables no longer follow it.
        """
        previous = self._look
        if previous is not None and not previous.done():
            await asyncio.wait({previous})
        if self._look is previous or self._look is None:
            self._look = asyncio.create_task(self._asked(self._newest), name="projector-look")
        await self.wait(await asyncio.shield(self._look))

    def stored(self, subject: str, sequence: int) -> None:
        """This process has stored a fact there: a look that finds it at the log's end need not ask what is there."""
        if sequence > self._stored and subjects.is_under(subject, self.projection.filters):
            self._stored = sequence

    async def _newest(self) -> int:
        """How far the tables have to be.

        To ask for the last fact under a filter takes the longer the more subjects that has (1.3 ms with 20,000), and
        carries the fact. So the log is first asked for its end, and what came since the last look is looked through.
        """
        end = await self.connection.end(ATTEMPT_S)
        if end <= self._stored:
            return max(end, self.tables.position)
        known = max(self._seen, self.tables.position)
        if end <= known:
            return self.tables.position
        if await self._is_read(end):
            self._stored = max(self._stored, end)
            return end
        if end > known + FEW or await self._any_after(known):
            last = await self._last()
            if last > self.tables.position:
                return last
        self._seen = max(self._seen, end)
        return self.tables.position

    async def _is_read(self, sequence: int) -> bool:
        """Whether the fact there is under a filter, where to ask that is less than to ask under each."""
        filters = self.projection.filters
        if len(filters) < 2:
            return False
        subject = await self.connection.subject_of(sequence, ATTEMPT_S)
        return subjects.is_under(subject, filters)

    async def _any_after(self, sequence: int) -> bool:
        ask = self.connection.has_after
        return any(await asyncio.gather(*(ask(subject, sequence, ATTEMPT_S) for subject in self.projection.filters)))

    async def _last(self) -> int:
        ask = self.connection.last_sequence
        return max(await asyncio.gather(*(ask(subject, ATTEMPT_S) for subject in self.projection.filters)), default=0)

    async def _last_sequence(self) -> int:
        """How far the log is under this projection's filters."""
        return await self._asked(self._last)

    async def _asked(self, ask: Callable[[], Awaitable[int]]) -> int:
        """What the log says, asked again while NATS is away."""
        until = asyncio.get_running_loop().time() + LOOK_S
        while True:
            try:
                return await ask()
            except Unavailable:
                if asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(RETRY_S)
