"""One row of the board: what the tables hold of a task, as people and programs are shown it."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from mycelium.board.v1 import views_pb2
from mycelium_board import options, reading
from mycelium_kernel import clock
from mycelium_kernel.errors import Refusal

# What `build` takes, in its order; the last three are the row's place in the order of all.
COLUMNS = """task.document_id, task.key, thread, title, iif(moved_status != '', moved_status, status), kind, assignee,
  blocked_by, coalesce(holder, ''), coalesce(expires_at, 0), fields, version, created_by, created_at, updated_by,
  updated_at, place, lateness, closed_at"""
NONE = "-"  # the group of the rows that don't have the field
NAMES = (
    "key", "title", "status", "kind", "assignee", "holder", "blocked_by", "version", "created_by", "updated_by",
    "ready", "reason", "waits_for", "cycle", "parent", "parts", "options", "created_at", "updated_at", "expires_at",
)  # fmt: skip
SOURCE = "memory"  # of each row here
OF_THREADS = ("thread", "episode")  # shown on the row; they are the thread's, and no field of the task
FIELD_CHARACTERS = 100


def build(found: tuple[Any, ...]) -> views_pb2.Row:
    """The row of one line of `COLUMNS`."""
    _document_id, key, thread, title, status, kind, assignee, blocked_by, holder, expires_at, *others = found
    fields, version, created_by, created_at, updated_by, updated_at, *_order = others
    return views_pb2.Row(
        key=key,
        thread=thread,
        title=title,
        status=status,
        kind=kind,
        assignee=assignee,
        blocked_by=blocked_by,
        holder=holder,
        expires_at=clock.from_millis(expires_at) if expires_at else None,
        fields_json=fields,
        version=version,
        created_by=created_by,
        created_at=clock.from_millis(created_at),
        updated_by=updated_by,
        updated_at=clock.from_millis(updated_at),
        options=options.of_json(fields),
    )


def check_field(name: str) -> str:
    """The field to group by. Refused when it is the thread's: a thread says nothing about how far its task is."""
    field = name.strip()
    if field.split("_")[0].split("-")[0] in OF_THREADS:
        detail = f"rows can't be grouped by {field[:40]!r}: it is the thread's, and no field of the task"
        raise Refusal("request.invalid", detail, next="mycelium board --group status")
    if len(field) > FIELD_CHARACTERS:
        raise Refusal("request.invalid", f"group has {len(field)} characters: use a field's name")
    return field


def groups(row: views_pb2.Row, field: str) -> list[str]:
    """The values of a field, a row's own or its document's; `-` where it has none.

    `owner` is the document's where it says one, else the holder.
    """
    fields = json.loads(row.fields_json or "{}")
    if field == "owner":
        return [value.removeprefix("@") for value in _values(fields.get("owner"))] or [row.holder or NONE]
    if field == "source":
        return [SOURCE]
    values = _values(_own(row, field)) if field in NAMES else _values(fields.get(field))
    return values or [NONE]


def _own(row: views_pb2.Row, field: str) -> object:
    value = getattr(row, field)
    if isinstance(value, Timestamp):
        return clock.rfc3339(clock.to_millis(value)) if row.HasField(field) else ""  # type: ignore[arg-type]
    if field == "assignee":
        return value.split(", ")
    return value if isinstance(value, str | int) else list(value)


def _values(value: object) -> list[str]:
    return list(dict.fromkeys(reading.texts(value)))
