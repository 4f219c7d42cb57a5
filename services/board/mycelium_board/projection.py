"""How each fact changes the tables: tasks as their documents have them, and who holds what.

Only facts are looked at, so a rebuild gives the same rows.
"""

from __future__ import annotations

import json
from typing import Any

from mycelium.board.v1 import events_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium_board.model import CLOSED, OPEN, PREFIXES
from mycelium_kernel import clock, subjects
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables

SHORT = 8  # digits of the short form of an id
TITLE_CHARACTERS = 200
KINDS = {"work": "task", "decisions": "decision", "status": "status", "failed": "failed"}


def document_written(tables: Tables, event: memory_pb2.DocumentWritten, stored: Stored) -> None:
    if not event.key.startswith(PREFIXES):
        return
    document_id = subjects.identifier_of(stored.subject)
    fields = json.loads(event.content.fields_json or "{}")
    sql = "SELECT moved_status, moved_by, closed_at FROM task WHERE room_id = ? AND document_id = ?"
    moved_status, moved_by, closed_at = tables.one(sql, event.room_id, document_id) or ("", 0, 0)
    if stored.key == key_of_move(moved_by):  # the document has it now
        moved_status, moved_by = "", 0
    status = text_of(fields.get("status")) or OPEN
    closed_at = (closed_at or clock.to_millis(event.updated_at)) if (moved_status or status) in CLOSED else 0
    tables.execute(
        "INSERT OR REPLACE INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        event.room_id, document_id, event.key, event.thread, event.thread[-SHORT:], title_of(event.content, fields),
        status, moved_status, moved_by,
        text_of(fields.get("kind")) or KINDS[event.key.split("/", 1)[0]],
        text_of(fields.get("assignee")).removeprefix("@").lower(), text_of(fields.get("blocked_by")),
        json.dumps(fields, ensure_ascii=False), event.version, event.created_by, clock.to_millis(event.created_at),
        event.updated_by, clock.to_millis(event.updated_at), closed_at,
    )  # fmt: skip


def document_removed(tables: Tables, event: memory_pb2.DocumentRemoved, stored: Stored) -> None:
    document_id = subjects.identifier_of(stored.subject)
    tables.execute("DELETE FROM task WHERE room_id = ? AND document_id = ?", event.room_id, document_id)


def task_moved(tables: Tables, event: events_pb2.TaskMoved, stored: Stored) -> None:
    document_id = subjects.identifier_of(stored.subject)
    _hold(tables, event, document_id, stored.sequence)
    status = json.loads(event.fields_json).get("status", "") if event.fields_json else ""
    if status:
        closed_at = clock.to_millis(event.at) if status in CLOSED else 0
        tables.execute(
            "UPDATE task SET moved_status = ?, moved_by = ?, closed_at = ? WHERE room_id = ? AND document_id = ?",
            status, stored.sequence, closed_at, event.room_id, document_id,
        )  # fmt: skip


def _hold(tables: Tables, event: events_pb2.TaskMoved, document_id: str, sequence: int) -> None:
    if not event.HasField("lease"):
        tables.execute("DELETE FROM claim WHERE room_id = ? AND document_id = ?", event.room_id, document_id)
        return
    lease = event.lease
    tables.execute(
        "INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?, ?)",
        event.room_id, document_id, event.key, lease.holder, lease.token or sequence,
        clock.to_millis(lease.expires_at),
    )  # fmt: skip


def claim_renewed(tables: Tables, event: events_pb2.ClaimRenewed, stored: Stored) -> None:
    tables.execute(
        "UPDATE claim SET expires_at = ? WHERE room_id = ? AND document_id = ?",
        clock.to_millis(event.lease.expires_at), event.room_id, subjects.identifier_of(stored.subject),
    )  # fmt: skip


def key_of_move(sequence: int) -> str:
    """The idempotency key under which the document is changed as a move asks, once."""
    return f"move-{sequence}"


def title_of(content: memory_views_pb2.Content, fields: dict[str, Any]) -> str:
    """The title of a task: its field, else the first heading, else the first line that says something."""
    named = text_of(fields.get("title")) or next((heading.title for heading in content.headings), "")
    lines = (line.strip() for line in content.body.splitlines())
    return (named or next(filter(None, lines), "") or content.value_json)[:TITLE_CHARACTERS]


def text_of(value: object) -> str:
    """A field as text; whoever writes a number or a list there means it to be read."""
    if value is None or value == "":
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
