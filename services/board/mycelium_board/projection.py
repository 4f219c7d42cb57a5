"""How each fact changes the tables: tasks as their documents have them, and who holds what.

Only facts are looked at, so a rebuild gives the same rows.
"""

from __future__ import annotations

import json
from typing import Any

from mycelium.board.v1 import events_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium_board import edges, edits, reading
from mycelium_board.model import CLOSED, OPEN, PREFIXES
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.service import Stored
from mycelium_kernel.tables import Tables

TITLE_CHARACTERS = 200
KINDS = {"work": "task", "decisions": "decision", "status": "status", "failed": "failed"}


def document_written(tables: Tables, event: memory_pb2.DocumentWritten, stored: Stored) -> None:
    if not event.key.startswith(PREFIXES):
        return
    document_id = subjects.identifier_of(stored.subject)
    fields = json.loads(event.content.fields_json or "{}")
    edits.forget_move(tables, document_id, event)
    before = edits.before(tables, event.room_id, document_id)
    status = reading.status(fields.get("status")) or OPEN
    after = edits.Seen(
        key=event.key,
        thread=event.thread,
        title=title_of(event.content, fields),
        status=status,
        kind=reading.word(fields.get("kind")) or KINDS[event.key.split("/", 1)[0]],
        assignee=reading.handles(fields.get("assignee")),
        blocked_by=reading.blocked_by(fields.get("blocked_by")),
    )
    edits.note(tables, event, stored, before, after)
    moved_status, moved_by, closed_at = before.moved if before else ("", 0, 0)
    if edits.move_of(event) == moved_by:  # the document has it now
        moved_status, moved_by = "", 0
    updated_at = clock.to_millis(event.updated_at)
    closed_at = (closed_at or updated_at) if (moved_status or status) in CLOSED else 0
    blocked_by = before.blocked_by if before and moved_status else after.blocked_by
    tables.execute(
        """INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
          ON CONFLICT DO UPDATE SET key = excluded.key, thread = excluded.thread, short = excluded.short,
          title = excluded.title, status = excluded.status, moved_status = excluded.moved_status,
          moved_by = excluded.moved_by, kind = excluded.kind, assignee = excluded.assignee,
          blocked_by = excluded.blocked_by, fields = excluded.fields, version = excluded.version,
          created_by = excluded.created_by, created_at = excluded.created_at, updated_by = excluded.updated_by,
          updated_at = excluded.updated_at, closed_at = excluded.closed_at,
          touched_at = max(touched_at, excluded.touched_at)""",
        event.room_id, document_id, after.key, after.thread, names.short_id(after.thread), after.title, status,
        moved_status, moved_by, after.kind, after.assignee, blocked_by, json.dumps(fields, ensure_ascii=False),
        event.version, event.created_by, clock.to_millis(event.created_at), event.updated_by, updated_at, closed_at,
        updated_at,
    )  # fmt: skip
    edges.keep(tables, event.room_id, document_id, fields, stored.sequence)


def document_removed(tables: Tables, event: memory_pb2.DocumentRemoved, stored: Stored) -> None:
    document_id = subjects.identifier_of(stored.subject)
    before = edits.before(tables, event.room_id, document_id)
    if before is None:
        return
    edits.note(tables, event, stored, before, None)
    edits.forget_moves(tables, event.room_id, document_id)
    edges.forget(tables, event.room_id, document_id)
    tables.execute("DELETE FROM task WHERE room_id = ? AND document_id = ?", event.room_id, document_id)


def task_moved(tables: Tables, event: events_pb2.TaskMoved, stored: Stored) -> None:
    document_id = subjects.identifier_of(stored.subject)
    _hold(tables, event, document_id, stored.sequence)
    at, place = clock.to_millis(event.at), (event.room_id, document_id)
    tables.execute("UPDATE task SET touched_at = max(touched_at, ?) WHERE room_id = ? AND document_id = ?", at, *place)
    if event.edit:
        edits.told(tables, event, document_id)
    if event.cause:
        sql = "UPDATE task SET freed_by = ? WHERE room_id = ? AND document_id = ?"
        tables.execute(sql, stored.sequence, *place)
    if event.fields_json:
        _change(tables, event, document_id, stored.sequence)


def _change(tables: Tables, event: events_pb2.TaskMoved, document_id: str, sequence: int) -> None:
    """What a move makes of a task counts at once; its document follows."""
    edits.keep_move(tables, event, document_id, sequence)
    fields = json.loads(event.fields_json)
    status = fields.get("status", "")
    if status:
        closed_at = clock.to_millis(event.at) if status in CLOSED else 0
        tables.execute(
            "UPDATE task SET moved_status = ?, moved_by = ?, closed_at = ? WHERE room_id = ? AND document_id = ?",
            status, sequence, closed_at, event.room_id, document_id,
        )  # fmt: skip
    if "blocked_by" in fields:
        sql = "UPDATE task SET blocked_by = ? WHERE room_id = ? AND document_id = ?"
        tables.execute(sql, text_of(fields["blocked_by"]), event.room_id, document_id)


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
