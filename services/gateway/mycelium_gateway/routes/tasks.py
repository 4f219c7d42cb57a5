"""Tasks of a room: filed, held by somebody, and what becomes of them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium_gateway import problems, shapes, shapes_board
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import tasks as schemas

router = APIRouter(prefix="/api/rooms/{room}", tags=["board"], route_class=PlainRoute)
FINDING = ("room.not_found", "task.not_found", "id.ambiguous", "row.unchangeable")
MOVING = (*FINDING, "lease.lost", "task.closed", "handle.mismatch", *problems.WRITING)
NAMED = "A task is named by its key, with or without its prefix (slashes as `%2F`), or by its thread's id or short id."


@router.post(
    "/tasks",
    status_code=201,
    response_model=schemas.Task,
    summary="File a task",
    description="It is a document of the room's memory, under a key made from its title, with a thread of its own.",
    responses=problems.responses(
        *FINDING, "content.empty", "content.too_large", "handle.unregistered", "handle.mismatch", *problems.WRITING
    ),
)
async def create_task(room: str, body: schemas.NewTask, call: Caller) -> Response:
    request = service_pb2.CreateTaskRequest(
        room=room,
        title=body.title,
        body=body.value,
        assignee=body.assign or "",
        parent=body.parent or "",
        kind=body.kind or "",
        options=body.options,
        depends_on=body.depends_on,
        priority=body.priority or "",
    )
    reply = await call.named(body.handle).ask(request, service_pb2.CreateTaskResponse)
    return answer(shapes_board.row(reply.message.row), 201, sequence=reply.sequence)


@router.post(
    "/tasks/{task:path}/claim",
    response_model=schemas.Claim,
    summary="Take a task",
    description=f"The token proves the claim; claiming again as its holder shows it again. {NAMED}",
    responses=problems.responses("claim.held", "task.waiting", "handle.unregistered", *MOVING),
)
async def claim_task(room: str, task: str, body: schemas.Claiming, call: Caller) -> Response:
    request = service_pb2.ClaimTaskRequest(
        room=room, task=task, to=body.to or "", ttl_s=body.ttl_s or 0, force=body.force
    )
    reply = await call.named(body.handle).ask(request, service_pb2.ClaimTaskResponse)
    return answer(_claim(reply.message.claim), sequence=reply.sequence)


@router.post(
    "/tasks/{task:path}/renew",
    response_model=schemas.Claim,
    summary="Let a claim last longer",
    description=NAMED,
    responses=problems.responses("claim.held", "claim.none", *MOVING),
)
async def renew_claim(room: str, task: str, body: schemas.Renewal, call: Caller) -> Response:
    request = service_pb2.RenewClaimRequest(room=room, task=task, token=body.token or 0, ttl_s=body.ttl_s or 0)
    reply = await call.named(body.handle).ask(request, service_pb2.RenewClaimResponse)
    return answer(_claim(reply.message.claim), sequence=reply.sequence)


@router.post(
    "/tasks/{task:path}/release",
    response_model=schemas.Moved,
    summary="Give a task back",
    description=f"Whom it is for stays; nobody holds it then. {NAMED}",
    responses=problems.responses("claim.held", "claim.none", *MOVING),
)
async def release_task(room: str, task: str, body: schemas.Proof, call: Caller) -> Response:
    request = service_pb2.ReleaseTaskRequest(room=room, task=task, token=body.token or 0, note=body.note)
    reply = await call.named(body.handle).ask(request, service_pb2.ReleaseTaskResponse)
    released = reply.message
    return answer({"task": released.key, "thread": released.thread, "held_by": None}, sequence=reply.sequence)


@router.post(
    "/tasks/{task:path}/resolve",
    response_model=schemas.Moved,
    summary="Say that a task is done",
    description=NAMED,
    responses=problems.responses(*MOVING),
)
async def resolve_task(room: str, task: str, body: schemas.Proof, call: Caller) -> Response:
    return await _move(call, room, task, body, views_pb2.MOVE_RESOLVED)


@router.post(
    "/tasks/{task:path}/promote",
    response_model=schemas.Moved,
    summary="Say that a task goes on elsewhere",
    description=NAMED,
    responses=problems.responses(*MOVING),
)
async def promote_task(room: str, task: str, body: schemas.Proof, call: Caller) -> Response:
    return await _move(call, room, task, body, views_pb2.MOVE_PROMOTED)


@router.post(
    "/tasks/{task:path}/dismiss",
    response_model=schemas.Moved,
    summary="Close a task without its being done",
    description=NAMED,
    responses=problems.responses(*MOVING),
)
async def dismiss_task(room: str, task: str, body: schemas.Proof, call: Caller) -> Response:
    return await _move(call, room, task, body, views_pb2.MOVE_DISMISSED)


@router.post(
    "/tasks/{task:path}/block",
    response_model=schemas.Moved,
    summary="Say what a task waits for, or that it no longer waits",
    description=NAMED,
    responses=problems.responses("task.not_blocked", "content.too_large", *MOVING),
)
async def block_task(room: str, task: str, body: schemas.Blocking, call: Caller) -> Response:
    move = views_pb2.MOVE_UNBLOCKED if body.clear else views_pb2.MOVE_BLOCKED
    return await _move(call, room, task, body, move, on=body.on)


@router.post(
    "/tasks/{task:path}/answer",
    response_model=schemas.Moved,
    summary="Make a decision",
    description=NAMED,
    responses=problems.responses(*MOVING),
)
async def answer_task(room: str, task: str, body: schemas.Answering, call: Caller) -> Response:
    return await _move(call, room, task, body, views_pb2.MOVE_ANSWERED, answer=body.answer)


async def _move(
    call: Call, room: str, task: str, body: schemas.Proof, move: views_pb2.Move.ValueType, **said: str
) -> Response:
    request = service_pb2.MoveTaskRequest(
        room=room, task=task, move=move, token=body.token or 0, note=body.note, on=said.get("on", "")
    )
    request.answer = said.get("answer", "")
    reply = await call.named(body.handle).ask(request, service_pb2.MoveTaskResponse)
    moved = reply.message
    shown = {"task": moved.key, "thread": moved.thread, "held_by": moved.held_by or None}
    return answer(shown, sequence=reply.sequence)


def _claim(claim: views_pb2.Claim) -> shapes.Json:
    return {
        "task": claim.key,
        "thread": claim.thread,
        "holder": claim.holder,
        "token": claim.token or None,
        "expires_at": shapes.moment(claim.expires_at),
        "ttl_s": claim.ttl_s,
        "taken_from": claim.taken_from or None,
        "waits_for": list(claim.waits_for),
    }
