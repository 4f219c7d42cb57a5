"""Makes a service's tables from the facts of a store in a temporary place, and compares its replicas with them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from mycelium_hub.deep_compare import Replica
from mycelium_kernel import chain, events
from mycelium_kernel.applier import Applier
from mycelium_kernel.service import Projection
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact

TOGETHER = 1_000  # facts in a transaction
READ = "SELECT room_id, sequence FROM chain ORDER BY sequence"
READ_TWICE = "SELECT chain.room_id, sequence FROM chain JOIN feed USING (sequence) ORDER BY sequence"
HASH = "SELECT hash FROM chain WHERE room_id = ? AND sequence = ?"


class Rebuild:
    """One service's tables from the log, which its replicas are compared with, each where it is."""

    def __init__(self, path: Path, name: str, projection: Projection, epoch: str, replicas: list[Replica]) -> None:
        self.name = name
        self._path = path
        self._projection = projection
        self._applier = Applier(projection)
        self._replicas = replicas
        self._waiting = sorted(replicas, key=lambda replica: replica.position)
        self._tables = Tables.anew(path, projection, epoch)
        self._tables.execute("PRAGMA synchronous = OFF")
        self._tables.execute("PRAGMA secure_delete = OFF")
        self._tables.begin()
        self._count = 0

    def take(self, fact: RawFact) -> None:
        """Apply a fact; before that, compare the replicas that have not come to it."""
        self._compare(fact.sequence - 1)
        if any(matches(fact.subject, one) for one in self._projection.filters):
            self._applier.apply(self._tables, fact)
            self._count += 1
            if self._count % TOGETHER == 0:
                self._tables.commit(fact.sequence)
                self._tables.begin()

    def finish(self, *, is_whole: bool) -> None:
        """Compare the rest. Tables of which the store lacks facts are not compared, but those that they have told."""
        if is_whole:
            self._compare(max((replica.position for replica in self._waiting), default=0))
            return
        self._tables.commit(self._last)
        self._tables.shrink()
        for replica in self._replicas:
            replica.lost = self._lost(replica, READ)
            replica.check_file(self._path)
        self._tables.begin()

    def _compare(self, reached: int) -> None:
        while self._waiting and self._waiting[0].position <= reached:
            replica = self._waiting.pop(0)
            self._tables.commit(replica.position)
            self._sweep()
            self._tables.shrink()
            replica.lost = self._lost(replica, READ_TWICE)
            if replica.lost:
                replica.check_file(self._path)
            else:
                replica.compare(self._path)
            self._tables.begin()

    def _sweep(self) -> None:
        """What waits to be swept is no difference."""
        sweeper = Sweeper(self._projection, self._tables)
        while sweeper.step():
            pass
        while sweeper.is_untidy() and sweeper.tidy():
            pass

    def differing(self, facts: Iterable[RawFact]) -> Iterator[tuple[str, RawFact]]:
        """By room, the first of another store's facts that is not the one here, as the chains tell."""
        tombstones = {events.type_name(kind) for kind in self._projection.erased}
        last = self._last
        heads: dict[str, bytes] = {}
        told: set[str] = set()
        for fact in facts:
            room_id = chain.room_of(fact, is_tombstone=fact.type in tombstones)
            if not any(matches(fact.subject, one) for one in self._projection.filters):
                continue
            heads[room_id] = chain.link(heads.get(room_id, chain.START), fact)
            if room_id in told or self._tables.is_erased(room_id):
                continue
            row = self._tables.one(HASH, room_id, fact.sequence)
            if fact.sequence <= last and (row is None or row[0] != heads[room_id]):
                told.add(room_id)
                yield room_id, fact

    @property
    def _last(self) -> int:
        row = self._tables.one("SELECT max(sequence) FROM chain")
        return int(row[0] or 0) if row else 0

    def _lost(self, replica: Replica, listed: str) -> list[tuple[str, int]]:
        """Facts by room that a replica has read and that are not in the store any more.

        While nothing else says that the store has lost some, only those that two of its tables tell of.
        """
        try:
            rows = replica.connection.execute(listed).fetchall()
        except sqlite3.DatabaseError:
            return []  # it is told by those who look at the file
        kept = {sequence for (sequence,) in self._tables.all("SELECT sequence FROM chain")}
        pairs = [(room_id.decode(errors="replace"), sequence) for room_id, sequence in rows if sequence not in kept]
        return [pair for pair in pairs if not self._tables.is_erased(pair[0])]

    def close(self) -> None:
        """The folder is deleted by whoever made it."""
        self._tables.rollback()
        self._tables.close()


def matches(subject: str, wanted: str) -> bool:
    """Whether a subject is one of a filter's."""
    mine, theirs = subject.split("."), wanted.split(".")
    if theirs[-1] == ">":
        mine, theirs = mine[: len(theirs) - 1], theirs[:-1]
    return len(mine) == len(theirs) and all(their in {"*", one} for one, their in zip(mine, theirs, strict=True))
