"""The state that decisions on reservations are made from: all of a room in one entity, and how each event changes it.

Pure: nothing here reads a clock, a table or the bus.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mycelium.board.v1 import reservations_pb2
from mycelium_board.model import BOARD
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Entity

RESERVATION = "reservation"
ALL = "all"  # patterns that are written differently may mean one path, so a room's reservations are one entity

State = reservations_pb2.ReservationsState
Reservation = reservations_pb2.Reservation


def subject(room_id: str) -> str:
    """Subject of the facts of a room's reservations."""
    return subjects.fact(BOARD, room_id, RESERVATION, ALL)


def known(entity: Entity[State]) -> list[Reservation]:
    """All reservations with their tokens, also those whose time is over when nobody has said so."""
    return _with_tokens(entity.state.reservations if entity.state else (), entity.sequence)


def is_live(reservation: Reservation, now: datetime) -> bool:
    """Whether it stands at this moment. Its end is looked at by everybody, whether or not it was said."""
    return clock.to_millis(reservation.expires_at) > clock.millis(now)


def reserve(before: State | None, event: reservations_pb2.PatternsReserved) -> State:
    """The state after patterns were reserved. Theirs is the token that this fact's sequence is."""
    kept = _kept(before, event.before, [*event.taken, *event.expired])
    return State(reservations=[*kept, *event.reserved])


def renew(before: State | None, event: reservations_pb2.ReservationsRenewed) -> State:
    """The state after renewals."""
    return State(reservations=[*_kept(before, event.before, event.renewed), *event.renewed])


def end(before: State | None, event: reservations_pb2.ReservationsEnded) -> State:
    """The state after ends."""
    return State(reservations=_kept(before, event.before, event.ended))


def _kept(before: State | None, sequence: int, gone: Iterable[Reservation]) -> list[Reservation]:
    over = {(one.token, one.pattern) for one in gone}
    stood = _with_tokens(before.reservations if before else (), sequence)
    return [one for one in stood if (one.token, one.pattern) not in over]


def _with_tokens(reservations: Iterable[Reservation], sequence: int) -> list[Reservation]:
    """A fact can't know its own sequence, so what it made is told it by whoever comes next."""
    found = []
    for one in reservations:
        copy = Reservation()
        copy.CopyFrom(one)
        copy.token = copy.token or sequence
        found.append(copy)
    return found
