"""A board in memory: rooms and documents come as the facts their services would store, requests run one at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_board.service import PROJECTION, service
from mycelium_kernel import clock, events, headers, names, subjects
from mycelium_kernel.applier import Applier
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Command, Context, Done
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def rebuilt(facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    tables, applier = Tables.open(None, PROJECTION, "log"), Applier(PROJECTION)
    for fact in facts:
        applier.apply(tables, fact)
    return tables


@dataclass
class Hub:
    """A board as a service would keep it, with one room, `demo`, and its members."""

    private: bool = False
    tables: Tables = field(default_factory=lambda: Tables.open(None, PROJECTION, "log"))
    now: datetime = START
    facts: list[RawFact] = field(default_factory=list)
    ids: int = 0
    versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.applier = Applier(PROJECTION)
        self.commands: dict[type[Message], Command] = {command.request: command for command in service().commands}
        self.room_id = self.new_id()
        created = rooms_pb2.RoomCreated(room_id=self.room_id, name="demo", private=self.private, created_by="avery")
        self.append(subjects.room_name(names.fold_room_name("demo")), created)
        for handle in ("sec", "builder") if self.private else ("avery", "sec", "builder"):
            self.join(handle)

    def new_id(self) -> str:
        self.ids += 1
        return f"01900000-0000-7000-8000-{self.ids:012x}"

    def later(self, **by: float) -> None:
        """Time passes."""
        self.now += timedelta(**by)

    def context(self, handle: str) -> Context:
        return Context(Actor(handle, handle), "", self.now, self.new_id, self.now + timedelta(seconds=10))

    def ask(self, request: Message, handle: str = "sec") -> Any:
        """Do what a request asks, with what follows from it, and answer it."""
        command, context = self.commands[type(request)], self.context(handle)
        decision = command.decide(command.load(self.tables, request, context), request, context)
        if isinstance(decision, Done):
            return decision.answer
        assert decision.on
        last = max((fact.sequence for fact in self.facts if fact.subject == decision.on.subject), default=0)
        assert decision.on.sequence == last, "the entity has moved on"
        sequence = self.append(decision.on.subject, decision.event)
        return command.answer(decision.event, sequence)

    def append(self, subject: str, event: Message, key: str = "") -> int:
        data, kind = event.SerializeToString(), events.type_name(event)
        kept = {headers.TYPE: kind} | ({headers.KEY: key} if key else {})
        stored = RawFact(len(self.facts) + 1, subject, kind, data, kept)
        self.facts.append(stored)
        self.applier.apply(self.tables, stored)
        return stored.sequence

    def refused(self, slug: str, request: Message, handle: str = "sec") -> Refusal:
        """The refusal of a request, which must have that slug."""
        with pytest.raises(Refusal) as caught:
            self.ask(request, handle)
        assert caught.value.slug == slug
        return caught.value

    # What other services store.

    def join(self, handle: str) -> None:
        member = rooms_views_pb2.Member(handle=handle)
        event = rooms_pb2.MemberSaved(room_id=self.room_id, member=member)
        self.append(subjects.fact("rooms", self.room_id, "member", handle), event)

    def task(
        self,
        key: str,
        body: str = "Do it",
        *,
        move: int = 0,
        moved: memory_views_pb2.Moved | None = None,
        by: str = "avery",
        origin: memory_views_pb2.Origin.ValueType = memory_views_pb2.ORIGIN_CALL,
        **fields: Any,
    ) -> str:
        """A version of a task's document, as it is after a move when that is given; returns the thread."""
        version = self.versions[key] = self.versions.get(key, 0) + 1
        event = memory_pb2.DocumentWritten(
            room_id=self.room_id,
            room="demo",
            key=key,
            version=version,
            created_by="avery",
            updated_by=by,
            origin=origin,
            created_at=clock.to_timestamp(self.now),
            updated_at=clock.to_timestamp(self.now),
            thread=f"01900000-0000-7000-8000-{subjects.digest(key)[:12]}",
        )
        event.content.body = body
        event.content.fields_json = json.dumps(fields) if fields else ""
        if move or moved:
            event.moved.CopyFrom(moved or memory_views_pb2.Moved(sequence=move))
        self.append(self.document(key), event)
        return event.thread

    def remove(self, key: str) -> None:
        self.append(
            self.document(key),
            memory_pb2.DocumentRemoved(room_id=self.room_id, room="demo", key=key, removed_by="avery"),
        )

    def document(self, key: str) -> str:
        """Subject of a document's facts."""
        return subjects.fact("memory", self.room_id, "document", subjects.digest(key))

    # What its users do.

    def claim(self, task: str, by: str = "sec", **fields: Any) -> views_pb2.Claim:
        request = service_pb2.ClaimTaskRequest(room="demo", task=task, **fields)
        response: service_pb2.ClaimTaskResponse = self.ask(request, by)
        return response.claim

    def renew(self, task: str, by: str = "sec", **fields: Any) -> views_pb2.Claim:
        request = service_pb2.RenewClaimRequest(room="demo", task=task, **fields)
        response: service_pb2.RenewClaimResponse = self.ask(request, by)
        return response.claim

    def release(self, task: str, by: str = "sec", **fields: Any) -> None:
        self.ask(service_pb2.ReleaseTaskRequest(room="demo", task=task, **fields), by)

    def resolve(self, task: str, by: str = "sec", **fields: Any) -> service_pb2.MoveTaskResponse:
        response: service_pb2.MoveTaskResponse = self.ask(moving(views_pb2.MOVE_RESOLVED, task, **fields), by)
        return response


def moving(move: views_pb2.Move.ValueType, task: str, **fields: Any) -> service_pb2.MoveTaskRequest:
    """What is asked for a task of `demo`."""
    return service_pb2.MoveTaskRequest(room="demo", task=task, move=move, **fields)
