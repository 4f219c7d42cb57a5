"""Decisions on rooms: create, change, delete. The loads beside them read what they are given."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from mycelium.rooms.v1 import events_pb2, service_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import handle_of, speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact
from mycelium_rooms.commands_owning import check_deletion, check_privacy
from mycelium_rooms.commands_text import TITLE_CHARACTERS, line
from mycelium_rooms.model import RoomRow, settled_room


@dataclass(frozen=True)
class Settings:
    """A room, the entity of its settings, and whether who asks is a member also when the room is private."""

    room: RoomRow
    entity: Entity[events_pb2.RoomState]
    is_member: bool


@dataclass(frozen=True)
class Named:
    """A room and the entity of its name, and whether who asks is a member."""

    room: RoomRow
    entity: Entity[events_pb2.NameState]
    is_member: bool = False


def create_room(
    entity: Entity[events_pb2.NameState], request: service_pb2.CreateRoomRequest, context: Context
) -> Fact | Done:
    """Refused when the name breaks the rules (choose another) or has a room already (use that one)."""
    name = names.room_name(request.name)
    if entity.state and entity.state.room_id:
        next_command = f"mycelium room use {shlex.quote(name)}"
        raise Refusal("room.name_taken", f"a room named {name!r} exists already", next=next_command)
    if request.private:
        speaker(context)  # a private room of nobody would be seen by nobody
    event = events_pb2.RoomCreated(
        room_id=context.new_id(),
        name=name,
        title=line("title", request.title, TITLE_CHARACTERS),
        private=request.private,
        created_by=handle_of(context),
        created_at=clock.to_timestamp(context.now),
    )
    return Fact(event, on=entity)


def answer_create(event: events_pb2.RoomCreated, _sequence: int) -> service_pb2.CreateRoomResponse:
    return service_pb2.CreateRoomResponse(room=settled_room(event))


def change_room(loaded: Settings, request: service_pb2.ChangeRoomRequest, context: Context) -> Fact | Done:
    """Refused when the room is gone, or would be for who makes it private, or is not theirs to hide or open."""
    state = loaded.entity.state
    if state is None:
        raise _just_deleted(loaded.room)
    room = state.room
    title = line("title", request.title, TITLE_CHARACTERS) if request.HasField("title") else room.title
    private = request.private if request.HasField("private") else room.private
    if (title, private) == (room.title, room.private):
        return Done(service_pb2.ChangeRoomResponse(room=room))
    if private and not room.private and not loaded.is_member:
        raise _would_vanish(loaded.room, speaker(context))
    if private != room.private:
        check_privacy(loaded.room, context, is_member=loaded.is_member)
    event = events_pb2.RoomChanged(
        room_id=room.id,
        title=title,
        private=private,
        changed_by=handle_of(context),
        changed_at=clock.to_timestamp(context.now),
        name=room.name,
        created_by=room.created_by,
        created_at=room.created_at,
    )
    return Fact(event, on=loaded.entity)


def _would_vanish(room: RoomRow, handle: str) -> Refusal:
    return Refusal(
        "handle.unregistered",
        f"@{handle} is not a member of {room.name!r}, and would not see it any more",
        next=f"mycelium agent create {handle} --room {shlex.quote(room.name)}",
    )


def _just_deleted(room: RoomRow) -> Refusal:
    return Refusal("room.not_found", f"Room not found: {room.name!r}", next="mycelium room ls")


def answer_change(event: events_pb2.RoomChanged, _sequence: int) -> service_pb2.ChangeRoomResponse:
    return service_pb2.ChangeRoomResponse(room=settled_room(event))


def delete_room(loaded: Named, _request: service_pb2.DeleteRoomRequest, context: Context) -> Fact | Done:
    """Refused when another call has deleted it already, or it is not the caller's to delete."""
    if loaded.entity.state is None or loaded.entity.state.room_id != loaded.room.id:
        raise _just_deleted(loaded.room)
    check_deletion(loaded.room, context, is_member=loaded.is_member)
    event = events_pb2.RoomDeleted(
        room_id=loaded.room.id,
        deleted_by=handle_of(context),
        deleted_at=clock.to_timestamp(context.now),
    )
    return Fact(event, on=loaded.entity)


def answer_delete(event: events_pb2.RoomDeleted, _sequence: int) -> service_pb2.DeleteRoomResponse:
    return service_pb2.DeleteRoomResponse(room_id=event.room_id)
