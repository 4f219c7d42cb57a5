"""A board whose room is talked in and whose documents are written by anybody, for tests of the daily log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mycelium.board.v1 import events_pb2, log_pb2, views_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium_board import queries_log
from mycelium_kernel import clock, subjects
from services.board.tests.hub import Hub

WHAT = {number: name.removeprefix("LOG_WHAT_").lower() for name, number in log_pb2.LogWhat.items()}


class Logged(Hub):
    """A board whose room is talked in and whose documents are written by anybody."""

    def post(self, by: str = "sec", *, at: datetime | None = None, **fields: Any) -> str:
        """A message, or what else the room keeps among them."""
        event = rooms_pb2.MessagePosted(
            room_id=self.room_id, message_id=self.new_id(), sender_handle=by, content="hello", message_type="message"
        )
        event.created_at.CopyFrom(clock.to_timestamp(at or self.now))
        for name, value in fields.items():
            setattr(event, name, value)
        self.append(subjects.posts(self.room_id), event)
        return event.message_id

    def write(
        self,
        key: str,
        by: str = "sec",
        *,
        after: int = 0,
        command: str = "",
        moved: memory_views_pb2.Moved | None = None,
        **fields: Any,
    ) -> int:
        """A version of a document, which replaced another unless `after` is 0."""
        event = memory_pb2.DocumentWritten(
            room_id=self.room_id, room="demo", key=key, version=after + 1, created_by=by, updated_by=by
        )
        event.updated_at.CopyFrom(clock.to_timestamp(self.now))
        event.thread = self.thread(key)
        event.content.body = f"# About {key}"
        event.content.headings.add(title=f"About {key}", level=1)
        if after:
            event.replaced.version = after
        if moved:
            event.moved.CopyFrom(moved)
        for name, value in fields.items():
            setattr(event, name, value)
        return self.append(self.document(key), event, command)

    def thread(self, key: str) -> str:
        return f"01900000-0000-7000-8000-{subjects.digest(key)[:12]}"

    def removed(self, key: str, by: str = "sec") -> None:
        event = memory_pb2.DocumentRemoved(room_id=self.room_id, room="demo", key=key, version=9, removed_by=by)
        event.removed_at.CopyFrom(clock.to_timestamp(self.now))
        self.append(self.document(key), event)

    def edited(self, move: views_pb2.Move.ValueType, key: str, edit: int, by: str = "sec") -> None:
        """What the board tells of an edit."""
        event = events_pb2.TaskMoved(room_id=self.room_id, room="demo", key=key, move=move, by=by, edit=edit)
        event.at.CopyFrom(clock.to_timestamp(self.now))
        self.append(f"{self.task_subject(key)}", event)

    def task_subject(self, key: str) -> str:
        return subjects.fact("board", self.room_id, "task", subjects.digest(key))

    def read(self, handle: str = "avery", **wanted: Any) -> log_pb2.ReadLogResponse:
        request = log_pb2.ReadLogRequest(room="demo", **wanted)
        return queries_log.read_log(self.tables, request, self.context(handle))

    def told(self, **wanted: Any) -> list[str]:
        """Every entry, the last first, as `who what key`."""
        entries = [entry for day in self.read(**wanted).days for entry in day.entries]
        return [" ".join(filter(None, (entry.by, WHAT[entry.what], entry.key))) for entry in entries]
