"""The value types that a service is made of. `service.py` of each service lists them; `run` wires them to the bus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from google.protobuf.message import Message

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime
    from mycelium_kernel.tables import Tables
    from mycelium_kernel.tail import Page, Part

Evolve = Callable[[Any, Any], Message]
S = TypeVar("S", bound=Message)


@dataclass(frozen=True)
class Actor:
    """Who asks. The gateway vouches for it; another service speaks for itself, or for whom its header says.

    `proven` is "user" or "agent" when a token proved at the gateway who it is, else empty: nobody had to sign in, or
    another service asks. `operator` is whether they run the hub, by its settings, and so change others' records too.
    """

    handle: str
    session: str
    proven: str = ""
    operator: bool = False


@dataclass(frozen=True)
class Context:
    """What a command knows beside its request: who asks, under which key, and the time and ids it may use."""

    actor: Actor
    key: str
    now: datetime
    new_id: Callable[[], str]
    deadline: datetime


@dataclass(frozen=True)
class Entity(Generic[S]):
    """One entity as the tables have it: its subject, the sequence of its last fact, its state (None: no fact yet)."""

    subject: str
    sequence: int
    state: S | None


@dataclass(frozen=True)
class Also:
    """A fact that is stored in one step with a conditional one, right before it; `headers` are added to its type.

    `on` makes it conditional too: all are stored only while the last sequence of that entity, of its subject, stands.
    """

    event: Message
    subject: str
    headers: Mapping[str, str] = field(default_factory=dict)
    on: Entity[Any] | None = None


@dataclass(frozen=True)
class Fact:
    """What a command decided: an event to append.

    `on` makes it conditional: it is stored only while that entity's last sequence stands. Without it, the event goes
    to `subject` freely. `answers` is False for a fact that a repeat of the request must not be answered from.
    `also` are up to 999 others: facts of what was brought from elsewhere, or one that keeps this decision apart from
    others that are made at the same moment, and says nothing else. Of what is decided here, one command is one fact.
    """

    event: Message
    on: Entity[Any] | None = None
    subject: str = ""
    answers: bool = True
    also: tuple[Also, ...] = ()

    @property
    def entities(self) -> dict[str, int]:
        """The subjects whose last sequence is expected, and that sequence."""
        entities = [self.on, *(also.on for also in self.also)]
        return {entity.subject: entity.sequence for entity in entities if entity}


@dataclass(frozen=True)
class Done:
    """What a command decided: there is nothing to append, this is the answer."""

    answer: Message


@dataclass(frozen=True)
class Stored:
    """Where and how a fact stands in the log."""

    sequence: int
    subject: str
    key: str
    actor: str
    session: str


@dataclass(frozen=True)
class Command:
    """A write: `load` reads what `decide` needs, `decide` gives a fact, nothing, or a refusal; `answer` tells it.

    `load(tables, request, context)`, `decide(loaded, request, context)`, `answer(event, sequence)`. All three are
    plain functions; the loop around them is the kernel's and is written once. `fresh` makes the first decision wait
    until the tables hold everything stored before the request came, for commands that may answer "nothing there"; as a
    function of the request it says for which of them. With `callers`, only these services may ask; the server of NATS
    vouches for which one does. `then(runtime, event, sequence)` is done before the answer is given: what a reaction
    does as well, should this not come to its end.
    """

    request: type[Message]
    load: Callable[[Tables, Any, Context], Any]
    decide: Callable[[Any, Any, Context], Fact | Done]
    answer: Callable[[Any, int], Message]
    fresh: bool | Callable[[Any], bool] = False
    callers: tuple[str, ...] = ()
    then: Callable[[Runtime, Any, int], Awaitable[None]] | None = None

    def is_fresh(self, request: Message) -> bool:
        """Whether the first decision on `request` waits for fresh tables."""
        return self.fresh if isinstance(self.fresh, bool) else self.fresh(request)


@dataclass(frozen=True)
class Query:
    """A read of the service's own tables: `run(tables, request, context)`. It sees every write before it."""

    request: type[Message]
    run: Callable[[Tables, Any, Context], Message]


@dataclass(frozen=True)
class LogQuery:
    """A read of what only the log has in full: `part` says which part of it, `run` is given that page too."""

    request: type[Message]
    part: Callable[[Tables, Any, Context], Part]
    run: Callable[[Tables, Any, Context, Page], Message]


@dataclass(frozen=True)
class Direct:
    """A request for which tables alone don't do: `run(runtime, request, context)` gives the answer and a fact's place.

    The place is 0 when no fact was appended. It may wait for others. One that reads tables too sees every write before
    it after `await runtime.projector.catch_up()`.
    """

    request: type[Message]
    run: Callable[[Runtime, Any, Context], Awaitable[tuple[Message, int]]]


@dataclass(frozen=True)
class Evolution:
    """How an event changes an entity's state: `evolve(state or None, event)`.

    `seeds` names another subject than the fact's own, whose entity the event founds with sequence 0.
    """

    state: type[Message]
    evolve: Evolve
    seeds: Callable[[Any], str] | None = None


@dataclass(frozen=True)
class Projection:
    """How facts become tables.

    `schemas` make the tables; `filters` are the subjects read; `apply` holds one function an event, `(tables, event,
    stored)`; `erased` gives the room that an event erases. Then `room_tables`, which have a `room_id` column, lose its
    rows at once. `swept_tables` may have very many, which go in steps; each has an index that begins with `room_id`,
    and its key is given here. Nothing may find their rows but by the room's own row, since after it is gone they count
    as gone. `tidy(tables, first)` is called step by step after that, until it returns False. `owner` is the service
    whose facts answer repeats of its commands; those of others are not remembered for that. Empty: all.
    """

    schemas: tuple[Path, ...]
    version: int
    filters: tuple[str, ...]
    apply: Mapping[type[Message], Callable[[Tables, Any, Stored], None]]
    entities: Mapping[type[Message], tuple[Evolution, ...]]
    room_tables: tuple[str, ...] = ()
    swept_tables: Mapping[str, str] = field(default_factory=dict)
    tidy: Callable[[Tables, bool], bool] | None = None
    erased: Mapping[type[Message], Callable[[Any], str]] = field(default_factory=dict)
    feed: bool = True
    owner: str = ""


@dataclass(frozen=True)
class Reaction:
    """What follows from facts: `run(runtime, event, stored)` issues commands, and may be called again for a fact."""

    name: str
    on: tuple[type[Message], ...]
    filters: tuple[str, ...]
    run: Callable[[Runtime, Any, Stored], Awaitable[None]]


@dataclass(frozen=True)
class Service:
    """The table of contents of a service.

    `on_timer(runtime, room, data)` takes due timers; `arm(runtime)` arms every timer that the tables still wait for,
    and is called at start and after each reconnect to NATS, whose timers do not outlive it.
    """

    name: str
    version: str
    projection: Projection | None = None
    commands: tuple[Command, ...] = ()
    queries: tuple[Query | LogQuery, ...] = ()
    direct: tuple[Direct, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    on_timer: Callable[[Runtime, str, bytes], Awaitable[None]] | None = None
    arm: Callable[[Runtime], Awaitable[None]] | None = None
    workers: tuple[Callable[[Runtime], Awaitable[None]], ...] = ()
