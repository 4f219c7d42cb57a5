"""Decisions on users of the hub and on members of rooms."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from mycelium.rooms.v1 import events_pb2, service_pb2, views_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact
from mycelium_rooms import commands_owning
from mycelium_rooms.commands_names import Alike, check_likeness, check_member_handle, check_unspoken, person_name
from mycelium_rooms.commands_text import (
    DESCRIPTION_CHARACTERS,
    NAME_CHARACTERS,
    NOTES_CHARACTERS,
    PATH_CHARACTERS,
    line,
    paragraphs,
)
from mycelium_rooms.model import Look, RoomRow, saved_user, taking

ALLOW_FROM = 100


@dataclass(frozen=True)
class Person:
    """A user's entity, whether an agent or engine somewhere has the handle, and a room where the caller sees that.

    `alike` is for whom the handle can be taken, when it is new; `named_alike` for whom the name can. `looks` are those
    of the handle and of the name that is asked for.
    """

    entity: Entity[events_pb2.UserState]
    is_agent: bool
    agent_room: str = ""
    alike: Alike | None = None
    named_alike: list[Alike] = field(default_factory=list)
    looks: tuple[Look, ...] = ()


@dataclass(frozen=True)
class Membership:
    """A member's entity, its room, whether the handle is a user's, and the room's handles that are like it.

    `alike` is for whom the handle can be taken, when it is new in the room; `has_spoken`, whether somebody has written
    there under it all the same. `look` is that of the handle.
    """

    room: RoomRow
    entity: Entity[events_pb2.MemberState]
    is_user: bool
    near: list[str]
    look: Look
    alike: Alike | None = None
    has_spoken: bool = False

    @property
    def member(self) -> views_pb2.Member | None:
        """The record of a present member."""
        state = self.entity.state
        return state.member if state and not state.left else None


def save_user(loaded: Person, request: service_pb2.SaveUserRequest, context: Context) -> Fact | Done:
    """Refused when the handle can't be one, is an agent's, or (create only) is a user's: take another.

    So is a name that can be taken for somebody else's, and a change of another's record.
    """
    handle = names.handle(request.handle)
    before = loaded.entity.state.user if loaded.entity.state else None
    if before and request.create_only:
        next_command = f"mycelium user show {handle}"
        raise Refusal("handle.taken", f"@{handle} is a user of this hub already", next=next_command)
    commands_owning.check_user(handle, context, is_there=before is not None)
    if not before:
        names.new_handle(handle)
        if loaded.is_agent:
            raise _an_agents(handle, loaded.agent_room)
        check_likeness(loaded.alike, handle, context)
    name = before.name if before else ""
    if request.HasField("name") and request.name.strip() != name:
        name = person_name(request.name, handle, loaded.named_alike)
    team = line("team", request.team, NAME_CHARACTERS) if request.HasField("team") else before.team if before else ""
    if before and (name, team) == (before.name, before.team):
        return Done(service_pb2.SaveUserResponse(user=before))
    now = clock.to_timestamp(context.now)
    event = events_pb2.UserSaved(
        handle=handle,
        name=name,
        team=team,
        created_at=before.created_at if before else now,
        updated_at=now,
        created=before is None,
    )
    is_called = before is None or name != before.name
    return Fact(event, on=loaded.entity, also=taking(loaded.looks if is_called else (), context))


def _an_agents(handle: str, room: str) -> Refusal:
    """Where it is one is told to those who see the room: whoever has signed in under the handle may end that."""
    if not room:
        return Refusal("handle.taken", f"@{handle} is taken on this hub; a user needs another handle")
    next_command = f"mycelium agent rm {handle} --room {shlex.quote(room)}"
    return Refusal("handle.taken", f"@{handle} is an agent of {room!r}; a user needs another handle", next=next_command)


def answer_save_user(event: events_pb2.UserSaved, _sequence: int) -> service_pb2.SaveUserResponse:
    return service_pb2.SaveUserResponse(user=saved_user(event), created=event.created)


def save_member(loaded: Membership, request: service_pb2.SaveMemberRequest, context: Context) -> Fact | Done:
    """Refused when the handle can't be one or belongs to another kind, or when there is no such member to change."""
    handle, before, state = names.handle(request.handle), loaded.member, loaded.entity.state
    if before is None and request.change_only:
        raise not_a_member(loaded, handle)
    kind = request.kind or (before.kind if before else views_pb2.MEMBER_KIND_AGENT)
    _check_kind(kind, handle, loaded)
    check_member_handle(state, loaded.alike, handle, kind, context)
    check_unspoken(handle, kind, context, has_spoken=loaded.has_spoken)
    commands_owning.check_member(loaded.room, state, handle, context)
    _check_engine(kind, request, before)
    now = clock.to_timestamp(context.now)
    member = _changed(before, request, handle, kind)
    if before and member == before:
        return Done(service_pb2.SaveMemberResponse(member=before))
    member.created_at.CopyFrom(before.created_at if before else now)
    member.updated_at.CopyFrom(now)
    event = events_pb2.MemberSaved(
        room_id=loaded.room.id, member=member, joined=before is None, saved_by=handle_of(context)
    )
    is_new = kind != views_pb2.MEMBER_KIND_USER and (before is None or kind != before.kind)
    return Fact(event, on=loaded.entity, also=taking((loaded.look,) if is_new else (), context))


def _check_kind(kind: views_pb2.MemberKind.ValueType, handle: str, loaded: Membership) -> None:
    """One namespace a hub: a handle is a user's or an agent's, never both."""
    if kind not in views_pb2.MemberKind.values():
        raise Refusal("request.invalid", f"kind is {kind}: use agent, user or engine")
    if kind == views_pb2.MEMBER_KIND_USER and not loaded.is_user:
        raise Refusal("user.not_found", f"there is no user @{handle}", next=f"mycelium user create {handle}")
    if kind != views_pb2.MEMBER_KIND_USER and loaded.is_user:
        raise Refusal("handle.taken", f"@{handle} is a user of this hub; an agent needs another handle")


def _check_engine(
    kind: views_pb2.MemberKind.ValueType, request: service_pb2.SaveMemberRequest, before: views_pb2.Member | None
) -> None:
    """An engine is no agent under another name: whoever was written to there would get no answer any more."""
    if not request.engine_kind:
        return
    if kind != views_pb2.MEMBER_KIND_ENGINE or request.engine_kind not in views_pb2.EngineKind.values():
        raise Refusal("request.invalid", "engine_kind is for a member of kind engine: use hello")
    if before and before.kind != views_pb2.MEMBER_KIND_ENGINE:
        raise Refusal("handle.taken", f"@{before.handle} is an agent of this room; an engine needs another handle")


def _changed(
    before: views_pb2.Member | None,
    request: service_pb2.SaveMemberRequest,
    handle: str,
    kind: views_pb2.MemberKind.ValueType,
) -> views_pb2.Member:
    """The record with what the request gives."""
    member = views_pb2.Member()
    if before:
        member.CopyFrom(before)
    member.handle, member.kind = handle, kind
    if request.HasField("description"):
        member.description = paragraphs("description", request.description, DESCRIPTION_CHARACTERS)
    if request.HasField("cwd"):
        member.cwd = line("cwd", request.cwd, PATH_CHARACTERS)
    if request.HasField("adapter"):
        member.adapter = line("adapter", request.adapter, NAME_CHARACTERS)
    if request.HasField("owner"):
        member.owner = names.handle(request.owner) if request.owner.strip() else ""
    if request.HasField("team"):
        member.team = line("team", request.team, NAME_CHARACTERS)
    if request.HasField("notes"):
        member.notes = paragraphs("notes", request.notes, NOTES_CHARACTERS)
    if request.HasField("paused"):
        member.paused = request.paused
    if kind != views_pb2.MEMBER_KIND_ENGINE:
        member.engine_kind = views_pb2.ENGINE_KIND_UNSPECIFIED
    elif request.engine_kind:
        member.engine_kind = request.engine_kind
    if request.set_allow_from or request.add_allow_from:
        kept = list(member.allow_from) if request.add_allow_from else []
        allowed = list(dict.fromkeys([*kept, *map(names.handle, request.allow_from)]))
        if len(allowed) > ALLOW_FROM:
            raise Refusal("request.invalid", f"allow_from has {len(allowed)} handles, at most {ALLOW_FROM} are allowed")
        del member.allow_from[:]
        member.allow_from.extend(allowed)
    return member


def answer_save_member(event: events_pb2.MemberSaved, _sequence: int) -> service_pb2.SaveMemberResponse:
    return service_pb2.SaveMemberResponse(member=event.member, joined=event.joined)


def remove_member(loaded: Membership, request: service_pb2.RemoveMemberRequest, context: Context) -> Fact | Done:
    """Refused when there is no such member, or it is not the caller's to remove."""
    handle, state = names.handle(request.handle), loaded.entity.state
    if loaded.member is None or state is None:
        raise not_a_member(loaded, handle)
    commands_owning.check_removal(loaded.room, state, handle, context)
    event = events_pb2.MemberRemoved(
        room_id=loaded.room.id,
        handle=handle,
        removed_by=handle_of(context),
        removed_at=clock.to_timestamp(context.now),
    )
    return Fact(event, on=loaded.entity)


def answer_remove_member(event: events_pb2.MemberRemoved, _sequence: int) -> service_pb2.RemoveMemberResponse:
    return service_pb2.RemoveMemberResponse(handle=event.handle)


def not_a_member(loaded: Membership, handle: str) -> Refusal:
    """The refusal for a handle that no member of the room has, with those that are like it."""
    return member_not_found(loaded.room, handle, loaded.near)


def member_not_found(room: RoomRow, handle: str, near: list[str]) -> Refusal:
    """The same, for readers."""
    hint = names.did_you_mean(f"@{name}" for name in near)
    next_command = f"mycelium agent ls --room {shlex.quote(room.name)}"
    return Refusal(
        "member.not_found", f"@{handle} is not a member of {room.name!r}{hint}", next=next_command, near=near
    )
