"""A hub of memory in memory: rooms come as the facts that the rooms service would store, requests run one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.message import Message

from mycelium.memory.v1 import service_pb2, views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_kernel import events, headers, names, subjects
from mycelium_kernel.applier import Applier
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Command, Context, Done, Fact, LogQuery, Query
from mycelium_kernel.sweeping import Sweeper
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import Page, Part, RawFact
from mycelium_memory.service import PROJECTION, service

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ROOMS = "rooms"


def rows_of(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that counts."""
    return tables.dump()


def rebuilt(facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    tables, applier = Tables.open(None, PROJECTION, "log"), Applier(PROJECTION)
    for fact in facts:
        applier.apply(tables, fact)
    return tables


@dataclass
class Hub:
    """Memory as a service would keep it."""

    tables: Tables = field(default_factory=lambda: Tables.open(None, PROJECTION, "log"))
    now: datetime = START
    facts: list[RawFact] = field(default_factory=list)
    ids: int = 0

    def __post_init__(self) -> None:
        self.service = service()
        self.applier = Applier(PROJECTION)
        self.commands: dict[type[Message], Command] = {command.request: command for command in self.service.commands}
        self.queries: dict[type[Message], Query | LogQuery] = {query.request: query for query in self.service.queries}

    def new_id(self) -> str:
        self.ids += 1
        return f"01900000-0000-7000-8000-{self.ids:012x}"

    def context(self, handle: str = "") -> Context:
        return Context(Actor(handle, handle), "", self.now, self.new_id, self.now + timedelta(seconds=10))

    def later(self, **by: float) -> None:
        """Time passes."""
        self.now += timedelta(**by)

    def decide(self, request: Message, handle: str = "") -> Fact | Done:
        """What a command decides, with nothing stored."""
        command, context = self.commands[type(request)], self.context(handle)
        return command.decide(command.load(self.tables, request, context), request, context)

    def ask(self, request: Message, handle: str = "avery") -> Any:
        """Do what a request asks, and answer it."""
        query = self.queries.get(type(request))
        if isinstance(query, LogQuery):
            part = query.part(self.tables, request, self.context(handle))
            return query.run(self.tables, request, self.context(handle), self.read(part))
        if query:
            return query.run(self.tables, request, self.context(handle))
        decision = self.decide(request, handle)
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
            self.append(also.subject, also.event)
        subject = fact.on.subject if fact.on else fact.subject
        if fact.on:
            lasts = [stored.sequence for stored in self.facts if stored.subject == subject]
            assert fact.on.sequence == (lasts[-1] if lasts else 0), "the entity has moved on"
        return self.append(subject, fact.event)

    def append(self, subject: str, event: Message) -> int:
        data, kind = event.SerializeToString(), events.type_name(event)
        stored = RawFact(len(self.facts) + 1, subject, kind, data, {headers.TYPE: kind})
        self.facts.append(stored)
        self.applier.apply(self.tables, stored)
        return stored.sequence

    def refused(self, slug: str, request: Message, handle: str = "avery") -> Refusal:
        """The refusal of a request, which must have that slug."""
        with pytest.raises(Refusal) as caught:
            self.ask(request, handle)
        assert caught.value.slug == slug
        return caught.value

    # What the rooms service stores.

    def room(self, name: str = "demo", by: str = "avery", **fields: Any) -> str:
        """Id of a new room."""
        event = rooms_pb2.RoomCreated(room_id=self.new_id(), name=name, created_by=by, **fields)
        self.append(subjects.room_name(names.fold_room_name(name)), event)
        return event.room_id

    def set_private(self, room_id: str, *, private: bool = True) -> None:
        event = rooms_pb2.RoomChanged(room_id=room_id, private=private)
        self.append(subjects.fact(ROOMS, room_id, "room", room_id), event)

    def finish_import(self, room_id: str) -> None:
        event = rooms_pb2.RoomImported(room_id=room_id)
        self.append(subjects.fact(ROOMS, room_id, "import", room_id), event)

    def join(self, room_id: str, handle: str) -> None:
        member = rooms_views_pb2.Member(handle=handle)
        event = rooms_pb2.MemberSaved(room_id=room_id, member=member)
        self.append(subjects.fact(ROOMS, room_id, "member", handle), event)

    def user(self, handle: str) -> None:
        event = rooms_pb2.UserSaved(handle=handle)
        self.append(subjects.fact(ROOMS, subjects.HUB, "user", handle), event)

    def leave(self, room_id: str, handle: str) -> None:
        event = rooms_pb2.MemberRemoved(room_id=room_id, handle=handle)
        self.append(subjects.fact(ROOMS, room_id, "member", handle), event)

    def delete_room(self, room_id: str, name: str = "demo") -> None:
        event = rooms_pb2.RoomDeleted(room_id=room_id)
        self.append(subjects.room_name(names.fold_room_name(name)), event)

    def sweep(self) -> None:
        """What is left of deleted rooms goes."""
        sweeper = Sweeper(PROJECTION, self.tables)
        while sweeper.step() or (sweeper.is_untidy() and sweeper.tidy()):
            pass

    # What its users do.

    def write(self, key: str, body: str | None = None, by: str = "avery", **fields: Any) -> views_pb2.Document:
        """A new version; a field or tag is given as `fields_json`, `tags`."""
        tags = fields.pop("tags", None)
        request = service_pb2.WriteDocumentRequest(room=fields.pop("room", "demo"), key=key, body=body, **fields)
        if tags is not None:
            request.tags.CopyFrom(service_pb2.Tags(tags=tags))
        response: service_pb2.WriteDocumentResponse = self.ask(request, by)
        return response.document

    def remove(self, key: str, by: str = "avery", **fields: Any) -> int:
        """The number of the removal."""
        request = service_pb2.RemoveDocumentRequest(room=fields.pop("room", "demo"), key=key, **fields)
        return int(self.ask(request, by).version)

    def get(self, key: str, by: str = "avery", room: str = "demo") -> views_pb2.Document:
        response: service_pb2.GetDocumentResponse = self.ask(service_pb2.GetDocumentRequest(room=room, key=key), by)
        return response.document

    def was(self, key: str, **which: Any) -> views_pb2.Document:
        """A document as it was."""
        request = service_pb2.GetVersionRequest(room="demo", key=key, **which)
        response: service_pb2.GetVersionResponse = self.ask(request)
        return response.document

    def listed(self, by: str = "avery", **fields: Any) -> list[str]:
        """The keys of a list, page after page."""
        found: list[str] = []
        request = service_pb2.ListDocumentsRequest(room=fields.pop("room", "demo"), **fields)
        while True:
            page = self.ask(request, by)
            found += [document.key for document in page.documents]
            if not page.next:
                return found
            request.cursor = page.next

    def versions(self, key: str, **fields: Any) -> list[views_pb2.Version]:
        request = service_pb2.ListVersionsRequest(room="demo", key=key, **fields)
        return list(self.ask(request).versions)


def demo_hub() -> Hub:
    """A hub with the room `demo`, made by avery."""
    hub = Hub()
    hub.room()
    return hub
