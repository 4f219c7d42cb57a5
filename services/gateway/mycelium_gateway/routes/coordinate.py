"""Bringing an engine into a task: a post in its thread that mentions the engine, and changes nothing of the task."""

from __future__ import annotations

import shlex

from fastapi import APIRouter
from starlette.responses import Response

from mycelium.board.v1 import finding_pb2
from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import problems, shapes
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer
from mycelium_gateway.routes.messages import POSTING
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas.coordinate import Coordination
from mycelium_gateway.schemas.messages import Message
from mycelium_kernel import names
from mycelium_kernel.errors import Refusal

SHOWN = 5  # engines that a refusal names
router = APIRouter(prefix="/api/rooms/{room}", tags=["board"], route_class=PlainRoute)


@router.post(
    "/tasks/{task:path}/coordinate",
    status_code=201,
    response_model=Message,
    summary="Have an engine settle something in a task's thread",
    description=(
        "The same as mentioning the engine there: the answer is the message, and says what became of the mention. It "
        "changes neither the task nor who holds it."
    ),
    responses=problems.responses("task.not_found", "engine.not_found", *POSTING),
)
async def coordinate(room: str, task: str, body: Coordination, call: Caller) -> Response:
    caller = call.named(body.handle)
    found = (await caller.ask(finding_pb2.FindTaskRequest(room=room, task=task), finding_pb2.FindTaskResponse)).message
    if not body.text.strip():
        raise Refusal("content.empty", "say what is to be settled")
    engine = await _find_engine(caller, room, names.handle(body.engine))
    request = service_pb2.PostMessageRequest(room=room, content=f"@{engine} {body.text}", thread=found.thread)
    reply = await caller.ask(request, service_pb2.PostMessageResponse)
    return answer(shapes.message(reply.message.message), 201, sequence=reply.sequence)


async def _find_engine(call: Call, room: str, wanted: str) -> str:
    """The handle of an engine of the room. Refused when there is none, with those that may have been meant."""
    known, cursor = [], ""
    while True:
        request = service_pb2.ListMembersRequest(room=room, kind=views_pb2.MEMBER_KIND_ENGINE, cursor=cursor)
        page = (await call.ask(request, service_pb2.ListMembersResponse)).message
        known += [member.handle for member in page.members]
        cursor = page.next
        if wanted in known:
            return wanted
        if not cursor:
            break
    raise _no_engine(room, wanted, known)


def _no_engine(room: str, wanted: str, known: list[str]) -> Refusal:
    near = names.near(wanted, known)
    hint = ", which has none"
    if near:
        hint = f"; did you mean {' or '.join(f'@{handle}' for handle in near)}?"
    elif known:
        hint = f"; there {'is' if len(known) == 1 else 'are'} {', '.join(f'@{handle}' for handle in known[:SHOWN])}"
    verb = "ls" if known else f"create {wanted} --kind KIND"
    next_command = f"mycelium engine {verb} --room {shlex.quote(room)}"
    return Refusal("engine.not_found", f"@{wanted} is no engine of {room!r}{hint}", next=next_command, near=near)
