"""Reads what decisions on reservations need."""

from __future__ import annotations

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium_board import lookup
from mycelium_board.commands_reservations import Reserving
from mycelium_board.model_reservations import State, subject
from mycelium_kernel import rooms_seen
from mycelium_kernel.callers import handle_of
from mycelium_kernel.service import Context
from mycelium_kernel.tables import Tables


def for_reserve(tables: Tables, request: pb.ReserveRequest, context: Context) -> Reserving:
    room = rooms_seen.find_room(tables, request.room, context)
    task = lookup.find_task(tables, room, request.task) if request.task else None
    is_known = rooms_seen.is_registered(tables, room, handle_of(context))
    return Reserving(room, tables.entity(subject(room.id), State), task, is_known)


def for_holder(
    tables: Tables, request: pb.RenewReservationsRequest | pb.ReleaseReservationsRequest, context: Context
) -> Reserving:
    room = rooms_seen.find_room(tables, request.room, context)
    return Reserving(room, tables.entity(subject(room.id), State))


def of_itself(
    tables: Tables, request: pb.ExpireReservationsRequest | pb.EndReservationsOfTaskRequest, _context: Context
) -> Reserving:
    """The room by its id alone: nobody in particular asks."""
    return Reserving(rooms_seen.need(tables, request.room_id), tables.entity(subject(request.room_id), State))
