"""The states that commands decide from, and how each event changes them; the words that commands share.

Pure: nothing here reads a clock, a table or the bus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mycelium.rooms.v1 import events_pb2, issuers_pb2, join_pb2, looks_pb2, states_pb2, views_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import handle_of
from mycelium_kernel.service import Also, Context, Entity

ROOMS = "rooms"  # the service, as its subjects name it
NOTICE, CHANGE = "notice", "change"  # types of messages that services say, and nobody
RESOLVED, EXPIRED = "resolved", "expired"
RoomSettings = events_pb2.RoomCreated | events_pb2.RoomChanged  # both hold all of them
Look = Entity[looks_pb2.LookState]  # how a handle or a person's name looks
ENDED = (views_pb2.DELIVERY_STATE_ACKNOWLEDGED, views_pb2.DELIVERY_STATE_PARKED)


@dataclass(frozen=True)
class RoomRow:
    """A room as commands see it."""

    id: str
    name: str
    private: bool
    created_by: str = ""


def session_of(context: Context) -> str:
    """The session that asks; a caller without one is one session by its handle."""
    return context.actor.session or handle_of(context)


def standing_status(status: str, expires_at: int, now: int) -> str:
    """The status that an event has at a moment: one whose time is over has expired, unless it was resolved before."""
    return EXPIRED if 0 < expires_at <= now and status != RESOLVED else status


def evolve_event(_before: states_pb2.EventState | None, event: events_pb2.EventStatusSet) -> states_pb2.EventState:
    return states_pb2.EventState(status=event.status)


def evolve_import(
    before: states_pb2.ImportState | None, event: events_pb2.FactsImported | events_pb2.RoomImported
) -> states_pb2.ImportState:
    if isinstance(event, events_pb2.FactsImported):
        return states_pb2.ImportState(last=event.last, facts=event.facts)
    return states_pb2.ImportState(last=before.last if before else 0, facts=event.facts, complete=True)


def evolve_folder(_before: states_pb2.FolderState | None, event: events_pb2.FolderSet) -> states_pb2.FolderState:
    return states_pb2.FolderState(folder=event.folder)


def evolve_name(_before: events_pb2.NameState | None, event: object) -> events_pb2.NameState:
    return events_pb2.NameState(room_id=event.room_id if isinstance(event, events_pb2.RoomCreated) else "")


def evolve_room(_before: events_pb2.RoomState | None, event: RoomSettings) -> events_pb2.RoomState:
    return events_pb2.RoomState(room=settled_room(event))


def settled_room(event: RoomSettings) -> views_pb2.Room:
    """A room as the event leaves it."""
    return views_pb2.Room(
        id=event.room_id,
        name=event.name,
        title=event.title,
        private=event.private,
        created_by=event.created_by,
        created_at=event.created_at,
    )


def evolve_user(_before: events_pb2.UserState | None, event: events_pb2.UserSaved) -> events_pb2.UserState:
    return events_pb2.UserState(user=saved_user(event))


def saved_user(event: events_pb2.UserSaved) -> views_pb2.User:
    return views_pb2.User(
        handle=event.handle,
        name=event.name,
        team=event.team,
        created_at=event.created_at,
        updated_at=event.updated_at,
    )


def join_member(before: events_pb2.MemberState | None, event: events_pb2.MemberSaved) -> events_pb2.MemberState:
    added_by = event.saved_by if event.joined or before is None else before.added_by
    return events_pb2.MemberState(member=event.member, added_by=added_by)


def leave_member(before: events_pb2.MemberState | None, _event: events_pb2.MemberRemoved) -> events_pb2.MemberState:
    state = events_pb2.MemberState()
    if before:
        state.CopyFrom(before)
    state.left = True
    return state


def evolve_proof(_before: issuers_pb2.ProofState | None, event: issuers_pb2.HandleProven) -> issuers_pb2.ProofState:
    return issuers_pb2.ProofState(issuer=event.issuer)


def evolve_look(_before: looks_pb2.LookState | None, event: looks_pb2.LookTaken) -> looks_pb2.LookState:
    return looks_pb2.LookState(taken_at=event.taken_at)


def taking(looks: Iterable[Look], context: Context) -> tuple[Also, ...]:
    """What is stored with a decision by which somebody is called so: of two at once, one is judged after the other."""
    event = looks_pb2.LookTaken(taken_at=clock.to_timestamp(context.now))
    by_subject = {look.subject: look for look in looks}
    return tuple(Also(event, look.subject, on=look) for look in by_subject.values())


def may_act(member: views_pb2.Member, handle: str) -> bool:
    """Whether a handle may act for a member: its own, its owner's, or one that it lets."""
    return handle in {member.handle, member.owner, *member.allow_from}


def make_join_code(_before: join_pb2.JoinState | None, event: join_pb2.JoinCodeMade) -> join_pb2.JoinState:
    return join_pb2.JoinState(
        code_digest=event.code_digest, expires_at=event.expires_at, made_by=event.made_by, proven=event.proven
    )


def use_join_code(before: join_pb2.JoinState | None, event: join_pb2.JoinCodeUsed) -> join_pb2.JoinState:
    state = join_pb2.JoinState()
    if before:
        state.CopyFrom(before)
    state.used_by = event.request_digest
    return state


def evolve_queue(before: events_pb2.QueueState | None, _event: object) -> events_pb2.QueueState:
    return events_pb2.QueueState(facts=(before.facts if before else 0) + 1)
