"""Decisions on files that were edited by hand: each becomes a version, or a removal, and nothing is lost by it."""

from __future__ import annotations

from mycelium.memory.v1 import events_pb2, files_pb2, views_pb2
from mycelium_kernel.service import Context, Done, Fact
from mycelium_memory import commands_content
from mycelium_memory.commands_documents import Writing, key_taken, next_version, removal


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
    event = next_version(loaded, content, views_pb2.ORIGIN_FILE, context)
    event.moved_from, event.conflicted = request.moved_from, _conflicts(loaded, request)
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
    return Fact(removal(loaded, there, views_pb2.ORIGIN_FILE, context), on=loaded.entity)


def _conflicts(loaded: Writing, request: files_pb2.TakeFileRequest) -> bool:
    """Whether the version that is there is another than the one that the file was written from."""
    return request.HasField("seen") and request.seen != (loaded.there.version if loaded.there else 0)
