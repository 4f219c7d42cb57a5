"""Decisions on who may change what is somebody's, once callers have proven who they are.

Where nobody has to sign in everybody may: a handle is a claim there, and a rule about claims would protect nothing.
"""

from __future__ import annotations

from mycelium.rooms.v1 import events_pb2, views_pb2
from mycelium_kernel.callers import handle_of
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context
from mycelium_rooms.model import RoomRow

State = events_pb2.MemberState


def check_member(room: RoomRow, state: State | None, handle: str, context: Context) -> None:
    """Refuse who may not change a member's record.

    A person's is their own. An agent's or engine's is its own, its owner's, or, when it has none, of who added it. An
    engine signs in nowhere, so the room's creator has it too; and one that was removed is added again by any of them.
    Who runs the hub may change all of them.
    """
    if not context.actor.proven or context.actor.operator or state is None:
        return
    member, caller = state.member, handle_of(context)
    if member.kind == views_pb2.MEMBER_KIND_USER:
        if state.left or caller == handle:
            return
        raise foreign(f"@{handle} alone changes that record, and you are @{caller}")
    owner = member.owner or state.added_by
    allowed = {handle, owner}
    if member.kind == views_pb2.MEMBER_KIND_ENGINE or state.left:
        allowed.add(room.created_by)
    if caller not in allowed:
        raise foreign(f"the record of @{handle} is {_whose(handle, owner)}'s, and you are @{caller}")


def check_removal(room: RoomRow, state: State, handle: str, context: Context) -> None:
    """Refuse who may not remove a member: neither one who may change its record, nor the room's creator."""
    if handle_of(context) != room.created_by:
        check_member(room, state, handle, context)


def check_user(handle: str, context: Context, *, is_there: bool) -> None:
    """Refuse who changes another person's record, and an agent that makes itself a person."""
    caller, proven = handle_of(context), context.actor.proven
    if not proven:
        return
    if is_there and caller != handle and not context.actor.operator:
        raise foreign(f"@{handle} alone changes that record, and you are @{caller}")
    if caller == handle and proven == "agent":
        raise foreign(f"@{handle} signs in as an agent: its record is in its rooms, not among people")


def check_deletion(room: RoomRow, context: Context, *, is_member: bool) -> None:
    """Refuse who did not create the room; one that nobody is known to have created is its members'."""
    _check_keeper(room, context, "to delete", is_member=is_member)


def check_privacy(room: RoomRow, context: Context, *, is_member: bool) -> None:
    """Refuse the same who would hide the room or open it: who joins could else shut all others out, or let them in."""
    _check_keeper(room, context, "to hide or open", is_member=is_member)


def _check_keeper(room: RoomRow, context: Context, what: str, *, is_member: bool) -> None:
    caller = handle_of(context)
    if not context.actor.proven or (caller == room.created_by if room.created_by else is_member):
        return
    whose = f"@{room.created_by}'s" if room.created_by else "its members'"
    raise foreign(f"{room.name!r} is {whose} {what}, and you are @{caller}")


def _whose(handle: str, owner: str) -> str:
    return f"@{owner}" if owner else f"@{handle}"


def foreign(detail: str) -> Refusal:
    """The refusal of who has signed in as somebody else than it takes."""
    return Refusal("record.foreign", detail)
