"""Subscriptions: who is woken by changes of which documents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.memory.v1 import subscriptions_pb2
from mycelium_gateway import problems, shapes_memory
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer, done
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import subscriptions as schemas
from mycelium_gateway.shapes import page

router = APIRouter(prefix="/api/rooms/{room}/subscriptions", tags=["memory"], route_class=PlainRoute)
CHANGING = ("room.not_found", "handle.mismatch", *problems.WRITING)
Pattern = Annotated[str, Query(description="The pattern, as it was given.", examples=["decisions/*"])]
Handle = Annotated[str, Query(description="Whose; without it, the caller's.")]


@router.get(
    "",
    response_model=schemas.SubscriptionPage,
    summary="List the changes that wake a handle",
    responses=problems.responses("room.not_found", "handle.missing"),
)
async def list_subscriptions(room: str, call: Caller, handle: Handle = "") -> Response:
    request = subscriptions_pb2.ListSubscriptionsRequest(room=room, handle=handle)
    reply = await call.ask(request, subscriptions_pb2.ListSubscriptionsResponse)
    return answer(page([shapes_memory.subscription(view) for view in reply.message.subscriptions]))


@router.put(
    "",
    status_code=201,
    response_model=schemas.Subscription,
    summary="Be woken by changes of documents",
    description="Each change of a document whose key matches is delivered like a mention, by `await`, with the reason "
    "`changed`; one's own are not. It is kept until it is ended. 200 when it was there before.",
    responses={
        200: {"model": schemas.Subscription, "description": "It was there before."},
        **problems.responses("handle.unregistered", *CHANGING),
    },
)
async def subscribe(room: str, body: schemas.NewSubscription, call: Caller) -> Response:
    request = subscriptions_pb2.SubscribeRequest(room=room, pattern=body.pattern)
    reply = await call.named(body.handle).ask(request, subscriptions_pb2.SubscribeResponse)
    status = 200 if reply.message.stood else 201
    return answer(shapes_memory.subscription(reply.message.subscription), status, sequence=reply.sequence)


@router.delete(
    "",
    status_code=204,
    summary="End a subscription",
    description="What was queued before is still delivered.",
    responses=problems.responses("subscription.not_found", *CHANGING),
)
async def unsubscribe(room: str, pattern: Pattern, call: Caller) -> Response:
    request = subscriptions_pb2.UnsubscribeRequest(room=room, pattern=pattern)
    return done((await call.named(None).ask(request, subscriptions_pb2.UnsubscribeResponse)).sequence)
