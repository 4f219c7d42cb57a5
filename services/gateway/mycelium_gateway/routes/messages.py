"""Messages of a room: post, page through, show, amend, receipts."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import messages as schemas
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms/{room}/messages", tags=["messages"], route_class=PlainRoute)
POSTING = (
    "room.not_found",
    "thread.not_found",
    "message.not_found",
    "id.ambiguous",
    "content.empty",
    "content.invalid",
    "content.too_large",
    "mention.unknown",
    "handle.mismatch",
    *problems.WRITING,
)


@router.post(
    "",
    status_code=201,
    response_model=schemas.Message,
    summary="Post a message",
    description="The answer says for each mention what became of it.",
    responses=problems.responses(*POSTING),
)
async def post_message(room: str, body: schemas.NewMessage, call: Caller) -> Response:
    request = service_pb2.PostMessageRequest(
        room=room,
        content=body.content,
        message_type=body.message_type,
        thread=body.thread or "",
        reply_to=body.reply_to or "",
        metadata_json=_metadata(body.metadata) if body.metadata else "",
        allow_unknown=body.allow_unknown,
    )
    sender = call.named(body.sender_handle, "sender_handle")
    reply = await sender.ask(request, service_pb2.PostMessageResponse)
    return answer(shapes.message(reply.message.message), 201, sequence=reply.sequence)


def _metadata(metadata: dict[str, Any]) -> str:
    """The metadata as JSON that every reader can take: NaN is none."""
    try:
        return json.dumps(metadata, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise Refusal("request.invalid", f"body.metadata: {error}") from None


@router.get(
    "",
    response_model=schemas.MessagePage,
    summary="Read history, newest first",
    description="The room's channel, or one thread. A page ends at 512 KB; go on with `before`.",
    responses=problems.responses("room.not_found", "thread.not_found", "id.ambiguous"),
)
async def list_messages(room: str, wanted: Annotated[schemas.History, Query()], call: Caller) -> Response:
    request = service_pb2.ListMessagesRequest(
        room=room,
        limit=wanted.limit,
        before=wanted.before,
        since=wanted.since,
        thread=wanted.thread,
    )
    reply = await call.ask(request, service_pb2.ListMessagesResponse)
    older = reply.message.older_before
    page = shapes.page([shapes.message(message) for message in reply.message.messages], older)
    return answer({**page, "older_before": older or None})


@router.get(
    "/{message}",
    response_model=schemas.Message,
    summary="Show a message",
    responses=problems.responses("room.not_found", "message.not_found", "id.ambiguous"),
)
async def get_message(room: str, message: str, call: Caller) -> Response:
    request = service_pb2.GetMessageRequest(room=room, message=message)
    reply = await call.ask(request, service_pb2.GetMessageResponse)
    return answer(shapes.message(reply.message.message))


@router.patch(
    "/{message}",
    response_model=schemas.Message,
    summary="Replace the text of one's own message",
    responses=problems.responses(*POSTING, "message.not_yours"),
)
async def amend_message(room: str, message: str, body: schemas.MessageChange, call: Caller) -> Response:
    sender = call.named(body.sender_handle, "sender_handle")
    request = service_pb2.AmendMessageRequest(
        room=room, message=message, content=body.content, allow_unknown=body.allow_unknown
    )
    amended = await sender.ask(request, service_pb2.AmendMessageResponse)
    shown = service_pb2.GetMessageRequest(room=room, message=amended.message.message_id)
    reply = await sender.ask(shown, service_pb2.GetMessageResponse)
    return answer(shapes.message(reply.message.message), sequence=amended.sequence)


@router.get(
    "/{message}/receipts",
    response_model=schemas.ReceiptPage,
    summary="What became of a message's deliveries",
    responses=problems.responses("room.not_found", "message.not_found", "id.ambiguous"),
)
async def list_receipts(room: str, message: str, call: Caller) -> Response:
    request = service_pb2.ListReceiptsRequest(room=room, message=message)
    reply = await call.ask(request, service_pb2.ListReceiptsResponse)
    return answer(shapes.page([shapes.receipt(receipt) for receipt in reply.message.receipts]))
