"""Decisions on claims: take, renew, give back, end when its time is over. One task has one holder at any moment."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_board.model import State, Task, latest, live
from mycelium_kernel import clock, names
from mycelium_kernel.callers import RoomRow, speaker, unregistered
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact

TTL_S = 30 * 60
LEAST_TTL_S = 1
MOST_TTL_S = 7 * 24 * 3600
NAMED, LISTED = 3, 100  # keys of what a task waits for: in the line of a refusal, and in a list
UNBLOCKED = '{"status": "open", "blocked_by": null}'  # who takes a blocked task knows how to go on


@dataclass(frozen=True)
class Holding:
    """A task, its entity, and whether the handle that is to hold it is somebody in the room."""

    room: RoomRow
    task: Task
    entity: Entity[State]
    is_known: bool = True
    waits_for: tuple[str, ...] = ()  # keys of the open tasks that it waits for
    is_gated: bool = False  # whether a task that waits for others can't be claimed


def claim_task(loaded: Holding, request: service_pb2.ClaimTaskRequest, context: Context) -> Fact | Done:
    """Refused while another holds it or it has to wait, unless by force. Its holder gets the claim that stands."""
    by = speaker(context)
    holder = names.handle(request.to) if request.to else by
    if not loaded.is_known:
        raise unregistered(loaded.room.name, holder)
    if loaded.task.is_closed:
        raise closed(loaded)
    held = live(loaded.entity, context.now)
    if held and held.holder == holder:
        claim = _shown(loaded.task.key, loaded.task.thread, held, by)
        claim.waits_for.extend(loaded.waits_for[:LISTED])
        return Done(service_pb2.ClaimTaskResponse(claim=claim))
    if held and held.holder != by and not request.force:
        raise _held(loaded, held)
    if loaded.is_gated and loaded.waits_for and not request.force:
        raise _waiting(loaded)
    lease = _lease(holder, _ttl(request.ttl_s, TTL_S), context.now)
    fields_json = UNBLOCKED if loaded.task.is_blocked else ""
    event = moved(loaded, views_pb2.MOVE_CLAIMED, by, context.now, lease=lease, fields_json=fields_json)
    event.waits_for.extend(loaded.waits_for[:LISTED])
    return Fact(event, on=loaded.entity)


def answer_claim(event: events_pb2.TaskMoved, sequence: int) -> service_pb2.ClaimTaskResponse:
    lease = views_pb2.Lease()
    lease.CopyFrom(event.lease)
    lease.token = sequence
    shown = _shown(event.key, event.thread, lease, event.by)
    shown.taken_from = event.ended.holder if event.HasField("ended") else ""
    shown.waits_for.extend(event.waits_for)
    return service_pb2.ClaimTaskResponse(claim=shown)


def renew_claim(loaded: Holding, request: service_pb2.RenewClaimRequest, context: Context) -> Fact:
    """Refused under a token that is not current, and when the claim is over: somebody else may have begun."""
    by = speaker(context)
    held = proven(loaded, request.token, by, context.now)
    if held is None:
        raise _none(loaded)
    lease = _lease(held.holder, _ttl(request.ttl_s, held.ttl_s), context.now)
    lease.token = held.token
    event = events_pb2.ClaimRenewed(room_id=loaded.room.id, key=loaded.task.key, thread=loaded.task.thread, lease=lease)
    event.at.CopyFrom(clock.to_timestamp(context.now))
    return Fact(event, on=loaded.entity)


def answer_renew(event: events_pb2.ClaimRenewed, _sequence: int) -> service_pb2.RenewClaimResponse:
    return service_pb2.RenewClaimResponse(claim=_shown(event.key, event.thread, event.lease, event.lease.holder))


def release_task(loaded: Holding, request: service_pb2.ReleaseTaskRequest, context: Context) -> Fact:
    """Refused to who does not hold it. Whom the task is for stays as it is."""
    by = speaker(context)
    if proven(loaded, request.token, by, context.now) is None:
        raise _none(loaded)
    return Fact(moved(loaded, views_pb2.MOVE_RELEASED, by, context.now, note=request.note), on=loaded.entity)


def answer_release(event: events_pb2.TaskMoved, _sequence: int) -> service_pb2.ReleaseTaskResponse:
    return service_pb2.ReleaseTaskResponse(key=event.key, thread=event.thread)


def expire_claim(loaded: Holding, request: service_pb2.ExpireClaimRequest, context: Context) -> Fact | Done:
    """Nothing, when another claim stands there by now, or this one was renewed."""
    last = latest(loaded.entity)
    if last is None or last.token != request.token or live(loaded.entity, context.now):
        return Done(service_pb2.ExpireClaimResponse())
    return Fact(moved(loaded, views_pb2.MOVE_EXPIRED, "", context.now), on=loaded.entity)


def answer_expire(_event: events_pb2.TaskMoved, _sequence: int) -> service_pb2.ExpireClaimResponse:
    return service_pb2.ExpireClaimResponse(expired=True)


def proven(loaded: Holding, token: int, by: str, now: datetime) -> views_pb2.Lease | None:
    """The claim that stands, if a token or else the handle proves it; None when nobody holds the task.

    A token that is not current is refused always, whoever shows it: since it was given out, somebody else may have
    held the task.
    """
    held = live(loaded.entity, now)
    if token and (held is None or held.token != token):
        raise _lost(loaded, held)
    if held and not token and held.holder != by:
        raise _held(loaded, held)
    return held


def moved(
    loaded: Holding,
    move: views_pb2.Move.ValueType,
    by: str,
    now: datetime,
    *,
    lease: views_pb2.Lease | None = None,
    fields_json: str = "",
    note: str = "",
) -> events_pb2.TaskMoved:
    """The event of something that was done to a task; the claim before it ends unless it is given again."""
    task = loaded.task
    event = events_pb2.TaskMoved(
        room_id=loaded.room.id,
        room=loaded.room.name,
        key=task.key,
        thread=task.thread,
        title=task.title,
        move=move,
        by=by,
        at=clock.to_timestamp(now),
        lease=lease,
        fields_json=fields_json,
        note=note,
        assignee=task.assignee,
        row_kind=task.kind,
    )
    before = latest(loaded.entity)
    if before and not (lease and lease.token == before.token):
        event.ended.CopyFrom(before)
    return event


def _lease(holder: str, ttl_s: int, now: datetime) -> views_pb2.Lease:
    return views_pb2.Lease(holder=holder, ttl_s=ttl_s, expires_at=clock.to_timestamp(now + timedelta(seconds=ttl_s)))


def _shown(key: str, thread: str, lease: views_pb2.Lease, to: str) -> views_pb2.Claim:
    """A claim as `to` may see it: only its holder is given the token."""
    return views_pb2.Claim(
        key=key,
        thread=thread,
        holder=lease.holder,
        token=lease.token if lease.holder == to else 0,
        expires_at=lease.expires_at,
        ttl_s=lease.ttl_s,
    )


def _ttl(asked_s: int, otherwise_s: int) -> int:
    if not asked_s:
        return otherwise_s
    if not LEAST_TTL_S <= asked_s <= MOST_TTL_S:
        raise Refusal("request.invalid", f"a claim lasts from {LEAST_TTL_S} second to 7 days, not {asked_s:,} seconds")
    return asked_s


def _held(loaded: Holding, held: views_pb2.Lease) -> Refusal:
    until = clock.rfc3339(clock.to_millis(held.expires_at))
    return Refusal(
        "claim.held",
        f"{loaded.task.key} is held by @{held.holder} until {until}",
        next=f"mycelium board --filter in-flight --room {shlex.quote(loaded.room.name)}",
        holder=held.holder,
        expires_at=until,
        **_place(loaded),
    )


def _waiting(loaded: Holding) -> Refusal:
    """The refusal of a task that waits for others, where that is not allowed."""
    keys = loaded.waits_for
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    detail = f"{loaded.task.key} waits for {', '.join(keys[:NAMED])}{more}"
    next_command = f"mycelium board claim {_named(loaded)} --force"
    return Refusal("task.waiting", detail, next=next_command, waits_for=list(keys[:LISTED]), **_place(loaded))


def _place(loaded: Holding) -> dict[str, str]:
    """Which task a claim was refused for, and where its last fact stands: who waits for it goes on from there."""
    return {"task": loaded.task.key, "thread": loaded.task.thread, "sequence": str(loaded.entity.sequence)}


def _lost(loaded: Holding, held: views_pb2.Lease | None) -> Refusal:
    """The refusal of a token that is not current: whoever shows it has not held the task all the time since."""
    now = f"@{held.holder} holds it now" if held else "nobody holds it now"
    next_command = f"mycelium board claim {_named(loaded)}"
    if loaded.task.is_closed:  # a claim would be refused, too
        now, next_command = f"it is {loaded.task.status}", _reopening(loaded)
    extras = {"holder": held.holder} if held else {}
    detail = f"the claim of {loaded.task.key} that this token is of has ended; {now}"
    return Refusal("lease.lost", detail, next=next_command, **extras)


def _none(loaded: Holding) -> Refusal:
    detail = f"nobody holds {loaded.task.key}, so there is no claim to end or renew"
    return Refusal("claim.none", detail, next=f"mycelium board claim {_named(loaded)}")


def closed(loaded: Holding) -> Refusal:
    """The refusal of a task with nothing left to do."""
    return Refusal("task.closed", f"{loaded.task.key} is {loaded.task.status}", next=_reopening(loaded))


def _reopening(loaded: Holding) -> str:
    return f"mycelium memory set {_named(loaded)} -m status=open"


def _named(loaded: Holding) -> str:
    return f"{shlex.quote(loaded.task.key)} --room {shlex.quote(loaded.room.name)}"
