"""Decisions on documents: write a version, remove. The loads beside them read what they are given."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from mycelium.memory.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import RoomRow, speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Entity, Fact
from mycelium_memory import commands_content

State = events_pb2.DocumentState


@dataclass(frozen=True)
class Writing:
    """The room, the key as it was asked for, the document's entity, and what it holds now."""

    room: RoomRow
    key: str
    entity: Entity[State]
    content: views_pb2.Content | None

    @property
    def there(self) -> State | None:
        """The document, if it is there."""
        state = self.entity.state
        return state if state is not None and state.exists else None


def write_document(loaded: Writing, request: service_pb2.WriteDocumentRequest, context: Context) -> Fact:
    """Refused when another version is there than was expected, and for what a document can't hold."""
    there = loaded.there
    if there and there.key != loaded.key:
        raise key_taken(loaded, there)
    if request.HasField("expect"):
        _check_expected(loaded, request.expect)
    if there is None and not (request.HasField("body") or request.HasField("value_json")):
        raise not_found(loaded.room, loaded.key, [])
    content = commands_content.merged(loaded.content if there else None, request)
    return Fact(next_version(loaded, content, views_pb2.ORIGIN_CALL, context), on=loaded.entity)


def next_version(
    loaded: Writing, content: views_pb2.Content, origin: views_pb2.Origin.ValueType, context: Context, by: str = ""
) -> events_pb2.DocumentWritten:
    """What a write comes to, whatever it came from: never older than the version before, in the same thread.

    `by` is who changes it where another service says that, and may be the hub.
    """
    author, there, before = by or speaker(context), loaded.there, loaded.entity.state
    now = clock.not_before(before.updated_at, context.now) if before else clock.to_timestamp(context.now)
    event = events_pb2.DocumentWritten(
        room_id=loaded.room.id,
        room=loaded.room.name,
        key=loaded.key,
        content=content,
        version=(before.version if before else 0) + 1,
        created_by=there.created_by if there else author,
        created_at=there.created_at if there else now,
        updated_by=author,
        updated_at=now,
        thread=before.thread if before else context.new_id(),
        origin=origin,
    )
    if there:
        replaced = views_pb2.Replaced(version=there.version, updated_by=there.updated_by, updated_at=there.updated_at)
        event.replaced.CopyFrom(replaced)
    return event


def answer_write(event: events_pb2.DocumentWritten, sequence: int) -> service_pb2.WriteDocumentResponse:
    return service_pb2.WriteDocumentResponse(document=written(event, sequence))


def written(event: events_pb2.DocumentWritten, sequence: int) -> views_pb2.Document:
    """A document as its fact has it."""
    return views_pb2.Document(
        room_id=event.room_id,
        room=event.room,
        key=event.key,
        content=event.content,
        version=event.version,
        created_by=event.created_by,
        created_at=event.created_at,
        updated_by=event.updated_by,
        updated_at=event.updated_at,
        thread=event.thread,
        replaced=event.replaced if event.HasField("replaced") else None,
        summary=commands_content.summary_of(event.content),
        sequence=sequence,
    )


def remove_document(loaded: Writing, request: service_pb2.RemoveDocumentRequest, context: Context) -> Fact:
    """Refused when it is not there, or at another version than was expected."""
    if loaded.there is None:
        raise not_found(loaded.room, loaded.key, [])
    if request.HasField("expect"):
        _check_expected(loaded, request.expect)
    return Fact(removal(loaded, loaded.there, views_pb2.ORIGIN_CALL, context), on=loaded.entity)


def removal(
    loaded: Writing, there: State, origin: views_pb2.Origin.ValueType, context: Context
) -> events_pb2.DocumentRemoved:
    """What a removal comes to, whatever it came from."""
    return events_pb2.DocumentRemoved(
        room_id=loaded.room.id,
        room=loaded.room.name,
        key=there.key,
        version=there.version + 1,
        removed_by=speaker(context),
        removed_at=clock.not_before(there.updated_at, context.now),
        origin=origin,
    )


def answer_remove(event: events_pb2.DocumentRemoved, _sequence: int) -> service_pb2.RemoveDocumentResponse:
    return service_pb2.RemoveDocumentResponse(key=event.key, version=event.version)


def _check_expected(loaded: Writing, expected: int) -> None:
    """Refused with what is there instead, and by whom."""
    state, there = loaded.entity.state, loaded.there
    if expected == (there.version if there else 0):
        return
    next_command = f"mycelium memory get {shlex.quote(loaded.key)} --room {shlex.quote(loaded.room.name)}"
    if there is None:
        version = str(state.version if state else 0)
        who = f"; @{state.updated_by} removed it (version {version})" if state else ""
        raise Refusal("memory.stale", f"{loaded.key!r} is not there{who}", version="0")
    detail = f"{loaded.key!r} is at version {there.version}, written by @{there.updated_by}, not at {expected}"
    raise Refusal(
        "memory.stale",
        detail if expected else f"{loaded.key!r} is there already, at version {there.version} by @{there.updated_by}",
        next=next_command,
        version=str(there.version),
        updated_by=there.updated_by,
        updated_at=clock.rfc3339(clock.to_millis(there.updated_at)),
    )


def key_taken(loaded: Writing, there: State) -> Refusal:
    """The refusal of a key that a disk may take for another's."""
    return Refusal(
        "memory.key_taken",
        f"{there.key!r} is there already, and a disk may take {loaded.key!r} for the same name; write to {there.key!r}",
        near=[there.key],
    )


def not_found(room: RoomRow, key: str, near: list[str]) -> Refusal:
    """The refusal of a key that names no document."""
    where = shlex.quote(room.name)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    detail = f"there is no memory {key!r} in {room.name!r}{hint}"
    return Refusal("memory.not_found", detail, next=f"mycelium memory ls --room {where}", near=near)


def was_removed(room: RoomRow, key: str, version: int, removed_by: str) -> Refusal:
    """The refusal of a key whose document was removed: what it held can still be read."""
    detail = f"@{removed_by} removed {key!r} in {room.name!r} (version {version})"
    next_command = f"mycelium memory history {shlex.quote(key)} --room {shlex.quote(room.name)}"
    return Refusal("memory.not_found", detail, next=next_command)
