"""What memory does about its own facts: who subscribed to a document is woken by its changes.

The rooms service stores what happened in the document's own thread, together with the deliveries. Its key is made from
the document and the version, so that a change is told once, however often this runs and on however many replicas.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mycelium.memory.v1 import events_pb2, views_pb2
from mycelium.rooms.v1 import notices_pb2
from mycelium.rooms.v1 import views_pb2 as rooms_views_pb2
from mycelium_kernel import subjects
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor, Reaction, Stored
from mycelium_memory.model import DOCUMENT, MEMORY
from mycelium_memory.subscriptions import subscribers

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

Event = events_pb2.DocumentWritten | events_pb2.DocumentRemoved
OF_ITSELF = Actor("memory:", "")  # no handle is written so: nobody outside can use up a key of ours
TOLD = {"key.reused", "room.not_found"}  # told before, when others had subscribed; nobody is left to be told


async def _wake(runtime: Runtime, event: Event, stored: Stored) -> None:
    assert runtime.projector
    await runtime.projector.wait(stored.sequence)
    tables = runtime.projector.tables
    author = event.removed_by if isinstance(event, events_pb2.DocumentRemoved) else event.updated_by
    handles = subscribers(tables, event.room_id, event.key, stored.sequence, author)
    if not handles or event.origin == views_pb2.ORIGIN_IMPORT:
        return
    state = tables.entity(stored.subject, events_pb2.DocumentState).state
    if state is None:  # the room is gone
        return
    request = _notice(event, author, state.thread)
    reason = rooms_views_pb2.DELIVERY_REASON_CHANGED
    request.deliveries.extend(notices_pb2.NoticeDelivery(handle=handle, reason=reason) for handle in handles)
    key = f"change {event.room_id} {subjects.identifier_of(stored.subject)} {event.version}"
    try:
        await runtime.bus.ask(request, notices_pb2.PostNoticeResponse, actor=OF_ITSELF, key=key)
    except Refusal as refusal:
        if refusal.slug not in TOLD:
            raise


def _notice(event: Event, author: str, thread: str) -> notices_pb2.PostNoticeRequest:
    """What happened, in one line, and never the text."""
    moved_from = ""
    if isinstance(event, events_pb2.DocumentRemoved):
        kind, what = "removed", f"{event.key} was removed"
    elif event.moved_from:
        kind, what, moved_from = "renamed", f"{event.key} was {event.moved_from} before", event.moved_from
    else:
        kind, what = "written", f"{event.key} is now at version {event.version}"
    told = {"key": event.key, "version": event.version, "change": kind, "moved_from": moved_from or None}
    return notices_pb2.PostNoticeRequest(
        room_id=event.room_id,
        message_type="change",
        kind=kind,
        sender_handle=author,
        thread=thread,
        content=f"{what}, by {author}",
        metadata_json=json.dumps(told, ensure_ascii=False),
        for_its_deliveries=True,
    )


WAKER = Reaction(
    "wakes",
    (events_pb2.DocumentWritten, events_pb2.DocumentRemoved),
    (subjects.of_kind(MEMORY, DOCUMENT),),
    _wake,
)
