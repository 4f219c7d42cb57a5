"""Taking part: wait for a mention, say what became of it, respond."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import leases, problems, shapes, threads
from mycelium_gateway.actor import Acting, Call, Caller
from mycelium_gateway.answers import JSON, answer, done
from mycelium_gateway.connection import until_disconnect
from mycelium_gateway.delivery import Taken, read_token
from mycelium_gateway.routes.messages import POSTING
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import delivery as schemas
from mycelium_gateway.schemas.messages import Message
from mycelium_gateway.waits import Wanted
from mycelium_kernel import names, tasks
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms/{room}", tags=["taking part"], route_class=PlainRoute)
TAKING = ("room.not_found", "handle.mismatch", "handle.unregistered", "acting.forbidden")
OUTCOMES = {
    "received": views_pb2.DELIVERY_STATE_DELIVERED,
    "acknowledged": views_pb2.DELIVERY_STATE_ACKNOWLEDGED,
    "parked": views_pb2.DELIVERY_STATE_PARKED,
}


@router.post(
    "/await",
    response_model=schemas.Delivery,
    summary="Wait for the next mention",
    description=(
        "Answers as soon as there is a delivery for the caller's queue, oldest first; 204 when none came in "
        "`timeout_s`. A new call of the same session acknowledges what the session has received.\n\n"
        "Without `confirm` a delivery counts as received once its answer was written: a client that dies before it has "
        "read the answer can lose that delivery, since the session's next call acknowledges it; and where several "
        "gateways answer, a next call over another connection may come before that is known, and be given the delivery "
        "again, marked `redelivered`. Clients should send `confirm: true`, and say `received` by `ack` once they have "
        "read the answer.\n\n"
        "With `lease` the wait is for that task to change hands: claimed, released, expired, resolved, or no longer "
        "waiting. It takes nothing from the queue, and there is nothing to acknowledge. Send the `sequence` of an "
        "answer, or the header `Mycelium-Sequence` of a 204, as the next `since`: nothing between two waits is missed. "
        "Without `since` a task that is closed is refused at once.\n\n"
        "No wait outlives the caller's token: it is answered with 204 when that has run out."
    ),
    responses={
        204: {"description": "Nothing came in time."},
        **problems.responses(
            *TAKING,
            "thread.not_found",
            "task.not_found",
            "task.closed",
            "delivery.not_found",
            "id.ambiguous",
            *problems.WRITING,
        ),
    },
)
async def await_delivery(room: str, body: schemas.Await, call: Acting) -> Response:
    acknowledge, seat = "", names.seat(body.seat)
    if body.ack:
        acknowledge, seat = read_token(body.ack, seat)
    caller = await call.acting(room, body.handle)
    timeout_s = min(body.timeout_s, caller.lasts_s())
    if body.lease:
        if body.task or body.seat:
            raise Refusal(
                "request.invalid", "body.lease: a wait for a task to change hands has no `task` and no `seat`"
            )
        lease = await leases.find(caller, room, body.lease, body.since, body.after)
        if acknowledge:
            await _mark(caller, room, acknowledge, seat, "acknowledged")
        return WaitAnswer(caller, Wanted(room, "", "", "", timeout_s, lease), confirm=body.confirm)
    task = await threads.find(caller, room, body.task)
    wanted = Wanted(room, seat, task, acknowledge, timeout_s)
    return WaitAnswer(caller, wanted, confirm=body.confirm)


class WaitAnswer(Response):
    """The answer that may take an hour. A client that leaves before it has been written has received nothing."""

    def __init__(self, call: Call, wanted: Wanted, *, confirm: bool) -> None:
        super().__init__()
        self._call = call
        self._wanted = wanted
        self._confirm = confirm

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, answer, and remember that the answer was received."""
        waits = self._call.gateway.waits
        left = asyncio.create_task(until_disconnect(receive), name="wait-left")
        waiting = asyncio.create_task(waits.next(self._call, self._wanted), name="wait")
        try:
            await asyncio.wait({left, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                return
            taken = waiting.result()
            if taken is None:
                lease = self._wanted.lease
                await done(lease.since if lease else 0)(scope, receive, send)
            elif await _write(taken, left, send) and not self._confirm and taken.message_id:
                waits.received(self._call, self._wanted.room, taken)
        finally:
            await tasks.end([left, waiting])


async def _write(taken: Taken, left: asyncio.Task[None], send: Send) -> bool:
    """Write the answer; returns whether the client was there to take all of it."""
    body = shapes.encode(taken.body)
    headers = [
        (b"content-type", JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"mycelium-sequence", str(taken.sequence).encode()),
    ]
    await asyncio.sleep(0)  # a disconnection that the loop knows of is seen now
    if left.done():
        return False
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": True})  # returns when the client keeps up
    await asyncio.sleep(0)
    if left.done():
        return False
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return True


@router.post(
    "/ack",
    status_code=204,
    summary="Say what became of a delivery",
    responses=problems.responses(*TAKING, "delivery.not_found", *problems.WRITING),
)
async def acknowledge(room: str, body: schemas.Acknowledgement, call: Acting) -> Response:
    caller = await call.acting(room, body.handle)
    message, seat = read_token(body.ack, names.seat(body.seat))
    if not message:
        return done()
    return done(await _mark(caller, room, message, seat, body.outcome))


async def _mark(caller: Call, room: str, message: str, seat: str, outcome: str) -> int:
    """Tell the rooms service; returns the place of the fact."""
    await caller.gateway.waits.settled(caller.actor)
    request = service_pb2.MarkDeliveryRequest(room=room, message=message, seat=seat, state=OUTCOMES[outcome])
    return (await caller.ask(request, service_pb2.MarkDeliveryResponse)).sequence


@router.post(
    "/respond",
    status_code=201,
    response_model=Message,
    summary="Post a reply",
    description="Only a registered agent or user can. Thread and `reply_to` come from what the session got last.",
    responses=problems.responses(*POSTING, "handle.unregistered"),
)
async def respond(room: str, body: schemas.Reply, call: Caller) -> Response:
    caller = call.named(body.handle)
    await call.gateway.waits.settled(caller.actor)
    request = service_pb2.PostMessageRequest(
        room=room,
        content=body.content,
        thread=await threads.find(caller, room, body.task),
        reply_to=body.reply_to,
        allow_unknown=body.allow_unknown,
        respond=True,
    )
    reply = await caller.ask(request, service_pb2.PostMessageResponse)
    return answer(shapes.message(reply.message.message), 201, sequence=reply.sequence)
