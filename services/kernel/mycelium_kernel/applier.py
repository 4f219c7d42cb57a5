"""Applies facts to tables as a projection says: the pure half of the projector, and what its law is tested on.

The tables are a pure function of the facts read: applying one more fact to them, or all facts to empty ones, gives the
same rows.
"""

from __future__ import annotations

import contextlib

from google.protobuf.message import Message

from mycelium_kernel import chain, events, headers, subjects, telemetry
from mycelium_kernel.service import Projection, Stored
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact


class Applier:
    """Applies facts to tables, each within the transaction of its caller."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._apply = {events.type_name(kind): function for kind, function in projection.apply.items()}
        self._evolve = {events.type_name(kind): steps for kind, steps in projection.entities.items()}
        self._erased = {events.type_name(kind): function for kind, function in projection.erased.items()}
        self._types = self._apply.keys() | self._evolve.keys() | self._erased.keys()

    def apply(self, tables: Tables, fact: RawFact) -> None:
        """Change the tables as one fact says.

        Raises whatever a projection function raises; then the caller rolls back, and the tables are as before.
        """
        if tables.is_erased(subjects.room_of(fact.subject)):
            return
        room_id = chain.room_of(fact, is_tombstone=fact.type in self._erased)
        chain.extend(tables, room_id, fact)
        if fact.type not in self._types:
            return
        event = events.decode(fact.type, fact.data)
        recorded = telemetry.span(f"project {event.DESCRIPTOR.name}", fact.headers)
        with recorded if telemetry.recording() else contextlib.nullcontext():
            self._change(tables, fact, event, room_id)
        if fact.type in self._erased:
            self._erase(tables, self._erased[fact.type](event))

    def _change(self, tables: Tables, fact: RawFact, event: Message, room_id: str) -> None:
        self._evolve_entities(tables, fact, event)
        if fact.type in self._apply:
            self._apply[fact.type](tables, event, _stored(fact))
        get = fact.headers.get
        if get(headers.KEY) and get(headers.BODY) and self._is_own(fact.subject):
            tables.put_answered(
                fact.sequence, get(headers.ACTOR, ""), get(headers.KEY, ""), get(headers.BODY, ""), room_id
            )
        if self._projection.feed:
            _feed(tables, fact, event, room_id)

    def _is_own(self, subject: str) -> bool:
        return self._projection.owner in {"", subjects.owner_of(subject)}

    def _evolve_entities(self, tables: Tables, fact: RawFact, event: Message) -> None:
        for step in self._evolve.get(fact.type, ()):
            subject = step.seeds(event) if step.seeds else fact.subject
            before = tables.entity(subject, step.state).state
            tables.put_entity(subject, 0 if step.seeds else fact.sequence, step.evolve(before, event))

    def _erase(self, tables: Tables, room_id: str) -> None:
        """Take a room out of the tables, for good. What it has very many of counts as gone, and is swept later."""
        for table in self._projection.room_tables:
            tables.execute(f"DELETE FROM {table} WHERE room_id = ?", room_id)  # noqa: S608 - names from the code
        tables.execute("INSERT OR IGNORE INTO erased VALUES (?, 0)", room_id)


def _stored(fact: RawFact) -> Stored:
    get = fact.headers.get
    return Stored(fact.sequence, fact.subject, get(headers.KEY, ""), get(headers.ACTOR, ""), get(headers.SESSION, ""))


def _feed(tables: Tables, fact: RawFact, event: object, room_id: str) -> None:
    if room_id == subjects.HUB:
        return
    room_id = getattr(event, "room_id", room_id)
    if not tables.is_erased(room_id):
        tables.execute("INSERT INTO feed VALUES (?, ?, ?, ?)", fact.sequence, room_id, fact.type, fact.data)
