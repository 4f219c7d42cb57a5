"""Decisions on the folders into which people sort their own lists of rooms."""

from __future__ import annotations

from dataclasses import dataclass

from mycelium.rooms.v1 import events_pb2, folders_pb2, states_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import speaker
from mycelium_kernel.service import Context, Done, Entity, Fact
from mycelium_rooms.commands_text import NAME_CHARACTERS, line
from mycelium_rooms.model import RoomRow


@dataclass(frozen=True)
class Filing:
    """A room, and the entity of one person's folder for it."""

    room: RoomRow
    entity: Entity[states_pb2.FolderState]


def file_room(loaded: Filing, request: folders_pb2.FileRoomRequest, context: Context) -> Fact | Done:
    """Refused when the caller says not who it is: the folders are its own."""
    handle = speaker(context)
    folder = line("folder", request.folder, NAME_CHARACTERS)
    if folder == (loaded.entity.state.folder if loaded.entity.state else ""):
        return Done(folders_pb2.FileRoomResponse(folder=folder))
    event = events_pb2.FolderSet(
        room_id=loaded.room.id, handle=handle, folder=folder, set_at=clock.to_timestamp(context.now)
    )
    return Fact(event, on=loaded.entity)


def answer_file(event: events_pb2.FolderSet, _sequence: int) -> folders_pb2.FileRoomResponse:
    return folders_pb2.FileRoomResponse(folder=event.folder)
