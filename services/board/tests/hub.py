"""A board in memory: rooms and documents come as the facts their services would store, requests run one at a time."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from mycelium.board.v1 import service_pb2, views_pb2
from mycelium.memory.v1 import events_pb2 as memory_pb2
from mycelium.memory.v1 import views_pb2 as memory_views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_board.service import PROJECTION, service
from mycelium_kernel import clock, names, subjects
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact
from services.kernel.tests import in_hand
from services.kernel.tests.in_hand import START

__all__ = ["START", "Hub", "moving", "rebuilt"]


def rebuilt(facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    return in_hand.tables_of(PROJECTION, facts)


class Hub(in_hand.InHand):
    """A board as a service would keep it, with one room, `demo`, and its members."""

    somebody = "sec"

    def __init__(self, *, private: bool = False, now: datetime = START) -> None:
        super().__init__(service(), now=now)
        self.versions: dict[str, int] = {}
        self.room_id = self.new_id()
        created = rooms_pb2.RoomCreated(room_id=self.room_id, name="demo", private=private, created_by="avery")
        self.append(subjects.room_name(names.fold_room_name("demo")), created)
        for handle in ("sec", "builder") if private else ("avery", "sec", "builder"):
            self.join(handle)

    # What other services store.

    def join(self, handle: str) -> None:
        member = rooms_views_pb2.Member(handle=handle)
        event = rooms_pb2.MemberSaved(room_id=self.room_id, member=member)
        self.append(subjects.fact("rooms", self.room_id, "member", handle), event)

    def task(
        self,
        key: str,
        body: str = "Do it",
        *,
        move: int = 0,
        moved: memory_views_pb2.Moved | None = None,
        by: str = "avery",
        origin: memory_views_pb2.Origin.ValueType = memory_views_pb2.ORIGIN_CALL,
        **fields: Any,
    ) -> str:
        """A version of a task's document, as it is after a move when that is given; returns the thread."""
        version = self.versions[key] = self.versions.get(key, 0) + 1
        event = memory_pb2.DocumentWritten(
            room_id=self.room_id,
            room="demo",
            key=key,
            version=version,
            created_by="avery",
            updated_by=by,
            origin=origin,
            created_at=clock.to_timestamp(self.now),
            updated_at=clock.to_timestamp(self.now),
            thread=f"01900000-0000-7000-8000-{subjects.digest(key)[:12]}",
        )
        event.content.body = body
        event.content.fields_json = json.dumps(fields) if fields else ""
        if move or moved:
            event.moved.CopyFrom(moved or memory_views_pb2.Moved(sequence=move))
        self.append(self.document(key), event)
        return event.thread

    def remove(self, key: str) -> None:
        self.append(
            self.document(key),
            memory_pb2.DocumentRemoved(room_id=self.room_id, room="demo", key=key, removed_by="avery"),
        )

    def document(self, key: str) -> str:
        """Subject of a document's facts."""
        return subjects.fact("memory", self.room_id, "document", subjects.digest(key))

    # What its users do.

    def claim(self, task: str, by: str = "sec", **fields: Any) -> views_pb2.Claim:
        request = service_pb2.ClaimTaskRequest(room="demo", task=task, **fields)
        response: service_pb2.ClaimTaskResponse = self.ask(request, by)
        return response.claim

    def renew(self, task: str, by: str = "sec", **fields: Any) -> views_pb2.Claim:
        request = service_pb2.RenewClaimRequest(room="demo", task=task, **fields)
        response: service_pb2.RenewClaimResponse = self.ask(request, by)
        return response.claim

    def release(self, task: str, by: str = "sec", **fields: Any) -> None:
        self.ask(service_pb2.ReleaseTaskRequest(room="demo", task=task, **fields), by)

    def resolve(self, task: str, by: str = "sec", **fields: Any) -> service_pb2.MoveTaskResponse:
        response: service_pb2.MoveTaskResponse = self.ask(moving(views_pb2.MOVE_RESOLVED, task, **fields), by)
        return response


def moving(move: views_pb2.Move.ValueType, task: str, **fields: Any) -> service_pb2.MoveTaskRequest:
    """What is asked for a task of `demo`."""
    return service_pb2.MoveTaskRequest(room="demo", task=task, move=move, **fields)
