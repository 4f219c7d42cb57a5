"""Decisions on files that were edited by hand: each becomes a version, or a removal, and nothing is lost by it."""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, files_pb2, views_pb2
from mycelium_kernel import clock
from mycelium_kernel.callers import speaker
from mycelium_kernel.service import Context, Done, Fact
from mycelium_memory import commands_content
from mycelium_memory.commands_documents import Writing, key_taken


def take_file(loaded: Writing, request: files_pb2.TakeFileRequest, context: Context) -> Fact | Done:
    """A file that says what is there already makes no version. Refused when it is no document as it stands.

    One that was not written from the version that is there wins all the same: both can be read, and the answer says so.
    """
    there = loaded.there
    if not request.HasField("file"):
        return _remove(loaded, request, context)
    if there and there.key != loaded.key:
        raise key_taken(loaded, there)
    content = commands_content.of_file(request.file)
    if there and content == loaded.content:
        return Done(files_pb2.TakeFileResponse(version=there.version))
    before, author = loaded.entity.state, speaker(context)
    now = clock.not_before(before.updated_at, context.now) if before else clock.to_timestamp(context.now)
    event = events_pb2.DocumentWritten(
        room_id=loaded.room.id,
        room=loaded.room.name,
        key=loaded.key,
        content=content,
        version=(before.version if before else 0) + 1,
        created_by=there.created_by if there else author,
        created_at=there.created_at if there else now,
        updated_by=author,
        updated_at=now,
        thread=before.thread if before else context.new_id(),
        origin=views_pb2.ORIGIN_FILE,
        moved_from=request.moved_from,
        conflicted=_conflicts(loaded, request),
    )
    if there:
        replaced = views_pb2.Replaced(version=there.version, updated_by=there.updated_by, updated_at=there.updated_at)
        event.replaced.CopyFrom(replaced)
    return Fact(event, on=loaded.entity)


def answer_take(
    event: events_pb2.DocumentWritten | events_pb2.DocumentRemoved, _sequence: int
) -> files_pb2.TakeFileResponse:
    return files_pb2.TakeFileResponse(version=event.version, changed=True, conflicted=event.conflicted)


def _remove(loaded: Writing, request: files_pb2.TakeFileRequest, context: Context) -> Fact | Done:
    """A document that was written since is not removed with the file of the version before."""
    there, state = loaded.there, loaded.entity.state
    if there is None or _conflicts(loaded, request):
        conflicted = there is not None
        return Done(files_pb2.TakeFileResponse(version=state.version if state else 0, conflicted=conflicted))
    event = events_pb2.DocumentRemoved(
        room_id=loaded.room.id,
        room=loaded.room.name,
        key=there.key,
        version=there.version + 1,
        removed_by=speaker(context),
        removed_at=clock.not_before(there.updated_at, context.now),
        origin=views_pb2.ORIGIN_FILE,
    )
    return Fact(event, on=loaded.entity)


def _conflicts(loaded: Writing, request: files_pb2.TakeFileRequest) -> bool:
    """Whether the version that is there is another than the one that the file was written from."""
    return request.HasField("seen") and request.seen != (loaded.there.version if loaded.there else 0)
