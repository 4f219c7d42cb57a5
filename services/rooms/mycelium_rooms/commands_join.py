"""Decisions on join codes: who may have one made for whom, and that it is used once, in time, by one."""

from __future__ import annotations

import hmac
import shlex
from dataclasses import dataclass
from datetime import timedelta

from mycelium.rooms.v1 import events_pb2, join_pb2, views_pb2
from mycelium_kernel import clock, names
from mycelium_kernel.callers import handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact
from mycelium_rooms.commands_names import check_member_handle
from mycelium_rooms.commands_people import Membership
from mycelium_rooms.model import RoomRow, may_act, taking

GOOD_FOR = timedelta(minutes=10)


@dataclass(frozen=True)
class Coming:
    """Who may get a code, or has one: the membership, and the entity of its codes."""

    membership: Membership
    handle: str
    entity: Entity[join_pb2.JoinState]

    @property
    def room(self) -> RoomRow:
        """The room that is joined."""
        return self.membership.room


def make_join_code(loaded: Coming, request: join_pb2.MakeJoinCodeRequest, context: Context) -> Fact | Done:
    """Refused when the handle is no agent's, or the caller has signed in as somebody who may not act for it."""
    handle, membership = names.handle(request.handle), loaded.membership
    _check_acting(membership, handle, context)
    check_member_handle(membership.entity.state, membership.alike, handle, views_pb2.MEMBER_KIND_AGENT, context)
    _check_agent(membership, handle, context)
    event = join_pb2.JoinCodeMade(
        room_id=loaded.room.id,
        handle=handle,
        code_digest=request.code_digest,
        made_by=handle_of(context),
        made_at=clock.to_timestamp(context.now),
        expires_at=clock.to_timestamp(context.now + GOOD_FOR),
        room=loaded.room.name,
        proven=bool(context.actor.proven),
    )
    return Fact(event, on=loaded.entity)


def _check_agent(membership: Membership, handle: str, context: Context) -> None:
    is_own = context.actor.proven == "user" and handle_of(context) == handle
    if membership.is_user or is_own:
        detail = f"@{handle} is a user of this hub: people sign in, agents join with a code"
        raise Refusal("handle.taken", detail, next="mycelium login")
    if membership.member and membership.member.kind != views_pb2.MEMBER_KIND_AGENT:
        raise Refusal("handle.taken", f"@{handle} is no agent of {membership.room.name!r}; take another handle")


def _check_acting(membership: Membership, handle: str, context: Context) -> None:
    """Where nobody has to sign in, whoever sees the room may."""
    caller, member = handle_of(context), membership.member
    if not context.actor.proven or _may_act(membership, handle, caller):
        return
    if member is None and not membership.is_user:
        create = f"mycelium agent create {handle} --room {shlex.quote(membership.room.name)} --owner {caller}"
        raise Refusal("acting.forbidden", f"@{handle} is no agent of this room yet: make it yours first", next=create)
    detail = f"@{caller} may not act for @{handle}: its record names them neither as owner nor in allow_from"
    raise Refusal("acting.forbidden", detail)


def _may_act(membership: Membership, handle: str, caller: str) -> bool:
    member = membership.member
    return caller == handle or (member is not None and may_act(member, caller))


def answer_make(event: join_pb2.JoinCodeMade, _sequence: int) -> join_pb2.MakeJoinCodeResponse:
    return join_pb2.MakeJoinCodeResponse(
        room_id=event.room_id, room=event.room, handle=event.handle, expires_at=event.expires_at
    )


def use_join_code(loaded: Coming | None, request: join_pb2.UseJoinCodeRequest, context: Context) -> Fact | Done:
    """Refused in one way, whatever is wrong with the code, so that a refusal tells nothing about it."""
    if loaded is None or not _is_good(loaded, request, context):
        raise not_good()
    event = join_pb2.JoinCodeUsed(
        room_id=loaded.room.id,
        handle=loaded.handle,
        token_digest=request.token_digest,
        request_digest=request.request_digest,
        used_at=clock.to_timestamp(context.now),
        room=loaded.room.name,
    )
    is_wanted = not request.handle or names.handle(request.handle) == event.handle
    if not (is_wanted and _is_room(request.room, loaded.room)):
        detail = "the code is another member's than this folder's"
        raise Refusal("join.other_member", detail, next="mycelium join CODE --replace")
    return Fact(event, on=loaded.entity)


def not_good() -> Refusal:
    """The refusal of a code, and of who came too late with a good one."""
    return Refusal("join.refused", "the code is wrong, was used, or is too old: ask for a new one")


def _is_good(loaded: Coming, request: join_pb2.UseJoinCodeRequest, context: Context) -> bool:
    state, member = loaded.entity.state, loaded.membership.member
    if state is None or not hmac.compare_digest(state.code_digest, request.code_digest):
        return False
    is_agent = member is None or member.kind == views_pb2.MEMBER_KIND_AGENT
    if not _may_come(loaded):
        return False
    if state.proven and not _may_act(loaded.membership, loaded.handle, state.made_by):  # not any more
        return False
    in_time = clock.to_timestamp(context.now).ToMilliseconds() < state.expires_at.ToMilliseconds()
    return is_agent and in_time and state.used_by in {"", request.request_digest}


def _may_come(loaded: Coming) -> bool:
    """Whether nobody came since the code was made who is a person of the same handle, or looks the same."""
    made_by = loaded.entity.state.made_by if loaded.entity.state else ""
    return not loaded.membership.is_user and (not loaded.membership.alike or made_by == loaded.handle)


def _is_room(text: str, room: RoomRow) -> bool:
    wanted = text.strip()
    return wanted.lower() in {"", room.id} or names.fold_room_name(wanted) == names.fold_room_name(room.name)


def answer_use(event: join_pb2.JoinCodeUsed, _sequence: int) -> join_pb2.UseJoinCodeResponse:
    return join_pb2.UseJoinCodeResponse(room_id=event.room_id, room=event.room, handle=event.handle)


def register_joined(loaded: Coming | None, request: join_pb2.RegisterJoinedRequest, context: Context) -> Fact | Done:
    """Nothing is to be done for a member, for one that was removed since it joined, nor where it is kept out now."""
    done = Done(join_pb2.RegisterJoinedResponse())
    if loaded is None or loaded.membership.member or loaded.membership.entity.sequence > request.joined:
        return done
    if not _may_come(loaded):
        return Done(join_pb2.RegisterJoinedResponse(refused=True))
    now = clock.to_timestamp(context.now)
    member = views_pb2.Member(handle=loaded.handle, kind=views_pb2.MEMBER_KIND_AGENT, created_at=now, updated_at=now)
    by = loaded.entity.state.made_by if loaded.entity.state else ""
    event = events_pb2.MemberSaved(room_id=loaded.room.id, member=member, joined=True, saved_by=by)
    return Fact(event, on=loaded.membership.entity, also=taking((loaded.membership.look,), context))


def answer_register(_event: events_pb2.MemberSaved, _sequence: int) -> join_pb2.RegisterJoinedResponse:
    return join_pb2.RegisterJoinedResponse()
