"""Reads every version of a room's documents, page by page, for a bundle."""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, transfer_pb2
from mycelium_kernel import rooms_seen, subjects
from mycelium_kernel.service import Context
from mycelium_kernel.tables import PAGE_BYTES, Tables
from mycelium_kernel.tail import Page, Part
from mycelium_memory.commands_transfer import REMOVED, WRITTEN, read
from mycelium_memory.model import DOCUMENT, MEMORY

FACTS, FACTS_MOST = 500, 5_000


def export_part(tables: Tables, request: transfer_pb2.ExportDocumentsRequest, context: Context) -> Part:
    """The facts of its documents."""
    room = rooms_seen.find_room(tables, request.room, context)
    filters = (subjects.of_entities(MEMORY, room.id, DOCUMENT),)
    return Part(filters, request.after, min(request.limit or FACTS, FACTS_MOST))


def export_documents(
    tables: Tables, request: transfer_pb2.ExportDocumentsRequest, context: Context, page: Page
) -> transfer_pb2.ExportDocumentsResponse:
    """In the log's order."""
    rooms_seen.find_room(tables, request.room, context)
    answer = transfer_pb2.ExportDocumentsResponse(until=min(request.until or page.last, page.last))
    size = 0
    for raw in page.facts:
        if raw.sequence > answer.until or raw.type not in {WRITTEN, REMOVED}:
            continue
        fact = transfer_pb2.DocumentFact(sequence=raw.sequence, type=raw.type, data=raw.data)
        event = read(fact)
        fact.entity = f"{DOCUMENT}.{event.key}"
        at = event.removed_at if isinstance(event, events_pb2.DocumentRemoved) else event.updated_at
        fact.at.CopyFrom(at)
        size += fact.ByteSize()
        if answer.facts and size > PAGE_BYTES:
            break
        answer.facts.append(fact)
    answer.more = bool(answer.facts) and answer.facts[-1].sequence < answer.until
    return answer
