"""The decision on a version that a move of the document's task asks for.

Only the board may ask, and NATS vouches for who asks. So what a fact says of a move is true whatever key, handle or
session a caller chooses: none of its writes says anything of one.
"""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, moves_pb2, service_pb2, views_pb2
from mycelium_kernel.service import Context, Fact
from mycelium_memory import commands_content
from mycelium_memory.commands_documents import Writing, next_version, not_found


def follow_move(loaded: Writing, request: moves_pb2.FollowMoveRequest, context: Context) -> Fact:
    """Refused when the document is gone, or has no room for what the move asks."""
    if loaded.there is None:
        raise not_found(loaded.room, loaded.key, [])
    changes = service_pb2.WriteDocumentRequest(fields_json=request.fields_json)
    content = commands_content.merged(loaded.content, changes)
    event = next_version(loaded, content, views_pb2.ORIGIN_CALL, context, by=request.by)
    event.moved.CopyFrom(request.moved)
    return Fact(event, on=loaded.entity)


def answer_follow(event: events_pb2.DocumentWritten, _sequence: int) -> moves_pb2.FollowMoveResponse:
    return moves_pb2.FollowMoveResponse(version=event.version)
