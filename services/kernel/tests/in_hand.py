"""A service in memory, for tests: its requests run one at a time on its own tables, with time and ids in hand.

What the kernel does around a service, the log and the projector, is done here at once; `Hub` of each service's tests is
one of these, with what its users do and what other services store.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium_kernel import events, headers
from mycelium_kernel.applier import Applier
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Command, Context, Done, Fact, LogQuery, Projection, Query, Service
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import Page, Part, RawFact

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def tables_of(projection: Projection, facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    tables, applier = Tables.open(None, projection, "log"), Applier(projection)
    for fact in facts:
        applier.apply(tables, fact)
    return tables


class InHand:
    """A service as its process would keep it. `somebody` is who asks where a test does not say."""

    somebody = ""

    def __init__(self, service: Service, *, tables: Tables | None = None, ids: int = 0, now: datetime = START) -> None:
        assert service.projection is not None
        self.service, self.projection = service, service.projection
        self.tables = tables or Tables.open(None, self.projection, "log")
        self.applier = Applier(self.projection)
        self.now = now
        self.facts: list[RawFact] = []
        self.ids = ids
        self.commands: dict[type[Message], Command] = {command.request: command for command in service.commands}
        self.queries: dict[type[Message], Query | LogQuery] = {query.request: query for query in service.queries}

    def new_id(self) -> str:
        """As the kernel makes them, and in order."""
        self.ids += 1
        return f"01900000-0000-7000-8000-{self.ids:012x}"

    def actor(self, handle: str, session: str) -> Actor:
        """Who asks, as the gateway would say it."""
        return Actor(handle, session)

    def context(self, handle: str = "", session: str = "") -> Context:
        """What a command knows beside its request."""
        return Context(self.actor(handle, session), "", self.now, self.new_id, self.now + timedelta(seconds=10))

    def later(self, **by: float) -> None:
        """Time passes."""
        self.now += timedelta(**by)

    def decide(self, request: Message, handle: str = "", session: str = "") -> Fact | Done:
        """What a command decides, with nothing stored."""
        command, context = self.commands[type(request)], self.context(handle, session)
        return command.decide(command.load(self.tables, request, context), request, context)

    def ask(self, request: Message, handle: str | None = None, session: str = "") -> Any:
        """Do what a request asks, and answer it."""
        handle = self.somebody if handle is None else handle
        query = self.queries.get(type(request))
        if isinstance(query, LogQuery):
            part = query.part(self.tables, request, self.context(handle, session))
            return query.run(self.tables, request, self.context(handle, session), self.read_part(part))
        if query:
            return query.run(self.tables, request, self.context(handle, session))
        decision = self.decide(request, handle, session)
        if isinstance(decision, Done):
            return decision.answer
        return self.commands[type(request)].answer(decision.event, self.store(decision))

    def refused(self, slug: str, request: Message, handle: str | None = None, session: str = "") -> Refusal:
        """The refusal of a request, which must have that slug."""
        with pytest.raises(Refusal) as caught:
            self.ask(request, handle, session)
        assert caught.value.slug == slug
        return caught.value

    def read_part(self, part: Part) -> Page:
        """A part of the log, as the kernel reads it."""
        begin = tuple(subject.removesuffix(">") for subject in part.filters)
        facts = [fact for fact in self.facts if fact.subject.startswith(begin)]
        wanted = [fact for fact in facts if fact.sequence > part.after]
        return Page(wanted[: part.limit], facts[-1].sequence if facts else 0)

    def store(self, fact: Fact) -> int:
        """Append a fact and apply it, as the log and the projector would."""
        for also in fact.also:
            self.append(also.subject, also.event)
        subject = fact.on.subject if fact.on else fact.subject
        if fact.on:
            last = max((stored.sequence for stored in self.facts if stored.subject == subject), default=0)
            assert fact.on.sequence == last, "the entity has moved on"
        return self.append(subject, fact.event)

    def append(self, subject: str, event: Message, key: str = "") -> int:
        """What any service stores."""
        data, kind = event.SerializeToString(), events.type_name(event)
        kept = {headers.TYPE: kind} | ({headers.KEY: key} if key else {})
        stored = RawFact(len(self.facts) + 1, subject, kind, data, kept)
        self.facts.append(stored)
        self.applier.apply(self.tables, stored)
        return stored.sequence

    def sweep(self) -> None:
        """What is left of deleted rooms goes."""
        sweeper = Sweeper(self.projection, self.tables)
        while sweeper.step() or (sweeper.is_untidy() and sweeper.tidy()):
            pass
