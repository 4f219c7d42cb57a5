"""A hub of rooms in memory: commands run through their own load, decide and projection, with time and ids in hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import events, headers, subjects
from mycelium_kernel.applier import Applier
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Command, Context, Done, Fact, LogQuery, Query
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import Page, Part, RawFact
from mycelium_rooms.presence import Presences
from mycelium_rooms.service import PROJECTION, service
from mycelium_rooms.waits import Waits

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
AGENT, USER, ENGINE = views_pb2.MEMBER_KIND_AGENT, views_pb2.MEMBER_KIND_USER, views_pb2.MEMBER_KIND_ENGINE


def rows_of(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that counts, and the words of each message that is left."""
    rows = tables.dump()
    kept = {row[0] for row in rows["message"]}
    rows["message_words"] = [row for row in words_of(tables) if row[1] in kept]
    return rows


def words_of(tables: Tables) -> list[tuple[Any, ...]]:
    """What the index of words holds: each word, the message that it is in, and where."""
    tables.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.word USING fts5vocab(main, message_words, instance)")
    return sorted(tables.all("SELECT term, doc, col, offset FROM temp.word"))


def rebuilt(facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    tables, applier = Tables.open(None, PROJECTION, "log"), Applier(PROJECTION)
    for fact in facts:
        applier.apply(tables, fact)
    return tables


@dataclass
class Hub:
    """Rooms as a service would keep them, driven one request at a time."""

    tables: Tables = field(default_factory=lambda: Tables.open(None, PROJECTION, "log"))
    now: datetime = START
    facts: list[RawFact] = field(default_factory=list)
    ids: int = 0
    monotonic: float = 0.0
    signed_in: dict[str, str] = field(default_factory=dict)  # who has proven who they are, as a user or an agent
    operators: set[str] = field(default_factory=set)  # those of them who run the hub

    def __post_init__(self) -> None:
        self.waits = Waits(lambda: self.monotonic)
        self.presences = Presences(self.waits)
        self.service = service(self.waits, self.presences)
        self.applier = Applier(PROJECTION)
        self.commands: dict[type[Message], Command] = {command.request: command for command in self.service.commands}
        self.queries: dict[type[Message], Query | LogQuery] = {query.request: query for query in self.service.queries}

    def new_id(self) -> str:
        self.ids += 1
        return f"01900000-0000-7000-8000-{self.ids:012x}"

    def context(self, handle: str = "", session: str = "") -> Context:
        actor = Actor(handle, session, self.signed_in.get(handle, ""), handle in self.operators)
        return Context(actor, "", self.now, self.new_id, self.now + timedelta(seconds=10))

    def later(self, **by: float) -> None:
        """Time passes."""
        self.now += timedelta(**by)

    def decide(self, request: Message, handle: str = "", session: str = "") -> Fact | Done:
        """What a command decides, with nothing stored."""
        command, context = self.commands[type(request)], self.context(handle, session)
        return command.decide(command.load(self.tables, request, context), request, context)

    def ask(self, request: Message, handle: str = "", session: str = "") -> Any:
        """Do what a request asks, and answer it."""
        query = self.queries.get(type(request))
        if isinstance(query, LogQuery):
            part = query.part(self.tables, request, self.context(handle, session))
            return query.run(self.tables, request, self.context(handle, session), self.read(part))
        if query:
            return query.run(self.tables, request, self.context(handle, session))
        decision = self.decide(request, handle, session)
        if isinstance(decision, Done):
            return decision.answer
        return self.commands[type(request)].answer(decision.event, self.store(decision))

    def read(self, part: Part) -> Page:
        """A part of the log, as the kernel reads it."""
        begin = tuple(subject.removesuffix(">") for subject in part.filters)
        facts = [fact for fact in self.facts if fact.subject.startswith(begin)]
        wanted = [fact for fact in facts if fact.sequence > part.after]
        return Page(wanted[: part.limit], facts[-1].sequence if facts else 0)

    def store(self, fact: Fact) -> int:
        """Append a fact and apply it, as the log and the projector would."""
        for also in fact.also:
            self._append(also.subject, also.event)
        subject = fact.on.subject if fact.on else fact.subject
        if fact.on:
            lasts = [stored.sequence for stored in self.facts if stored.subject == subject]
            assert fact.on.sequence == (lasts[-1] if lasts else 0), "the entity has moved on"
        return self._append(subject, fact.event)

    def _append(self, subject: str, event: Message) -> int:
        data, kind = event.SerializeToString(), events.type_name(event)
        stored = RawFact(len(self.facts) + 1, subject, kind, data, {headers.TYPE: kind})
        self.facts.append(stored)
        self.applier.apply(self.tables, stored)
        return stored.sequence

    def cost(self, run: Callable[[], object]) -> int:
        """How many steps of SQLite's machine something takes."""
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 10
            return 0

        self.tables._connection.set_progress_handler(step, 10)
        run()
        self.tables._connection.set_progress_handler(None, 0)
        return steps

    def refused(self, slug: str, request: Message, handle: str = "", session: str = "") -> Refusal:
        """The refusal of a request, which must have that slug."""
        with pytest.raises(Refusal) as caught:
            self.ask(request, handle, session)
        assert caught.value.slug == slug
        return caught.value

    def room(self, name: str = "demo", handle: str = "avery", **fields: Any) -> str:
        """Id of a new room."""
        response = self.ask(service_pb2.CreateRoomRequest(name=name, **fields), handle)
        return str(response.room.id)

    def agent(self, *handles: str, room: str = "demo", by: str = "avery", **fields: Any) -> None:
        """New agents of a room."""
        for handle in handles:
            self.ask(service_pb2.SaveMemberRequest(room=room, handle=handle, **fields), by)

    def user(self, handle: str, **fields: Any) -> None:
        """A new user of the hub."""
        self.ask(service_pb2.SaveUserRequest(handle=handle, **fields))

    def leave(self, handle: str, room: str = "demo") -> None:
        """A member leaves."""
        self.ask(service_pb2.RemoveMemberRequest(room=room, handle=handle), "avery")

    def sweep(self) -> None:
        """What is left of deleted rooms goes."""
        sweeper = Sweeper(PROJECTION, self.tables)
        while sweeper.step() or sweeper.tidy():
            pass

    def post(
        self, content: str, handle: str = "avery", session: str = "", room: str = "demo", **fields: Any
    ) -> views_pb2.Message:
        """A new message."""
        request = service_pb2.PostMessageRequest(room=room, content=content, **fields)
        response: service_pb2.PostMessageResponse = self.ask(request, handle, session)
        return response.message

    def take(
        self, handle: str, session: str = "", *, new_call: bool = True, room: str = "demo", **fields: Any
    ) -> service_pb2.TakeDeliveryResponse:
        """One call of a wait."""
        request = service_pb2.TakeDeliveryRequest(room=room, new_call=new_call, **fields)
        response: service_pb2.TakeDeliveryResponse = self.ask(request, handle, session)
        return response

    def mark(
        self,
        message: str,
        handle: str,
        session: str = "",
        state: views_pb2.DeliveryState.ValueType = views_pb2.DELIVERY_STATE_DELIVERED,
        *,
        room: str = "demo",
        seat: str = "",
    ) -> views_pb2.DeliveryState.ValueType:
        """What a session says of a delivery; that it received it, unless told otherwise."""
        request = service_pb2.MarkDeliveryRequest(room=room, message=message, state=state, seat=seat)
        response: service_pb2.MarkDeliveryResponse = self.ask(request, handle, session)
        return response.state

    def receive(self, handle: str, session: str = "", **fields: Any) -> str:
        """Id of the message that a new call gets and receives; empty when nothing came."""
        taken = self.take(handle, session, **fields)
        if taken.message_id:
            place = {name: fields[name] for name in ("room", "seat") if name in fields}
            self.mark(taken.message_id, handle, session, **place)
        return taken.message_id

    def waiting(self, room_id: str, queue: str, wait: str = "w1", gateway: str = "g1") -> None:
        """A wait is open."""
        self.waits._picture.put(f"instance.{gateway}", gateway, self.monotonic)
        self.waits._picture.put(f"{room_id}.{subjects.token(queue)}.{wait}", gateway, self.monotonic)

    def receipts(self, message: str, room: str = "demo") -> dict[str, str]:
        """Each receipt's state by queue, as a word; what stands in the way of a delivery before its state."""
        response = self.ask(service_pb2.ListReceiptsRequest(room=room, message=message), "avery")
        return {
            receipt.handle: views_pb2.MentionState.Name(receipt.mention)[14:].lower()
            if receipt.mention
            else views_pb2.DeliveryState.Name(receipt.state)[15:].lower()
            for receipt in response.receipts
        }


def demo_hub() -> Hub:
    """A hub with the room `demo`, the user avery and the agents engineer and reviewer."""
    hub = Hub()
    hub.user("avery", name="Avery Quinn")
    hub.room()
    hub.agent("engineer", "reviewer")
    return hub


def states(mentions: Any) -> dict[str, str]:
    """Each mention's state by handle, as a word."""
    return {mention.handle: views_pb2.MentionState.Name(mention.state)[14:].lower() for mention in mentions}
