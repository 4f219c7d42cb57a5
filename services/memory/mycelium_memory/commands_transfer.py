"""Decisions on documents that come from another hub: every version is checked as if it were written here.

A bundle may have been written by anybody, so whatever a command would have refused here is refused, and what documents
link to is found anew. Versions, authors, times and threads stay; each version says that it was brought.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mycelium.memory.v1 import events_pb2, transfer_pb2, views_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import RoomRow
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Also, Context, Done, Entity, Fact
from mycelium_memory import commands_content, keys
from mycelium_memory.model import remove, subject, write

FACTS, FACTS_BYTES = 200, 4 * 1024 * 1024
MOST = 10**12  # versions, or facts: beyond any that there can be, far from what tables and readers of JSON can't count
MOVE = re.compile(r"[a-z_]{1,32}")
IMPORTED = "Myc-Imported"  # header of a fact that was brought: its sequence on the hub that it comes from
WRITTEN = events_pb2.DocumentWritten.DESCRIPTOR.full_name
REMOVED = events_pb2.DocumentRemoved.DESCRIPTOR.full_name
Event = events_pb2.DocumentWritten | events_pb2.DocumentRemoved


@dataclass(frozen=True)
class Importing:
    """A room that is being imported, its import's entity, and the documents that the request brings versions of."""

    room: RoomRow
    is_hidden: bool
    entity: Entity[events_pb2.DocumentsImportState]
    documents: Mapping[str, events_pb2.DocumentState | None] = field(default_factory=dict)  # by subject


def import_documents(loaded: Importing, request: transfer_pb2.ImportDocumentsRequest, context: Context) -> Fact | Done:
    """Refused whole for a fact that can't be let in. What was brought before is left out, so a repeat is free."""
    if not loaded.is_hidden:
        raise not_importing(loaded.room.id)
    if len(request.facts) > FACTS or request.ByteSize() > FACTS_BYTES:
        raise Refusal("request.invalid", f"at most {FACTS} facts and {FACTS_BYTES:,} bytes are brought in one step")
    state = loaded.entity.state or events_pb2.DocumentsImportState()
    last, brought, documents = state.last, [], dict(loaded.documents)
    for fact in request.facts:
        if fact.sequence <= last:
            continue
        event = _unpacked(fact, loaded.room, documents)
        brought.append(Also(event, subject(loaded.room.id, keys.fold(event.key)), {IMPORTED: str(fact.sequence)}))
        last = fact.sequence
    if not brought:
        return Done(transfer_pb2.ImportDocumentsResponse(last=last, facts=state.facts))
    step = events_pb2.DocumentsImported(
        room_id=loaded.room.id,
        last=last,
        facts=state.facts + len(brought),
        imported_at=clock.to_timestamp(context.now),
    )
    return Fact(step, on=loaded.entity, also=tuple(brought))


def answer_import(event: events_pb2.DocumentsImported, _sequence: int) -> transfer_pb2.ImportDocumentsResponse:
    return transfer_pb2.ImportDocumentsResponse(last=event.last, facts=event.facts)


def not_importing(room_id: str) -> Refusal:
    """The refusal of a step of an import that is over, or never was."""
    return Refusal("room.not_found", f"no room {room_id[:36]!r} is being imported", next="mycelium room import FILE")


def read(fact: transfer_pb2.DocumentFact) -> Event:
    """The event of a fact that has arrived. Refused when it is none that travels, or can't be read."""
    kinds: dict[str, type[Event]] = {WRITTEN: events_pb2.DocumentWritten, REMOVED: events_pb2.DocumentRemoved}
    if fact.type not in kinds:
        raise Refusal("room.import_refused", f"the bundle holds a fact of the type {fact.type[:80]!r}, unknown here")
    try:
        return kinds[fact.type].FromString(fact.data)
    except Exception:  # protobuf's own error has no public place in its pure parts
        raise Refusal("room.import_refused", f"fact {fact.sequence} of the bundle can't be read") from None


def _unpacked(
    fact: transfer_pb2.DocumentFact, room: RoomRow, documents: dict[str, events_pb2.DocumentState | None]
) -> Event:
    """The event as one of its new room; `documents` moves on with it."""
    event = read(fact)
    try:
        _need(keys.check(event.key) == event.key, "a key that is not as it is kept")
        of = subject(room.id, keys.fold(event.key))
        before = documents.get(of)
        _need((before.version if before else 0) < event.version <= MOST, "a version out of order")
        if isinstance(event, events_pb2.DocumentWritten):
            _check_version(event, before)
            documents[of] = write(before, event)
        else:
            _need(before is not None and before.exists, "the removal of what is not there")
            _check_person(event.removed_by, event.removed_at)
            documents[of] = remove(before, event)
    except Refusal as refusal:
        raise Refusal("room.import_refused", f"fact {fact.sequence} of the bundle: {refusal.detail}") from None
    event.room_id, event.room, event.origin = room.id, room.name, views_pb2.ORIGIN_IMPORT
    return event


def _check_version(event: events_pb2.DocumentWritten, before: events_pb2.DocumentState | None) -> None:
    _check_person(event.created_by, event.created_at)
    _check_person(event.updated_by, event.updated_at)
    _need(names.is_id(event.thread), "a thread that is none")
    _need(before is None or before.thread == event.thread, "a document with two threads")
    _need(not event.moved_from or keys.check(event.moved_from) == event.moved_from, "a key that is none")
    if event.HasField("moved"):
        _check_moved(event.moved)
    if event.HasField("replaced"):
        _check_person(event.replaced.updated_by, event.replaced.updated_at)
        _need(event.replaced.version < event.version, "a version that replaces a later one")
    event.content.CopyFrom(commands_content.checked(event.content))


def _check_moved(moved: views_pb2.Moved) -> None:
    _need(moved.sequence <= MOST, "a move of a place that is none")
    _need(MOVE.fullmatch(moved.move) is not None, "a move that is none")
    _check_person(moved.by or "hub", moved.at)


def _check_person(handle: str, at: object) -> None:
    _need(names.handle(handle) == handle, "a handle that is none")
    _need(0 <= clock.to_millis(at) <= clock.LATEST_MS, "a time that is none")  # type: ignore[arg-type]


def _need(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise Refusal("room.import_refused", f"it is {otherwise}")
