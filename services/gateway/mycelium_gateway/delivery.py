"""Asks the rooms service for deliveries, and the token by which a client names one.

The token is opaque to clients: the message's id, and the seat's name when the queue is a seat's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium.rooms.v1 import service_pb2
from mycelium_gateway import shapes
from mycelium_kernel import names
from mycelium_kernel.bus import TIMEOUT_S
from mycelium_kernel.errors import Refusal

if TYPE_CHECKING:
    from mycelium_gateway.actor import Call
    from mycelium_gateway.waits import Wanted


LEASE = "lease-"  # begins the token of what was in nobody's queue, so that there is nothing to acknowledge


@dataclass(frozen=True)
class Taken:
    """A delivery that was given to the caller, and the answer that says so. Without `message_id` it was in no queue."""

    message_id: str
    seat: str
    sequence: int
    body: shapes.Json


def write_token(message_id: str, seat: str) -> str:
    """The token of a delivery."""
    return f"{message_id}#{seat}" if seat else message_id


def lease_token(move: int) -> str:
    """The token of a notice that a wait for a task has found."""
    return f"{LEASE}{move}"


def read_token(token: str, seat: str) -> tuple[str, str]:
    """Message and seat that a token names; `seat` is the one that the body names, if it names one.

    The message is empty for the token of a notice that was in no queue.
    """
    if token.startswith(LEASE) and token.removeprefix(LEASE).isdecimal():
        return "", seat
    message_id, separator, named = token.strip().partition("#")
    if not names.is_id(message_id) or bool(separator) != bool(named):
        raise Refusal("request.invalid", "body.ack: not a token that await has answered with")
    if seat and named != seat:
        raise Refusal("request.invalid", f"body.ack: the token is not of seat {seat!r}")
    if named and not names.SEAT.fullmatch(named):
        raise Refusal("request.invalid", "body.ack: not a token that await has answered with")
    return message_id, named


async def take_first(call: Call, wanted: Wanted) -> Taken | None:
    """The first ask of a call, which acknowledges what the session has received before.

    A repeat of a call that got its delivery later, by `take_next`, stands under the same key with that other request:
    then that one is what is repeated.
    """
    try:
        return await _take(call, wanted, new_call=True, timeout_s=TIMEOUT_S)
    except Refusal as refusal:
        if refusal.slug != "key.reused":
            raise
    return await _take(call, wanted, new_call=False, timeout_s=TIMEOUT_S)


async def take_next(call: Call, wanted: Wanted, timeout_s: float) -> Taken | None:
    """A later ask of the same call."""
    return await _take(call, wanted, new_call=False, timeout_s=timeout_s)


async def _take(call: Call, wanted: Wanted, *, new_call: bool, timeout_s: float) -> Taken | None:
    request = service_pb2.TakeDeliveryRequest(
        room=wanted.room,
        thread=wanted.thread,
        seat=wanted.seat,
        acknowledge=wanted.acknowledge if new_call else "",
        new_call=new_call,
    )
    # A delivery is given to a session: another one under the same key does not repeat this call.
    step = f"take {call.actor.session}"
    reply = await call.ask(request, service_pb2.TakeDeliveryResponse, step=step, timeout_s=timeout_s)
    taken = reply.message
    if not taken.message_id:
        return None
    shown = service_pb2.GetDeliveryRequest(room=wanted.room, message=taken.message_id, seat=wanted.seat)
    delivery = (await call.ask(shown, service_pb2.GetDeliveryResponse)).message
    body = {
        "message": shapes.message(delivery.message),
        "earlier": [shapes.message(item) for item in delivery.earlier],
        "redelivered": taken.redelivered,
        "reason": shapes.DELIVERY_REASONS[delivery.reason],
        "ack": write_token(taken.message_id, wanted.seat),
        "attempt": taken.attempt,
        "sequence": None,
    }
    return Taken(taken.message_id, wanted.seat, reply.sequence, body)
