"""What who starts to work in a room has to know, as the JSON that callers get."""

from __future__ import annotations

from collections.abc import Iterable

from mycelium.memory.v1 import catchup_pb2
from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import shapes, shapes_memory
from mycelium_gateway.shapes import Json, moment

TEXT_CHARACTERS = 2_000  # of a message
SINCE = {number: name.removeprefix("SINCE_WHAT_").lower() for name, number in catchup_pb2.SinceWhat.items()}


def memory(reply: catchup_pb2.CatchUpResponse) -> Json:
    """What memory knows of it."""
    synthesis = {**shapes_memory.memory(reply.synthesis), "cut": reply.cut} if reply.HasField("synthesis") else None
    return {
        "since": moment(reply.since),
        "since_what": SINCE[reply.since_what],
        "synthesis": synthesis,
        "documents": {"items": [change(view) for view in reply.documents], "more": reply.more},
    }


def change(view: catchup_pb2.ChangedDocument) -> Json:
    """A document that has changed."""
    return {
        "key": view.key,
        "version": view.version,
        "updated_by": view.updated_by,
        "updated_at": moment(view.updated_at),
        "removed": view.removed,
        "summary": view.summary,
        "thread": view.thread,
    }


def here(page: service_pb2.GetRoomResponse, limit: int) -> Json:
    """Members of a room that are here now: of the first page of them, since megabytes are not looked through."""
    present = [view for view in page.members if view.presence != views_pb2.PRESENCE_OFFLINE]
    return {
        "items": [shapes.member(view) for view in present[:limit]],
        "more": len(present) > limit or bool(page.next),
    }


def events(pages: Iterable[service_pb2.ListMessagesResponse], limit: int) -> Json:
    """Events of several pages, one for each status, as one list."""
    pages = list(pages)
    found = sorted((view for page in pages for view in page.messages), key=lambda view: view.sequence, reverse=True)
    more = len(found) > limit or any(page.older_before for page in pages)
    return {"items": [message(view) for view in found[:limit]], "more": more}


def messages(page: service_pb2.ListMessagesResponse) -> Json:
    """A page of messages."""
    older = page.older_before or None
    return {"items": [message(view) for view in page.messages], "more": older is not None, "older_before": older}


def message(view: views_pb2.Message) -> Json:
    """A message, of a long one the beginning."""
    shown = shapes.message(view)
    return {
        **shown,
        "content": shown["content"][:TEXT_CHARACTERS],
        "cut": len(shown["content"]) > TEXT_CHARACTERS,
    }
