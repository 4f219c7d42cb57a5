"""How facts of reservations change the tables: what is reserved, by whom, until when."""

from __future__ import annotations

from collections.abc import Iterable

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium_kernel import clock
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables


def reserved(tables: Tables, event: pb.PatternsReserved, stored: Stored) -> None:
    _drop(tables, event.room_id, [*event.taken, *event.expired])
    _keep(tables, event.room_id, event.reserved, stored.sequence)


def renewed(tables: Tables, event: pb.ReservationsRenewed, _stored: Stored) -> None:
    _keep(tables, event.room_id, event.renewed, 0)


def ended(tables: Tables, event: pb.ReservationsEnded, _stored: Stored) -> None:
    _drop(tables, event.room_id, event.ended)


def _keep(tables: Tables, room_id: str, reservations: Iterable[pb.Reservation], sequence: int) -> None:
    for one in reservations:
        tables.execute(
            "INSERT OR REPLACE INTO reservation VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            room_id, one.pattern, one.token or sequence, one.holder, clock.to_millis(one.expires_at), one.ttl_s,
            one.task, one.thread,
        )  # fmt: skip


def _drop(tables: Tables, room_id: str, reservations: Iterable[pb.Reservation]) -> None:
    for one in reservations:
        tables.execute(
            "DELETE FROM reservation WHERE room_id = ? AND pattern = ? AND token = ?", room_id, one.pattern, one.token
        )
