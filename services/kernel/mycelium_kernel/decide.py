"""The one loop around every command: load, decide, append, and after a lost race wait for the newer fact and again.

Nothing is done by halves: a command ends in one fact, in none, or in a refusal. A refusal is given from tables that
hold everything stored before the request came, so that nobody is refused what they have just made possible.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from mycelium_kernel import events, headers, telemetry
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Conflict, Refusal, Unavailable, WrongSequence
from mycelium_kernel.log import Log
from mycelium_kernel.projector import Projector
from mycelium_kernel.service import Also, Command, Context, Done, Entity, Fact
from mycelium_kernel.tables import Answered
from mycelium_kernel.turns import Turns

RACES = 3  # a lost race is run again this often, then the caller is told
# The same for one over several entities: many who have nothing else to do with each other may share one of them.
RACES_TOGETHER = 30


@dataclass(frozen=True)
class Outcome:
    """What a command came to: the answer, its fact and the fact's sequence (0 when there was none to append)."""

    answer: Message
    sequence: int
    event: Message | None = None


class _LostTogether(WrongSequence):
    """One of several entities has moved on."""


@dataclass(frozen=True)
class Decider:
    """Runs a service's commands."""

    connection: Connection
    log: Log
    projector: Projector
    turns: Turns = field(default_factory=Turns)

    async def run(self, command: Command, request: Message, context: Context) -> Outcome:
        """Do what `request` asks, once, however often it is asked under one key. The bus bounds it by the deadline.

        Raises `Refusal`, `Unavailable`, `DeadlinePassed`, or whatever bug the service's functions have.
        """
        body = body_hash(request)
        races, fresh = 0, command.is_fresh(request)
        if fresh:
            await self.projector.catch_up()
        while True:
            try:
                return await self._attempt(command, request, context, body)
            except Refusal:
                if fresh:
                    raise
            except WrongSequence as lost:
                races += 1
                if races > (RACES_TOGETHER if isinstance(lost, _LostTogether) else RACES):
                    raise Conflict(events.type_name(request)) from None
            await self.projector.catch_up()
            fresh = True

    async def _attempt(self, command: Command, request: Message, context: Context, body: str) -> Outcome:
        decision = await self._decide(command, request, context, body)
        if isinstance(decision, Outcome):
            return decision
        if decision.on is None:
            return await self._append(command, decision, context, body)
        async with contextlib.AsyncExitStack() as stack:
            # In one order, so that no two wait for each other.
            subjects = sorted(decision.entities)
            turns = {subject: await stack.enter_async_context(self.turns.taken(subject)) for subject in subjects}
            if any(turns[subject].last > sequence for subject, sequence in decision.entities.items()):
                await self.projector.wait(max(turn.last for turn in turns.values()))  # somebody was before us in a line
                decision = await self._decide(command, request, context, body)
                if isinstance(decision, Outcome):
                    return decision
            outcome = await self._append(command, decision, context, body)
            for turn in turns.values():
                turn.last = max(turn.last, outcome.sequence)
            return outcome

    async def _decide(self, command: Command, request: Message, context: Context, body: str) -> Outcome | Fact:
        """What is to be stored, or what the request comes to without."""
        if self.projector.failure:
            raise Unavailable("the tables can't follow the log")
        tables = self.projector.tables
        answered = tables.answered(context.actor.handle, context.key) if context.key else None
        if answered:
            return await self._repeat(command, answered, body)
        decision = command.decide(command.load(tables, request, context), request, context)
        return Outcome(decision.answer, 0) if isinstance(decision, Done) else decision

    async def _append(self, command: Command, fact: Fact, context: Context, body: str) -> Outcome:
        if fact.also and fact.on:
            return await self._append_together(command, fact, fact.on, context, body)
        subject = fact.on.subject if fact.on else fact.subject
        appended = await self.log.append(
            subject,
            fact.event.SerializeToString(),
            fact_headers(fact, context, body),
            expect=fact.on.sequence if fact.on else None,
            deadline=context.deadline,
        )
        self.projector.stored(subject, appended.sequence)
        if appended.duplicate:
            return await self._repeat(command, Answered(appended.sequence, body), body)
        return Outcome(command.answer(fact.event, appended.sequence), appended.sequence, fact.event)

    async def _append_together(
        self, command: Command, fact: Fact, on: Entity[Any], context: Context, body: str
    ) -> Outcome:
        group = [(also.subject, also.event.SerializeToString(), _also_headers(also)) for also in fact.also]
        group.append((on.subject, fact.event.SerializeToString(), fact_headers(fact, context, body)))
        try:
            appended = await self.log.append_together(group, expect=on.sequence, deadline=context.deadline)
        except WrongSequence as error:
            raise _LostTogether(str(error)) from None
        self.projector.stored(on.subject, appended.sequence)
        return Outcome(command.answer(fact.event, appended.sequence), appended.sequence, fact.event)

    async def _repeat(self, command: Command, answered: Answered, body: str) -> Outcome:
        """The first answer again, made from the fact that was stored then."""
        found = await self.connection.get(answered.sequence)
        if found is None:
            raise Refusal("key.reused", "what was first asked under this key has been erased; use a new key")
        stored, data = found
        if stored.get(headers.BODY) != body:
            raise Refusal("key.reused", "this key was used for another request; use a new key for a new request")
        event = events.decode(stored[headers.TYPE], data)
        return Outcome(command.answer(event, answered.sequence), answered.sequence, event)


def _also_headers(also: Also) -> dict[str, str]:
    expected = {headers.EXPECTED: str(also.on.sequence)} if also.on else {}
    return {headers.TYPE: events.type_name(also.event), **also.headers, **expected}


def fact_headers(fact: Fact, context: Context, body: str) -> dict[str, str]:
    """The headers that a fact is stored with."""
    stored = {headers.TYPE: events.type_name(fact.event), headers.ACTOR: context.actor.handle}
    if context.actor.session:
        stored[headers.SESSION] = context.actor.session
    if context.key and fact.answers:
        stored[headers.KEY] = context.key
        stored[headers.BODY] = body
    if context.key and fact.answers and fact.on is None:
        scope = f"{context.actor.handle}\n{context.key}\n{stored[headers.TYPE]}"
        stored[headers.MESSAGE_ID] = hashlib.sha256(scope.encode()).hexdigest()[:32]
    telemetry.inject(stored)
    return stored


def body_hash(request: Message) -> str:
    """What tells a repeat from another request under the same key."""
    data = request.SerializeToString(deterministic=True)
    return hashlib.sha256(events.type_name(request).encode() + b"\0" + data).hexdigest()[:32]
