"""Messages of a room: post, page through, show, amend, receipts."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from mycelium.rooms.v1 import service_pb2, status_pb2
from mycelium_gateway import problems, shapes, threads
from mycelium_gateway.actor import Call, Caller
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
    sender = call.named(body.sender_handle, "sender_handle")
    request = service_pb2.PostMessageRequest(
        room=room,
        content=body.content,
        message_type=body.message_type,
        thread=await threads.find(sender, room, body.thread),
        reply_to=body.reply_to or "",
        metadata_json=_metadata(body.metadata) if body.metadata else "",
        allow_unknown=body.allow_unknown,
    )
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
    description=(
        "The room's channel, one thread, or `all` of it, filtered. A page ends at 512 KB, and earlier when what is "
        "sought lies far back; go on with `before`."
    ),
    responses=problems.responses("room.not_found", "thread.not_found", "id.ambiguous"),
)
async def list_messages(room: str, wanted: Annotated[schemas.History, Query()], call: Caller) -> Response:
    request = service_pb2.ListMessagesRequest(
        room=room,
        limit=wanted.limit,
        before=wanted.before,
        since=wanted.since,
        thread=await threads.find(call, room, wanted.thread),
        sender=wanted.sender,
        kind=wanted.kind,
        status=wanted.status,
        query=wanted.q,
        all=wanted.all,
        zone=wanted.tz,
    )
    reply = await call.ask(request, service_pb2.ListMessagesResponse)
    older = reply.message.older_before
    page = shapes.page([shapes.message(message) for message in reply.message.messages], older)
    return answer({**page, "older_before": older or None})


@router.get(
    "/{message}",
    response_model=schemas.MessageWithHistory,
    summary="Show a message",
    responses=problems.responses("room.not_found", "message.not_found", "id.ambiguous"),
)
async def get_message(
    room: str, message: str, call: Caller, history: Annotated[bool, Query(description="With every text.")] = False
) -> Response:
    request = service_pb2.GetMessageRequest(room=room, message=message, history=history)
    reply = (await call.ask(request, service_pb2.GetMessageResponse)).message
    shown = shapes.message(reply.message)
    return answer({**shown, "history": shapes.texts(reply.history)} if history else shown)


@router.patch(
    "/{message}",
    response_model=schemas.Message,
    summary="Replace the text of one's own message, or set the status of an event",
    responses=problems.responses(*POSTING, "message.not_yours", "event.not_an_event", "event.expired"),
)
async def amend_message(room: str, message: str, body: schemas.MessageChange, call: Caller) -> Response:
    sender = call.named(body.sender_handle, "sender_handle")
    if body.content is not None and body.status is None:
        message_id, sequence = await _amend(sender, room, message, body.content, body.allow_unknown)
    elif body.status is not None and body.content is None:
        message_id, sequence = await _set_status(sender, room, message, body.status)
    else:
        raise Refusal("request.invalid", "body: send content or status, one of them")
    shown = service_pb2.GetMessageRequest(room=room, message=message_id)
    reply = await sender.ask(shown, service_pb2.GetMessageResponse)
    return answer(shapes.message(reply.message.message), sequence=sequence)


async def _amend(sender: Call, room: str, message: str, content: str, allow_unknown: bool) -> tuple[str, int]:
    request = service_pb2.AmendMessageRequest(room=room, message=message, content=content, allow_unknown=allow_unknown)
    reply = await sender.ask(request, service_pb2.AmendMessageResponse)
    return reply.message.message_id, reply.sequence


async def _set_status(sender: Call, room: str, message: str, status: str) -> tuple[str, int]:
    request = status_pb2.SetEventStatusRequest(room=room, message=message, status=status)
    reply = await sender.ask(request, status_pb2.SetEventStatusResponse)
    return reply.message.message_id, reply.sequence


@router.get(
    "/{message}/receipts",
    response_model=schemas.ReceiptPage,
    summary="What became of a message's mentions",
    responses=problems.responses("room.not_found", "message.not_found", "id.ambiguous"),
)
async def list_receipts(room: str, message: str, call: Caller) -> Response:
    request = service_pb2.ListReceiptsRequest(room=room, message=message)
    reply = await call.ask(request, service_pb2.ListReceiptsResponse)
    return answer(shapes.page([shapes.receipt(receipt) for receipt in reply.message.receipts]))
