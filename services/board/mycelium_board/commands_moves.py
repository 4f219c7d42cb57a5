"""Decisions on what becomes of a task: resolved, blocked, promoted, dismissed, answered.

Anybody in the room may, and a holder is told of it; but a token that is not current is refused (`commands_claims`).
What changes in the task's document is part of the fact, and follows from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mycelium.board.v1 import events_pb2, service_pb2, views_pb2
from mycelium_board import commands_claims
from mycelium_board.commands_claims import Holding, closed
from mycelium_board.model import OPEN, live, unblocked
from mycelium_kernel.callers import speaker
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context, Fact

MOST_ON = 500  # characters of what a task waits for
# The moves that end a task, and its claim with it.
CLOSING: Mapping[int, Mapping[str, object]] = {
    views_pb2.MOVE_RESOLVED: {"status": "resolved"},
    views_pb2.MOVE_PROMOTED: {"status": "resolved", "promoted": True},
    views_pb2.MOVE_DISMISSED: {"status": "dismissed"},
    views_pb2.MOVE_ANSWERED: {"status": "resolved"},
}


@dataclass(frozen=True)
class Moving(Holding):
    """A task with what a move has to know of its document."""

    options: tuple[str, ...] = ()
    is_promoted: bool = False  # or was, before somebody opened it again


def move_task(loaded: Moving, request: service_pb2.MoveTaskRequest, context: Context) -> Fact:
    """Refused for a task that is closed, under an old token, and when what the move needs is missing."""
    by = speaker(context)
    if request.token:
        commands_claims.proven(loaded, request.token, by, context.now)
    if loaded.task.is_closed:
        raise closed(loaded)
    changes = _changes(loaded, request)
    event = commands_claims.moved(
        loaded,
        request.move,
        by,
        context.now,
        lease=None if request.move in CLOSING else live(loaded.entity, context.now),
        fields_json=json.dumps(changes, ensure_ascii=False),
        note=request.note,
    )
    return Fact(event, on=loaded.entity)


def answer_move(event: events_pb2.TaskMoved, _sequence: int) -> service_pb2.MoveTaskResponse:
    held_by = event.ended.holder if event.HasField("ended") else event.lease.holder
    return service_pb2.MoveTaskResponse(key=event.key, thread=event.thread, held_by=held_by)


def _changes(loaded: Moving, request: service_pb2.MoveTaskRequest) -> dict[str, object]:
    """What the document's fields become."""
    if request.move in CLOSING:
        answer = {"answer": _answer(loaded, request.answer.strip())} if request.move == views_pb2.MOVE_ANSWERED else {}
        before = {"promoted": None} if loaded.is_promoted else {}
        return {**before, **CLOSING[request.move], **answer, **unblocked(loaded.task)}
    if request.move == views_pb2.MOVE_BLOCKED:
        return {"status": "blocked", "blocked_by": _waited_for(request.on.strip())}
    if request.move != views_pb2.MOVE_UNBLOCKED:
        raise Refusal("request.invalid", "that is nothing that a task can be told")
    if not loaded.task.is_blocked:
        raise Refusal("task.not_blocked", f"{loaded.task.key} is not blocked")
    return {"status": OPEN, "blocked_by": None}


def _answer(loaded: Moving, answer: str) -> str:
    """Refused when it is none of those that the decision offers."""
    if not answer:
        raise Refusal("request.invalid", "an answer can't be empty")
    if loaded.options and answer not in loaded.options:
        offered = ", ".join(loaded.options)
        detail = f"{answer[:60]!r} is none of what {loaded.task.key} offers: {offered}"
        raise Refusal("request.invalid", detail, near=list(loaded.options))
    return answer


def _waited_for(on: str) -> str:
    if not on:
        raise Refusal("request.invalid", "say what it waits for, or that it no longer waits")
    if len(on) > MOST_ON:
        raise Refusal("content.too_large", f"what a task waits for has {len(on):,} characters, at most {MOST_ON} fit")
    return on
