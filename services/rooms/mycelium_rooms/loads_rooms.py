"""Reads what decisions on rooms, users and members need."""

from __future__ import annotations

from mycelium.rooms.v1 import events_pb2, folders_pb2, issuers_pb2, service_pb2, states_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.callers import handle_of, speaker
from mycelium_kernel.service import Context, Entity
from mycelium_kernel.tables import Tables
from mycelium_rooms import looks, lookup
from mycelium_rooms.commands_folders import Filing
from mycelium_rooms.commands_people import Membership, Person
from mycelium_rooms.commands_rooms import Named, Settings
from mycelium_rooms.model import ROOMS, RoomRow


def for_create_room(
    tables: Tables, request: service_pb2.CreateRoomRequest, _context: Context
) -> Entity[events_pb2.NameState]:
    return name_of(tables, names.room_name(request.name))


def name_of(tables: Tables, name: str) -> Entity[events_pb2.NameState]:
    """The entity of a room's name."""
    return tables.entity(subjects.room_name(names.fold_room_name(name)), events_pb2.NameState)


def for_change_room(tables: Tables, request: service_pb2.ChangeRoomRequest, context: Context) -> Settings:
    room = lookup.find_room(tables, request.room, context)
    handle = handle_of(context)
    is_member = handle == room.created_by != "" or lookup.is_member(tables, room, handle)
    return Settings(room, tables.entity(settings_subject(room.id), events_pb2.RoomState), is_member)


def settings_subject(room_id: str) -> str:
    """Subject of a room's settings."""
    return subjects.fact(ROOMS, room_id, "room", room_id)


def for_delete_room(tables: Tables, request: service_pb2.DeleteRoomRequest, context: Context) -> Named:
    room = lookup.find_room(tables, request.room, context)
    return Named(room, name_of(tables, room.name), lookup.is_member(tables, room, handle_of(context)))


def for_file_room(tables: Tables, request: folders_pb2.FileRoomRequest, context: Context) -> Filing:
    room = lookup.find_room(tables, request.room, context)
    subject = subjects.fact(ROOMS, room.id, "folder", speaker(context))
    return Filing(room, tables.entity(subject, states_pb2.FolderState))


def for_save_user(tables: Tables, request: service_pb2.SaveUserRequest, context: Context) -> Person:
    handle = names.handle(request.handle)
    is_agent, agent_room = looks.where_agent(tables, handle, context)
    subject = subjects.fact(ROOMS, subjects.HUB, "user", handle)
    entity = tables.entity(subject, events_pb2.UserState)
    alike = None if entity.state else looks.like_user(tables, handle, context)
    called = [looks.look_of(tables, name) for name in (handle, request.name.strip()) if name]
    named_alike = looks.like_name(tables, request.name, handle)
    return Person(entity, is_agent, agent_room, alike, named_alike, tuple(called))


def for_prove(
    tables: Tables, request: issuers_pb2.ProveHandleRequest, _context: Context
) -> Entity[issuers_pb2.ProofState]:
    subject = subjects.fact(ROOMS, subjects.HUB, "proof", names.handle(request.handle))
    return tables.entity(subject, issuers_pb2.ProofState)


def for_save_member(tables: Tables, request: service_pb2.SaveMemberRequest, context: Context) -> Membership:
    return membership(tables, lookup.find_room(tables, request.room, context), request.handle)


def for_remove_member(tables: Tables, request: service_pb2.RemoveMemberRequest, context: Context) -> Membership:
    return membership(tables, lookup.find_room(tables, request.room, context), request.handle)


def membership(tables: Tables, room: RoomRow, text: str) -> Membership:
    """A handle in a room: its record, and who has the handle otherwise."""
    handle = names.handle(text)
    entity = tables.entity(subjects.fact(ROOMS, room.id, "member", handle), events_pb2.MemberState)
    present = entity.state is not None and not entity.state.left
    near = [] if present else lookup.near_members(tables, room, handle)
    alike = None if entity.state else looks.like_member(tables, room, handle)
    has_spoken = entity.state is None and lookup.has_spoken(tables, room, handle)
    look = looks.look_of(tables, handle)
    return Membership(room, entity, lookup.is_user(tables, handle), near, look, alike, has_spoken)
