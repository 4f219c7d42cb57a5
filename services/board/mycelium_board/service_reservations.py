"""The part of the board's table of contents that reservations are; `service.py` takes it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium_board import commands_reservations as commands
from mycelium_board import expiry, model_reservations, queries_reservations, reactions_reservations
from mycelium_board import loads_reservations as loads
from mycelium_board import projection_reservations as projection
from mycelium_board.model import BOARD
from mycelium_kernel.service import Command, Evolution, Query, Stored
from mycelium_kernel.tables import Tables

SCHEMA = Path(__file__).with_name("schema_reservations.sql")
ROOM_TABLES = ("reservation",)
APPLY: Mapping[type[Message], Callable[[Tables, Any, Stored], None]] = {
    pb.PatternsReserved: projection.reserved,
    pb.ReservationsRenewed: projection.renewed,
    pb.ReservationsEnded: projection.ended,
}
ENTITIES: Mapping[type[Message], tuple[Evolution, ...]] = {
    pb.PatternsReserved: (Evolution(pb.ReservationsState, model_reservations.reserve),),
    pb.ReservationsRenewed: (Evolution(pb.ReservationsState, model_reservations.renew),),
    pb.ReservationsEnded: (Evolution(pb.ReservationsState, model_reservations.end),),
}
OWN = (BOARD,)
COMMANDS = (
    Command(pb.ReserveRequest, loads.for_reserve, commands.reserve, commands.answer_reserve, fresh=True),
    Command(pb.RenewReservationsRequest, loads.for_holder, commands.renew, commands.answer_renew, fresh=True),
    Command(pb.ReleaseReservationsRequest, loads.for_holder, commands.release, commands.answer_release, fresh=True),
    Command(pb.ExpireReservationsRequest, loads.of_itself, commands.expire, commands.answer_expire, callers=OWN),
    Command(
        pb.EndReservationsOfTaskRequest,
        loads.of_itself,
        commands.end_of_task,
        commands.answer_end_of_task,
        fresh=True,
        callers=OWN,
    ),
)
QUERIES = (
    Query(pb.ListReservationsRequest, queries_reservations.list_reservations),
    Query(pb.CheckPathsRequest, queries_reservations.check_paths),
)
REACTIONS = (reactions_reservations.TELLER,)
WORKERS = (expiry.watch_reservations,)
