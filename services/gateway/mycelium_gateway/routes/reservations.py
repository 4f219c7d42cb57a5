"""Reservations of a room: who works on which paths, or on any other thing that has a name."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter
from starlette.responses import Response

from mycelium.board.v1 import reservations_pb2 as pb
from mycelium_gateway import problems
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import reservations as schemas
from mycelium_gateway.shapes import Json, moment

router = APIRouter(prefix="/api/rooms/{room}/reservations", tags=["board"], route_class=PlainRoute)
HOLDING = ("room.not_found", "reservation.none", "lease.lost", "handle.mismatch", *problems.WRITING)


@router.get(
    "",
    response_model=schemas.Reservations,
    summary="Show what is reserved",
    responses=problems.responses("room.not_found"),
)
async def list_reservations(room: str, call: Caller) -> Response:
    found = (await call.ask(pb.ListReservationsRequest(room=room), pb.ListReservationsResponse)).message
    return answer({"room": found.room, "items": [_shown(one) for one in found.reservations], "next": None})


@router.post(
    "",
    status_code=201,
    response_model=schemas.Reserved,
    summary="Reserve paths",
    description="All patterns or none. What the caller has already is answered as it stands. "
    "A pattern that ends in a name means everything below it too; one that ends in a wildcard does not.",
    responses=problems.responses(
        "room.not_found",
        "task.not_found",
        "id.ambiguous",
        "task.closed",
        "reservation.held",
        "reservation.full",
        "handle.unregistered",
        "handle.mismatch",
        *problems.WRITING,
    ),
)
async def reserve(room: str, body: schemas.Reserving, call: Caller) -> Response:
    request = pb.ReserveRequest(
        room=room, patterns=body.patterns, task=body.task or "", ttl_s=body.ttl_s or 0, force=body.force
    )
    reply = await call.named(body.handle).ask(request, pb.ReserveResponse)
    shown = {"items": _own(reply.message.reserved), "taken": [_shown(one) for one in reply.message.taken]}
    return answer(shown, 201, sequence=reply.sequence)


@router.post(
    "/check",
    response_model=schemas.Checked,
    summary="Check paths against what others have reserved",
    description="The caller's own reservations are in nobody's way.",
    responses=problems.responses("room.not_found", "handle.mismatch"),
)
async def check_paths(room: str, body: schemas.Checking, call: Caller) -> Response:
    request = pb.CheckPathsRequest(room=room, paths=body.paths)
    found = (await call.by(body.handle).ask(request, pb.CheckPathsResponse)).message
    items = [
        {
            "path": one.path,
            "pattern": one.reservation.pattern,
            "holder": one.reservation.holder,
            "expires_at": moment(one.reservation.expires_at),
            "task": one.reservation.task or None,
        }
        for one in found.conflicts
    ]
    return answer({"items": items, "more": found.more})


@router.post(
    "/renew",
    response_model=schemas.Renewed,
    summary="Let reservations last longer",
    responses=problems.responses(*HOLDING),
)
async def renew_reservations(room: str, body: schemas.Renewing, call: Caller) -> Response:
    request = pb.RenewReservationsRequest(room=room, held=_held(body.reservations), ttl_s=body.ttl_s or 0)
    reply = await call.named(body.handle).ask(request, pb.RenewReservationsResponse)
    return answer({"items": _own(reply.message.renewed)}, sequence=reply.sequence)


@router.post(
    "/release",
    response_model=schemas.Released,
    summary="Give reservations back",
    responses=problems.responses(*HOLDING),
)
async def release_reservations(room: str, body: schemas.Releasing, call: Caller) -> Response:
    request = pb.ReleaseReservationsRequest(room=room, held=_held(body.reservations), note=body.note)
    reply = await call.named(body.handle).ask(request, pb.ReleaseReservationsResponse)
    return answer({"items": [_shown(one) for one in reply.message.released]}, sequence=reply.sequence)


def _held(named: list[schemas.Named]) -> list[pb.Held]:
    return [pb.Held(pattern=one.pattern, token=one.token or 0) for one in named]


def _own(reservations: Iterable[pb.Reservation]) -> list[Json]:
    return [{**_shown(one), "token": one.token} for one in reservations]


def _shown(one: pb.Reservation) -> Json:
    return {
        "pattern": one.pattern,
        "holder": one.holder,
        "expires_at": moment(one.expires_at),
        "ttl_s": one.ttl_s,
        "task": one.task or None,
        "thread": one.thread or None,
    }
