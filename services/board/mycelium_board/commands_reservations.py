"""Decisions on reservations: take, renew, give back, end. No path is reserved by two at any moment.

All patterns of a request are reserved or none. What is over by the clock is in nobody's way, said or not.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium_board import globs
from mycelium_board.commands_claims import LEAST_TTL_S, MOST_TTL_S, TTL_S
from mycelium_board.model import Task
from mycelium_board.model_reservations import Reservation, State, is_live, known
from mycelium_kernel import clock
from mycelium_kernel.callers import RoomRow, handle_of, speaker, unregistered
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Done, Entity, Fact

MOST_PATTERNS = 20  # of a request
MOST_HELD = 100  # of one holder in a room
MOST = 500  # of a room
MOST_OVER = 100  # that one fact says are over
T = TypeVar("T")


@dataclass(frozen=True)
class Reserving:
    """A room's reservations, the task that some are for, and whether who asks is somebody in the room."""

    room: RoomRow
    entity: Entity[State]
    task: Task | None = None
    is_known: bool = True


def reserve(loaded: Reserving, request: pb.ReserveRequest, context: Context) -> Fact | Done:
    """Refused while another holds anything that overlaps, unless by force. What the caller holds already stands."""
    by = speaker(context)
    if not loaded.is_known:
        raise unregistered(loaded.room.name, by)
    if loaded.task and loaded.task.is_closed:
        opening = _again(loaded, f"memory set {_word(loaded.task.key)} -m status=open")
        raise Refusal("task.closed", f"{loaded.task.key} is {loaded.task.status}", next=opening)
    asked, standing = _patterns(request.patterns), known(loaded.entity)
    live = [one for one in standing if is_live(one, context.now)]
    mine = {one.pattern: one for one in live if one.holder == by}
    new = [pattern for pattern in asked if pattern not in mine]
    in_the_way = _in_the_way(new, [one for one in live if one.holder != by])
    taken = list({(one.token, one.pattern): one for _pattern, one in in_the_way}.values())
    if taken and not request.force:
        raise _held(loaded, in_the_way)
    if not new:
        return Done(pb.ReserveResponse(reserved=[mine[pattern] for pattern in asked]))
    _check_room(loaded, len(live) - len(taken) + len(new), len(mine) + len(new), len(taken))
    event = pb.PatternsReserved(
        room_id=loaded.room.id,
        room=loaded.room.name,
        by=by,
        reserved=_made(new, by, _ttl(request.ttl_s) or TTL_S, loaded.task, context.now),
        standing=[mine[pattern] for pattern in asked if pattern in mine],
        taken=taken,
        expired=[one for one in standing if not is_live(one, context.now)][:MOST_OVER],
        at=clock.to_timestamp(context.now),
        before=loaded.entity.sequence,
    )
    return Fact(event, on=loaded.entity)


def answer_reserve(event: pb.PatternsReserved, sequence: int) -> pb.ReserveResponse:
    response = pb.ReserveResponse(reserved=[*event.standing, *event.reserved], taken=event.taken)
    for one in response.reserved:
        one.token = one.token or sequence
    for one in response.taken:
        one.token = 0
    return response


def renew(loaded: Reserving, request: pb.RenewReservationsRequest, context: Context) -> Fact:
    """Refused, all of it, under a token that is not current or for what the caller does not hold."""
    renewed = _proven(loaded, request.held, speaker(context), context.now)
    for one in renewed:
        one.ttl_s = _ttl(request.ttl_s) or one.ttl_s
        one.expires_at.CopyFrom(clock.to_timestamp(context.now + timedelta(seconds=one.ttl_s)))
    at, before = clock.to_timestamp(context.now), loaded.entity.sequence
    event = pb.ReservationsRenewed(room_id=loaded.room.id, renewed=renewed, at=at, before=before)
    return Fact(event, on=loaded.entity)


def answer_renew(event: pb.ReservationsRenewed, _sequence: int) -> pb.RenewReservationsResponse:
    return pb.RenewReservationsResponse(renewed=event.renewed)


def release(loaded: Reserving, request: pb.ReleaseReservationsRequest, context: Context) -> Fact:
    """Refused as a renewal is."""
    by = speaker(context)
    return _ended(loaded, _proven(loaded, request.held, by, context.now), by, context.now, request.note)


def answer_release(event: pb.ReservationsEnded, _sequence: int) -> pb.ReleaseReservationsResponse:
    return pb.ReleaseReservationsResponse(released=event.ended)


def expire(loaded: Reserving, _request: pb.ExpireReservationsRequest, context: Context) -> Fact | Done:
    """Nothing, when all stand."""
    over = [one for one in known(loaded.entity) if not is_live(one, context.now)]
    if not over:
        return Done(pb.ExpireReservationsResponse())
    return _ended(loaded, over, "", context.now)


def answer_expire(event: pb.ReservationsEnded, _sequence: int) -> pb.ExpireReservationsResponse:
    return pb.ExpireReservationsResponse(expired=len(event.ended))


def end_of_task(loaded: Reserving, request: pb.EndReservationsOfTaskRequest, context: Context) -> Fact | Done:
    """Those that were there when the task was closed: it may be open again by now."""
    over = [
        one
        for one in known(loaded.entity)
        if one.thread == request.thread and one.token < request.closed_by and is_live(one, context.now)
    ]
    if not over:
        return Done(pb.EndReservationsOfTaskResponse())
    return _ended(loaded, over, handle_of(context), context.now)


def answer_end_of_task(event: pb.ReservationsEnded, _sequence: int) -> pb.EndReservationsOfTaskResponse:
    return pb.EndReservationsOfTaskResponse(ended=len(event.ended))


def canonical(text: str) -> str:
    """A pattern as it is kept. Refused when it is none."""
    return _tried(globs.canonical, text)


def _tried(read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise Refusal("request.invalid", f"pattern {text[:60]!r} {error}") from None


def _patterns(texts: Sequence[str]) -> list[str]:
    """What is asked for, each once. Refused when it is nothing, too much, or no pattern."""
    if not 1 <= len(texts) <= MOST_PATTERNS:
        raise Refusal("request.invalid", f"{len(texts)} patterns at once: from 1 to {MOST_PATTERNS} are reserved")
    asked = list(dict.fromkeys(canonical(text) for text in texts))
    for pattern in asked:
        _tried(globs.parse, pattern)
    return asked


def _in_the_way(patterns: Iterable[str], reservations: list[Reservation]) -> list[tuple[str, Reservation]]:
    net = globs.Net([globs.parse(one.pattern) for one in reservations])
    return [(pattern, reservations[number]) for pattern in patterns for number in net.meeting(globs.parse(pattern))]


def _check_room(loaded: Reserving, room: int, holder: int, taken: int) -> None:
    """Refused when so many would stand then in the room, or of the holder, or so many would end by force."""
    if room > MOST or holder > MOST_HELD:
        detail = f"a room has at most {MOST} reservations, {MOST_HELD} of one holder; release some, or reserve a folder"
        raise Refusal("reservation.full", detail, next=_again(loaded, "board reserve"))
    if taken > MOST_OVER:
        raise Refusal("request.invalid", f"that would end {taken} reservations; at most {MOST_OVER} end by force")


def _made(patterns: list[str], holder: str, ttl_s: int, task: Task | None, now: datetime) -> list[Reservation]:
    expires_at = clock.to_timestamp(now + timedelta(seconds=ttl_s))
    key, thread = (task.key, task.thread) if task else ("", "")
    return [
        Reservation(pattern=one, holder=holder, expires_at=expires_at, ttl_s=ttl_s, task=key, thread=thread)
        for one in patterns
    ]


def _proven(loaded: Reserving, held: Sequence[pb.Held], by: str, now: datetime) -> list[Reservation]:
    """The reservations that are named, each once; all of the caller's when none is."""
    live = {one.pattern: one for one in known(loaded.entity) if is_live(one, now)}
    if not held:
        mine = [one for one in live.values() if one.holder == by]
        if not mine:
            detail = f"@{by} has reserved nothing in {loaded.room.name}"
            raise Refusal("reservation.none", detail, next=_again(loaded, "board reserve"))
        return mine
    if len(held) > MOST_HELD:
        raise Refusal("request.invalid", f"{len(held)} reservations at once, at most {MOST_HELD} are allowed")
    named = {canonical(one.pattern): one.token for one in held}
    lost = [pattern for pattern, token in named.items() if token and not _is_current(live.get(pattern), token)]
    if lost:
        raise _lost(loaded, lost, live, by)
    for pattern, token in named.items():
        if not token and (pattern not in live or live[pattern].holder != by):
            who, extras = _now(pattern, live, by)
            detail = f"@{by} has not reserved {pattern}; {who}"
            raise Refusal("reservation.none", detail, next=_again(loaded, f"board reserve {_word(pattern)}"), **extras)
    return [live[pattern] for pattern in named]


def _is_current(found: Reservation | None, token: int) -> bool:
    return found is not None and found.token == token


def _lost(loaded: Reserving, lost: list[str], live: dict[str, Reservation], by: str) -> Refusal:
    """The refusal of tokens that are not current, whoever shows them: others may have had the paths since."""
    who, extras = _now(lost[0], live, by)
    more = f", and {len(lost) - 1} more have" if len(lost) > 1 else " has"
    detail = f"the reservation of {lost[0]} that this token is of{more} ended; {who}"
    next_command = _again(loaded, f"board reserve {_word(lost[0])}")
    return Refusal("lease.lost", detail, next=next_command, lost=lost, **extras)


def _now(pattern: str, live: dict[str, Reservation], by: str) -> tuple[str, dict[str, str]]:
    """Who has a pattern at this moment, or what overlaps it."""
    same = [live[pattern]] if pattern in live else []
    for one in same or [one for _, one in _in_the_way([pattern], list(live.values())) if one.holder != by]:
        return f"@{one.holder} has reserved {one.pattern} now", {"holder": one.holder, "pattern": one.pattern}
    return "nobody has reserved it now", {}


def _ended(loaded: Reserving, over: list[Reservation], by: str, now: datetime, note: str = "") -> Fact:
    event = pb.ReservationsEnded(
        room_id=loaded.room.id,
        room=loaded.room.name,
        by=by,
        ended=over[:MOST_OVER],
        note=note,
        at=clock.to_timestamp(now),
        before=loaded.entity.sequence,
    )
    return Fact(event, on=loaded.entity)


def _ttl(asked_s: int) -> int:
    if asked_s and not LEAST_TTL_S <= asked_s <= MOST_TTL_S:
        detail = f"a reservation lasts from {LEAST_TTL_S} second to 7 days, not {asked_s:,} seconds"
        raise Refusal("request.invalid", detail)
    return asked_s


def _held(loaded: Reserving, in_the_way: list[tuple[str, Reservation]]) -> Refusal:
    """The refusal of what another has reserved: which pattern of whom, and until when."""
    asked, one = in_the_way[0]
    until = clock.rfc3339(clock.to_millis(one.expires_at))
    written = "" if asked == one.pattern else f" as {one.pattern}"
    more = f", and {len(in_the_way) - 1} more" if len(in_the_way) > 1 else ""
    return Refusal(
        "reservation.held",
        f"{asked} is reserved by @{one.holder}{written} until {until}{more}",
        next=_again(loaded, "board reserve"),
        holder=one.holder,
        pattern=one.pattern,
        expires_at=until,
    )


def _word(text: str) -> str:
    return shlex.quote(text)


def _again(loaded: Reserving, words: str) -> str:
    return f"mycelium {words} --room {shlex.quote(loaded.room.name)}"
