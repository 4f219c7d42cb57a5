"""Whose turn it is in a task's thread, told as notices of kind `floor`.

An engine that is asked there has the turn while it works; then it is again that of who asked. They say what goes on,
and hold nobody back: they wake nobody, and anybody may post meanwhile.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mycelium.engine.v1 import events_pb2 as engine_pb2
from mycelium.rooms.v1 import notices_pb2
from mycelium_board import notices
from mycelium_kernel import subjects
from mycelium_kernel.service import Reaction, Stored

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime
    from mycelium_kernel.tables import Tables

KIND = "floor"
RUNS = subjects.of_kind("engine", "run")


async def _tell(runtime: Runtime, event: engine_pb2.RunStarted | engine_pb2.RunEnded, stored: Stored) -> None:
    if not event.run.thread:
        return
    assert runtime.projector is not None
    await runtime.projector.wait(stored.sequence)
    tables = runtime.projector.tables
    if isinstance(event, engine_pb2.RunStarted):
        await _post(runtime, tables, event, event.run.engine, stored.sequence)
    else:  # its beginning, too: replicas may come to that later, and the room is told of each once
        await _post(runtime, tables, event, event.run.engine, event.started)
        await _post(runtime, tables, event, _next(tables, event), stored.sequence)


def _next(tables: Tables, event: engine_pb2.RunEnded) -> str:
    """Whose turn it is after a run: that of another which is under way there, else of who asked."""
    sql = "SELECT engine FROM run WHERE room_id = ? AND thread = ? AND run_id != ? ORDER BY started_at DESC, run_id"
    other = tables.one(sql, event.room_id, event.run.thread, event.run.id)
    return str(other[0]) if other else event.run.asked_by


async def _post(
    runtime: Runtime, tables: Tables, event: engine_pb2.RunStarted | engine_pb2.RunEnded, turn: str, sequence: int
) -> None:
    request = notice(tables, event.room_id, event.run.thread, turn, sequence)
    if request:
        await notices.post(runtime, request, sequence)


def notice(tables: Tables, room_id: str, thread: str, turn: str, sequence: int) -> notices_pb2.PostNoticeRequest | None:
    """What is told of a turn; None when the thread is no task's."""
    sql = "SELECT key, title, kind FROM task WHERE thread = ? AND room_id = ?"
    row = tables.one(sql, thread, room_id)
    if row is None:
        return None
    key, title, row_kind = row
    told = {
        "task": key,
        "kind": KIND,
        "thread": thread,
        "by": turn,
        "sequence": sequence,
        "title": title,
        "row_kind": row_kind,
    }
    return notices_pb2.PostNoticeRequest(
        room_id=room_id,
        message_type="notice",
        kind=KIND,
        sender_handle=turn,
        content=notices.plain(f"it is the turn of @{turn} in {key}{f' — {title}' if title else ''}"),
        metadata_json=json.dumps(told),
    )


TURNS = Reaction("turns", (engine_pb2.RunStarted, engine_pb2.RunEnded), (RUNS,), _tell)
