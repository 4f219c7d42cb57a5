"""Runs of engines: those that are under way as rows, each that ended as an entry of the daily log.

Made from the facts of the engine service. What a run posted in answer is not counted beside it: `answers` tells it by
the message that it replies to.
"""

from __future__ import annotations

from mycelium.board.v1 import log_pb2, views_pb2
from mycelium.engine.v1 import events_pb2 as engine_pb2
from mycelium.engine.v1 import runs_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import entries
from mycelium_kernel import clock
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables

MOST = 200  # rows of a page: more are hardly under way in a room
# With the task that its thread is of, which an import may have brought to another room as well.
RUNNING = """SELECT run_id, engine, run.kind, coalesce(task.key, ''), coalesce(title, ''), run.thread, asked_by,
    started_at, message_id
  FROM run INDEXED BY run_start LEFT JOIN task ON run.thread != '' AND task.thread = run.thread
    AND task.room_id = run.room_id
  WHERE run.room_id = ? ORDER BY started_at DESC, run_id LIMIT ?"""


def run_started(tables: Tables, event: engine_pb2.RunStarted, _stored: Stored) -> None:
    run = event.run
    tables.execute(
        "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        event.room_id, run.id, run.engine, run.kind, run.message_id, run.asked_by, run.thread,
        clock.to_millis(run.started_at),
    )  # fmt: skip


def run_ended(tables: Tables, event: engine_pb2.RunEnded, stored: Stored) -> None:
    """The run is a row no more; the log has it, with the task that it worked in as it is called now."""
    run = event.run
    tables.execute("DELETE FROM run WHERE room_id = ? AND run_id = ?", event.room_id, run.id)
    key, title = task_of(tables, event.room_id, run.thread)
    entries.enter(
        tables, event.room_id, clock.to_millis(event.ended_at), stored.sequence, run.engine, log_pb2.LOG_WHAT_RUN, key,
        run.thread, title, outcome=called(event.outcome),
    )  # fmt: skip


def answers(tables: Tables, event: rooms_pb2.MessagePosted) -> bool:
    """Whether a message is what a run that is under way was asked for."""
    sql = "SELECT 1 FROM run WHERE room_id = ? AND message_id = ? AND engine = ?"
    found = tables.one(sql, event.room_id, event.reply_to, event.sender_handle) if event.reply_to else None
    return found is not None


def called(outcome: runs_pb2.RunOutcome.ValueType) -> str:
    """An outcome as callers get it, such as `done`."""
    return runs_pb2.RunOutcome.Name(outcome).removeprefix("RUN_OUTCOME_").lower()


def task_of(tables: Tables, room_id: str, thread: str) -> tuple[str, str]:
    """Key and title of the task that a thread is of; empty when it is none's."""
    row = (
        tables.one("SELECT key, title FROM task WHERE thread = ? AND room_id = ?", thread, room_id) if thread else None
    )
    return (row[0], row[1]) if row else ("", "")


def running(tables: Tables, room_id: str) -> list[views_pb2.RunRow]:
    """The runs that are under way in a room, those that began last first."""
    return [
        views_pb2.RunRow(
            run=run, engine=engine, kind=kind, task=task, title=title, thread=thread, asked_by=asked_by,
            started_at=clock.from_millis(started_at), message_id=message_id,
        )
        for run, engine, kind, task, title, thread, asked_by, started_at, message_id in tables.all(
            RUNNING, room_id, MOST
        )
    ]  # fmt: skip
