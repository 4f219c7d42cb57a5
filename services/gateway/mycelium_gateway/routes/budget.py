"""What engines may spend on models in a room: the engine service counts, rooms says who may see the room."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TypeVar

from fastapi import APIRouter
from google.protobuf.message import Message
from starlette.responses import Response

from mycelium.engine.v1 import service_pb2
from mycelium.rooms.v1 import service_pb2 as rooms_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import budget as schemas
from mycelium_kernel.bus import Reply
from mycelium_kernel.errors import Refusal, Unavailable

router = APIRouter(prefix="/api/rooms/{room}/budget", tags=["engines"], route_class=PlainRoute)
R = TypeVar("R", bound=Message)
PATIENCE_S = 3.0  # a hub may run no engines at all
PICO = 10**12


@router.get(
    "",
    response_model=schemas.Budget,
    summary="Show what engines have spent on models in a room, and how much they may",
    responses=problems.responses("room.not_found"),
)
async def get_budget(room: str, call: Caller) -> Response:
    request = service_pb2.GetBudgetRequest(room_id=await _room_id(call, room))
    reply = await _ask(call, request, service_pb2.GetBudgetResponse)
    return answer(_shape(reply.message.budget))


@router.patch(
    "",
    response_model=schemas.Budget,
    summary="Set what engines may spend in a room, or count from zero again",
    responses=problems.responses("room.not_found", "key.reused", "store.full"),
)
async def change_budget(room: str, body: schemas.BudgetChange, call: Caller) -> Response:
    limits = {"turns": _limit(body.turns, 1), "tokens": _limit(body.tokens, 1), "pico_usd": _limit(body.usd, PICO)}
    if not body.renew and not any(limits.values()):
        raise Refusal("request.invalid", "body: nothing to change; send turns, tokens, usd or renew")
    request = service_pb2.ChangeBudgetRequest(
        room_id=await _room_id(call, room),
        turns=limits["turns"],
        tokens=limits["tokens"],
        pico_usd=limits["pico_usd"],
        renew=body.renew,
    )
    reply = await _ask(call, request, service_pb2.ChangeBudgetResponse)
    return answer(_shape(reply.message.budget), sequence=reply.sequence)


async def _room_id(call: Call, room: str) -> str:
    """The room's id. Refused like a room that is not there when the caller may not see it."""
    return (await call.ask(rooms_pb2.GetRoomRequest(room=room), rooms_pb2.GetRoomResponse)).message.room.id


async def _ask(call: Call, request: Message, response: type[R]) -> Reply[R]:
    try:
        return await call.ask(request, response, timeout_s=PATIENCE_S)
    except Unavailable as error:
        if type(error) is not Unavailable:
            raise
        where = "`mycelium status` shows whether engines run here"
        raise Unavailable(f"the engine service keeps the budgets, and can't tell: {error}; {where}") from error


def _limit(written: float | str | None, scale: int) -> service_pb2.Limit | None:
    if written is None:
        return None
    if isinstance(written, str):
        return service_pb2.Limit(inherit=written == "hub")
    return service_pb2.Limit(most=math.ceil(Decimal(str(written)) * scale))


def _shape(budget: service_pb2.Budget) -> shapes.Json:
    return {
        "turns": _line(budget.turns),
        "tokens": _line(budget.tokens),
        "usd": _line(budget.pico_usd, PICO),
        "input_tokens": budget.input_tokens,
        "output_tokens": budget.output_tokens,
        "since": shapes.moment(budget.since) if budget.HasField("since") else None,
        "unreported": budget.unreported,
        "lost": budget.lost,
        "unpriced": budget.unpriced,
    }


def _line(line: service_pb2.Line, scale: int = 1) -> shapes.Json:
    def shown(value: int) -> float:
        return value if scale == 1 else value / scale

    limit = shown(line.limit) if line.limit else None
    return {"used": shown(line.used), "limit": limit, "set_by": "room" if line.own else "hub"}
