"""A hub of memory in memory: rooms come as the facts that the rooms service would store, requests run one at a time."""

from __future__ import annotations

from typing import Any

from mycelium.memory.v1 import service_pb2, views_pb2
from mycelium.rooms.v1 import events_pb2 as rooms_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_kernel import names, subjects
from mycelium_kernel.tables import Tables
from mycelium_kernel.tail import RawFact
from mycelium_memory.service import PROJECTION, service
from services.kernel.tests import in_hand
from services.kernel.tests.in_hand import START

__all__ = ["START", "Hub", "demo_hub", "rebuilt", "rows_of"]
ROOMS = "rooms"


def rows_of(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that counts."""
    return tables.dump()


def rebuilt(facts: list[RawFact]) -> Tables:
    """Empty tables to which all `facts` were applied."""
    return in_hand.tables_of(PROJECTION, facts)


class Hub(in_hand.InHand):
    """Memory as a service would keep it."""

    somebody = "avery"

    def __init__(self, tables: Tables | None = None) -> None:
        super().__init__(service(), tables=tables)

    # What the rooms service stores.

    def room(self, name: str = "demo", by: str = "avery", **fields: Any) -> str:
        """Id of a new room."""
        event = rooms_pb2.RoomCreated(room_id=self.new_id(), name=name, created_by=by, **fields)
        self.append(subjects.room_name(names.fold_room_name(name)), event)
        return event.room_id

    def set_private(self, room_id: str, *, private: bool = True) -> None:
        event = rooms_pb2.RoomChanged(room_id=room_id, private=private)
        self.append(subjects.fact(ROOMS, room_id, "room", room_id), event)

    def finish_import(self, room_id: str) -> None:
        event = rooms_pb2.RoomImported(room_id=room_id)
        self.append(subjects.fact(ROOMS, room_id, "import", room_id), event)

    def join(self, room_id: str, handle: str) -> None:
        member = rooms_views_pb2.Member(handle=handle)
        event = rooms_pb2.MemberSaved(room_id=room_id, member=member)
        self.append(subjects.fact(ROOMS, room_id, "member", handle), event)

    def user(self, handle: str) -> None:
        event = rooms_pb2.UserSaved(handle=handle)
        self.append(subjects.fact(ROOMS, subjects.HUB, "user", handle), event)

    def leave(self, room_id: str, handle: str) -> None:
        event = rooms_pb2.MemberRemoved(room_id=room_id, handle=handle)
        self.append(subjects.fact(ROOMS, room_id, "member", handle), event)

    def delete_room(self, room_id: str, name: str = "demo") -> None:
        event = rooms_pb2.RoomDeleted(room_id=room_id)
        self.append(subjects.room_name(names.fold_room_name(name)), event)

    # What its users do.

    def write(self, key: str, body: str | None = None, by: str = "avery", **fields: Any) -> views_pb2.Document:
        """A new version; a field or tag is given as `fields_json`, `tags`."""
        tags = fields.pop("tags", None)
        request = service_pb2.WriteDocumentRequest(room=fields.pop("room", "demo"), key=key, body=body, **fields)
        if tags is not None:
            request.tags.CopyFrom(service_pb2.Tags(tags=tags))
        response: service_pb2.WriteDocumentResponse = self.ask(request, by)
        return response.document

    def remove(self, key: str, by: str = "avery", **fields: Any) -> int:
        """The number of the removal."""
        request = service_pb2.RemoveDocumentRequest(room=fields.pop("room", "demo"), key=key, **fields)
        return int(self.ask(request, by).version)

    def get(self, key: str, by: str = "avery", room: str = "demo") -> views_pb2.Document:
        response: service_pb2.GetDocumentResponse = self.ask(service_pb2.GetDocumentRequest(room=room, key=key), by)
        return response.document

    def was(self, key: str, **which: Any) -> views_pb2.Document:
        """A document as it was."""
        request = service_pb2.GetVersionRequest(room="demo", key=key, **which)
        response: service_pb2.GetVersionResponse = self.ask(request)
        return response.document

    def listed(self, by: str = "avery", **fields: Any) -> list[str]:
        """The keys of a list, page after page."""
        found: list[str] = []
        request = service_pb2.ListDocumentsRequest(room=fields.pop("room", "demo"), **fields)
        while True:
            page = self.ask(request, by)
            found += [document.key for document in page.documents]
            if not page.next:
                return found
            request.cursor = page.next

    def versions(self, key: str, **fields: Any) -> list[views_pb2.Version]:
        request = service_pb2.ListVersionsRequest(room="demo", key=key, **fields)
        return list(self.ask(request).versions)


def demo_hub() -> Hub:
    """A hub with the room `demo`, made by avery."""
    hub = Hub()
    hub.room()
    return hub
