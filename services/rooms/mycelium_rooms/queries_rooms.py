"""Reads of rooms, users and members."""

from __future__ import annotations

from collections.abc import Callable

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_kernel.tables import PAGE_BYTES, Tables
from mycelium_rooms import lookup, views
from mycelium_rooms.commands_people import member_not_found
from mycelium_rooms.model import RoomRow
from mycelium_rooms.presence import Presences

PAGE = 200


def get_room(
    presences: Presences,
) -> Callable[[Tables, service_pb2.GetRoomRequest, Context], service_pb2.GetRoomResponse]:
    """The query GetRoom, with what is known of members now."""

    def run(tables: Tables, request: service_pb2.GetRoomRequest, context: Context) -> service_pb2.GetRoomResponse:
        room = lookup.find_room(tables, request.room, context)
        row = tables.one(f"{views.ROOM} WHERE room.room_id = ?2", handle_of(context), room.id)
        page = _members(tables, presences, room, service_pb2.ListMembersRequest(), context)
        shown = views.room(row) if row else None
        return service_pb2.GetRoomResponse(room=shown, members=page.members, next=page.next)

    return run


def list_rooms(
    tables: Tables, request: service_pb2.ListRoomsRequest, context: Context
) -> service_pb2.ListRoomsResponse:
    sql = f"{views.ROOM} WHERE {views.VISIBLE} AND folded > ?2 ORDER BY folded LIMIT ?3"
    rooms = [views.room(row) for row in tables.all(sql, handle_of(context), request.cursor, PAGE + 1)]
    following = names.fold_room_name(rooms[PAGE - 1].name) if len(rooms) > PAGE else ""
    return service_pb2.ListRoomsResponse(rooms=rooms[:PAGE], next=following)


def get_user(tables: Tables, request: service_pb2.GetUserRequest, context: Context) -> service_pb2.GetUserResponse:
    handle = names.handle(request.handle)
    row = tables.one(f"{views.USER} WHERE handle = ?", handle)
    if row is None:
        raise Refusal("user.not_found", f"there is no user @{handle}", next=f"mycelium user create {handle}")
    user = views.user(row)
    for name, agent in tables.all(views.OWNED, handle_of(context), handle):
        user.agents.add(room=name, handle=agent)
    return service_pb2.GetUserResponse(user=user)


def list_users(
    tables: Tables, request: service_pb2.ListUsersRequest, _context: Context
) -> service_pb2.ListUsersResponse:
    sql = f"{views.USER} WHERE handle > ? ORDER BY handle LIMIT ?"
    users = [views.user(row) for row in tables.all(sql, request.cursor, PAGE + 1)]
    following = users[PAGE - 1].handle if len(users) > PAGE else ""
    return service_pb2.ListUsersResponse(users=users[:PAGE], next=following)


def describe_handle(
    tables: Tables, request: service_pb2.DescribeHandleRequest, context: Context
) -> service_pb2.DescribeHandleResponse:
    handle = names.handle(request.handle)
    row = tables.one("SELECT name FROM user WHERE handle = ?", handle)
    if row:
        return service_pb2.DescribeHandleResponse(kind=views_pb2.MEMBER_KIND_USER, name=row[0])
    row = tables.one(views.KIND, handle_of(context), handle)
    return service_pb2.DescribeHandleResponse(kind=row[0] if row and row[0] else views_pb2.MEMBER_KIND_UNSPECIFIED)


def get_member(
    presences: Presences,
) -> Callable[[Tables, service_pb2.GetMemberRequest, Context], service_pb2.GetMemberResponse]:
    """The query GetMember, with what is known of members now."""

    def run(tables: Tables, request: service_pb2.GetMemberRequest, context: Context) -> service_pb2.GetMemberResponse:
        room, handle = lookup.find_room(tables, request.room, context), names.handle(request.handle)
        sql = f"{views.MEMBER} WHERE member.room_id = ? AND member.handle = ? AND has_left = 0"
        row = tables.one(sql, room.id, handle)
        if row is None:
            raise member_not_found(room, handle, lookup.near_members(tables, room, handle))
        member = views.member(row)
        presences.complete(member, room.id, row[4], clock.millis(context.now))
        return service_pb2.GetMemberResponse(member=member)

    return run


def list_members(
    presences: Presences,
) -> Callable[[Tables, service_pb2.ListMembersRequest, Context], service_pb2.ListMembersResponse]:
    """The query ListMembers, with what is known of members now."""

    def run(
        tables: Tables, request: service_pb2.ListMembersRequest, context: Context
    ) -> service_pb2.ListMembersResponse:
        return _members(tables, presences, lookup.find_room(tables, request.room, context), request, context)

    return run


def _members(
    tables: Tables, presences: Presences, room: RoomRow, request: service_pb2.ListMembersRequest, context: Context
) -> service_pb2.ListMembersResponse:
    sql = f"""{views.MEMBER} WHERE member.room_id = ?1 AND has_left = 0 AND member.handle > ?2
              AND (?3 = 0 OR kind = ?3) AND (?4 = '' OR owner = ?4) AND (?5 = '' OR lower(member.team) = lower(?5))
              ORDER BY member.handle"""
    owner = names.handle(request.owner) if request.owner.strip() else ""
    page, size = service_pb2.ListMembersResponse(), 0
    for row in tables.iterate(sql, room.id, request.cursor, request.kind, owner, request.team.strip()):
        member = views.member(row)
        size += member.ByteSize()
        if page.members and size > PAGE_BYTES:
            page.next = page.members[-1].handle
            break
        presences.complete(member, room.id, row[4], clock.millis(context.now))
        page.members.append(member)
    return page
