"""Decisions on rooms that come from another hub: a hidden room, its facts in steps, its end in one way or the other."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mycelium.rooms.v1 import events_pb2, states_pb2, transfer_pb2, views_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import handle_of, speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Also, Context, Done, Entity, Fact
from mycelium_rooms.commands_portable import unpacked
from mycelium_rooms.commands_text import TITLE_CHARACTERS, line
from mycelium_rooms.model import Look, RoomRow, taking

FACTS, FACTS_BYTES = 200, 4 * 1024 * 1024
IMPORTED = "Myc-Imported"  # header of a fact that was brought: its sequence on the hub that it comes from


@dataclass(frozen=True)
class Importing:
    """A room that is being imported, and its import's entity; `users` and `agents` are handles of this hub.

    `known` are the ids of messages that the room has of those which the request brings, `looks` those of its members'
    handles.
    """

    room: RoomRow
    is_hidden: bool
    entity: Entity[states_pb2.ImportState]
    name: Entity[events_pb2.NameState]
    known: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    looks: Mapping[str, Look] = field(default_factory=dict)

    @property
    def state(self) -> states_pb2.ImportState:
        """How far the import is."""
        return self.entity.state or states_pb2.ImportState()


def import_room(
    entity: Entity[events_pb2.NameState], request: transfer_pb2.ImportRoomRequest, context: Context
) -> Fact | Done:
    """Refused to who is neither the operator nor of the room, and for what a new room is refused for."""
    name = names.room_name(request.name)
    if not request.operator:
        handle, of = speaker(context), {request.created_by, *request.members}
        if handle not in of:
            detail = f"@{handle} is neither a member of the room in the bundle nor the hub's operator"
            raise Refusal("room.import_refused", detail)
    if entity.state and entity.state.room_id:
        next_command = f"mycelium room import FILE --name {shlex.quote(name + ' 2')}"
        raise Refusal("room.name_taken", f"a room named {name!r} exists already", next=next_command)
    if not 0 <= clock.to_millis(request.created_at) <= clock.LATEST_MS:
        raise Refusal("room.import_refused", "the bundle says of its room that it was made at no time")
    event = events_pb2.RoomCreated(
        room_id=context.new_id(),
        name=name,
        title=line("title", request.title, TITLE_CHARACTERS),
        private=request.private,
        created_by=names.handle(request.created_by) if request.created_by else "",
        created_at=request.created_at,
        importing=True,
        imported_by=handle_of(context),
        imported_at=clock.to_timestamp(context.now),
    )
    return Fact(event, on=entity)


def answer_import_room(event: events_pb2.RoomCreated, _sequence: int) -> transfer_pb2.ImportRoomResponse:
    return transfer_pb2.ImportRoomResponse(room_id=event.room_id, name=event.name)


def import_facts(loaded: Importing, request: transfer_pb2.ImportFactsRequest, context: Context) -> Fact | Done:
    """Refused whole for a fact that can't be let in. What was brought before is left out, so a repeat is free."""
    _check_hidden(loaded)
    if len(request.facts) > FACTS or request.ByteSize() > FACTS_BYTES:
        raise Refusal("request.invalid", f"at most {FACTS} facts and {FACTS_BYTES:,} bytes are brought in one step")
    last, brought, taken = loaded.state.last, [], set(loaded.known)
    for fact in request.facts:
        if fact.sequence <= last:
            continue
        subject, event = unpacked(fact, loaded.room)
        _check_here(loaded, event, taken)
        brought.append(Also(event, subject, {IMPORTED: str(fact.sequence)}))
        last = fact.sequence
    if not brought:
        return Done(transfer_pb2.ImportFactsResponse(last=last, facts=loaded.state.facts))
    step = events_pb2.FactsImported(
        room_id=loaded.room.id,
        last=last,
        facts=loaded.state.facts + len(brought),
        imported_at=clock.to_timestamp(context.now),
    )
    looks = taking((loaded.looks[handle] for handle in _handles(brought)), context)
    return Fact(step, on=loaded.entity, also=(*looks, *brought))


def _handles(brought: list[Also]) -> list[str]:
    """Of members that are brought."""
    return [also.event.member.handle for also in brought if isinstance(also.event, events_pb2.MemberSaved)]


def _check_here(loaded: Importing, event: Any, taken: set[str]) -> None:
    """A message's id is of one message; a handle is a user's or an agent's, on this hub too."""
    if isinstance(event, events_pb2.MessagePosted):
        if event.message_id in taken:
            raise Refusal("room.import_refused", f"the bundle holds message {event.message_id} twice")
        taken.add(event.message_id)
    if isinstance(event, events_pb2.MemberSaved):
        is_user, handle = event.member.kind == views_pb2.MEMBER_KIND_USER, event.member.handle
        if handle in (loaded.agents if is_user else loaded.users):
            here, there = ("an agent", "a user") if is_user else ("a user", "an agent")
            raise Refusal("room.import_refused", f"@{handle} is {there} in the bundle and {here} on this hub")


def answer_import_facts(event: events_pb2.FactsImported, _sequence: int) -> transfer_pb2.ImportFactsResponse:
    return transfer_pb2.ImportFactsResponse(last=event.last, facts=event.facts)


def finish_import(loaded: Importing, request: transfer_pb2.FinishImportRequest, context: Context) -> Fact | Done:
    """Refused when facts are missing."""
    if loaded.state.complete:
        return Done(transfer_pb2.FinishImportResponse(room_id=loaded.room.id))
    _check_hidden(loaded)
    if loaded.state.facts != request.facts:
        detail = f"{loaded.state.facts:,} of {request.facts:,} facts of the bundle were brought"
        raise Refusal("room.import_refused", detail)
    event = events_pb2.RoomImported(
        room_id=loaded.room.id, facts=loaded.state.facts, imported_at=clock.to_timestamp(context.now)
    )
    return Fact(event, on=loaded.entity)


def answer_finish(event: events_pb2.RoomImported, _sequence: int) -> transfer_pb2.FinishImportResponse:
    return transfer_pb2.FinishImportResponse(room_id=event.room_id)


def abandon_import(loaded: Importing, _request: transfer_pb2.AbandonImportRequest, context: Context) -> Fact | Done:
    """The hidden room is deleted like any other, and so erased. Refused when it is hidden no more."""
    _check_hidden(loaded)
    event = events_pb2.RoomDeleted(
        room_id=loaded.room.id, deleted_by=handle_of(context), deleted_at=clock.to_timestamp(context.now)
    )
    return Fact(event, on=loaded.name)


def answer_abandon(event: events_pb2.RoomDeleted, _sequence: int) -> transfer_pb2.AbandonImportResponse:
    return transfer_pb2.AbandonImportResponse(room_id=event.room_id)


def _check_hidden(loaded: Importing) -> None:
    if not loaded.is_hidden:
        raise not_importing(loaded.room.id)


def not_importing(room_id: str) -> Refusal:
    """The refusal of a step of an import that is over, or never was."""
    return Refusal("room.not_found", f"no room {room_id[:36]!r} is being imported", next="mycelium room import FILE")
