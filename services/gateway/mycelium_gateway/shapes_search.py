"""What a search of memory found, as the JSON that callers get."""

from __future__ import annotations

from mycelium.memory.v1 import search_pb2
from mycelium_gateway.shapes import Json, moment


def found(reply: search_pb2.SearchDocumentsResponse) -> Json:
    """The best sections first."""
    return {"items": [_section(one) for one in reply.sections], "meaning": meaning(reply.meaning)}


def renewed(reply: search_pb2.RenewVectorsResponse) -> Json:
    """What is being indexed again."""
    return {"documents": reply.documents, "meaning": meaning(reply.meaning)}


def meaning(state: search_pb2.MeaningState) -> Json:
    """How far the search by meaning goes."""
    return {"model": state.model or None, "why_not": state.why_not or None, "waiting": state.waiting}


def _section(one: search_pb2.FoundSection) -> Json:
    document = one.document
    return {
        "key": document.key,
        "section": one.section,
        "title": one.title,
        "text": one.text,
        "cut": one.cut,
        "found_by": [way for way, place in (("words", one.by_words), ("meaning", one.by_meaning)) if place],
        "score": round(one.score, 4),
        "version": document.version,
        "tags": list(document.content.tags),
        "updated_by": document.updated_by,
        "updated_at": moment(document.updated_at),
    }
