"""Makes tasks: a document of memory's, under a key that its title gives. Equal titles never share a key."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING

from google.protobuf.message import Message

from mycelium.board.v1 import service_pb2
from mycelium.memory.v1 import service_pb2 as memory_pb2
from mycelium_board import edges, lookup, options, queries
from mycelium_board.model import OPEN
from mycelium_kernel import names, rooms_seen, subjects
from mycelium_kernel.callers import RoomRow, speaker, unregistered
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Context

if TYPE_CHECKING:
    from mycelium_kernel.run import Runtime

TITLE_CHARACTERS, PRIORITY_CHARACTERS = 200, 40
KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
KEY_CHARACTERS = 60
MOST_OPTIONS, OPTION_CHARACTERS = 50, 200
TRIES = 100  # of keys that end with a number
TAKEN = {"memory.stale", "memory.key_taken", "key.reused"}
BROKEN = {"Cc", "Cs", "Zl", "Zp"}  # categories of characters that a line can't have
FOLDERS = {"decision": "decisions"}  # where a kind is written; everything else is work


async def create_task(
    runtime: Runtime, request: service_pb2.CreateTaskRequest, context: Context
) -> tuple[Message, int]:
    """Write the document, and answer with its row. A repeat under the same key finds what the first one wrote.

    All tries have one key, so memory knows what was written under it: then only that try is let through.
    """
    tables = runtime.tables
    assert tables is not None
    assert runtime.projector is not None
    await runtime.projector.catch_up()
    by, title = speaker(context), _title(request.title)
    room = rooms_seen.find_room(tables, request.room, context)
    fields = _fields(runtime, request, room, title)
    step, used = subjects.digest(f"{context.key}\ntask"), None
    for key in _keys(request.kind, title, context):
        wanted = memory_pb2.WriteDocumentRequest(
            room=room.id, key=key, body=request.body, fields_json=json.dumps(fields, ensure_ascii=False), expect=0
        )
        try:
            reply = await runtime.bus.ask(wanted, memory_pb2.WriteDocumentResponse, actor=context.actor, key=step)
        except Refusal as refusal:
            if refusal.slug not in TAKEN:
                raise
            used = refusal if refusal.slug == "key.reused" else used
            continue
        await runtime.projector.wait(reply.sequence)
        row = queries.row(tables, room, reply.message.document.key, context.now)
        return service_pb2.CreateTaskResponse(row=row), reply.sequence
    raise used or Refusal("conflict", f"{TRIES} tasks have this title; give it another", by=by)


def _title(text: str) -> str:
    title = " ".join(text.split())
    if not title:
        raise Refusal("content.empty", "a task needs a title", next='mycelium board new "what is to be done"')
    if len(title) > TITLE_CHARACTERS:
        detail = f"a title has at most {TITLE_CHARACTERS} characters, not {len(title):,}; say the rest in the body"
        raise Refusal("content.too_large", detail)
    if any(unicodedata.category(character) in BROKEN for character in title):
        raise Refusal("request.invalid", "a title can't contain line breaks or control characters")
    return title


def _fields(
    runtime: Runtime, request: service_pb2.CreateTaskRequest, room: RoomRow, title: str
) -> dict[str, str | list[str]]:
    tables = runtime.tables
    assert tables is not None
    fields: dict[str, str | list[str]] = {"title": title, "status": OPEN}
    if request.kind:
        if not KIND.fullmatch(request.kind):
            raise Refusal("request.invalid", f"kind is one word in lower case, not {request.kind[:40]!r}")
        fields["kind"] = request.kind
    if request.assignee:
        handle = names.handle(request.assignee)
        if not rooms_seen.is_registered(tables, room, handle):
            raise unregistered(room.name, handle)
        fields["assignee"] = f"@{handle}"
    if request.parent:
        fields[edges.PART_OF] = lookup.find_task(tables, room, request.parent).key
    if len(request.depends_on) > edges.MOST:
        raise Refusal("content.too_large", f"a task comes after {edges.MOST:,} others at most")
    if first := list(dict.fromkeys(lookup.find_task(tables, room, one).key for one in request.depends_on)):
        fields[edges.DEPENDS_ON] = first
    if priority := " ".join(request.priority.split()):
        fields["priority"] = _priority(priority)
    answers = offered(list(request.options))
    return {**fields, options.FIELD: answers} if answers else fields


def _priority(text: str) -> str:
    if len(text) > PRIORITY_CHARACTERS:
        detail = f"a priority has at most {PRIORITY_CHARACTERS} characters, not {len(text):,}"
        raise Refusal("content.too_large", detail)
    if any(unicodedata.category(character) in BROKEN for character in text):
        raise Refusal("request.invalid", "a priority can't contain control characters")
    return text


def offered(texts: list[str]) -> list[str]:
    """The answers that a decision is to have, each once."""
    found = options.offered({options.FIELD: [" ".join(text.split()) for text in texts]})
    if len(found) > MOST_OPTIONS or any(len(one) > OPTION_CHARACTERS for one in found):
        detail = f"a decision has at most {MOST_OPTIONS} options of {OPTION_CHARACTERS} characters each"
        raise Refusal("content.too_large", detail)
    return found


def _keys(kind: str, title: str, context: Context) -> list[str]:
    """Where the task may be written, the best place first."""
    folder = FOLDERS.get(kind, "work")
    name = slug(title)
    if not name:
        return [f"{folder}/task-{subjects.digest(f'{context.actor.handle} {context.key}')[:8]}"]
    return [f"{folder}/{name}", *(f"{folder}/{name}-{number}" for number in range(2, TRIES + 1))]


def slug(title: str) -> str:
    """The words of a title in plain letters and digits, with dashes between; empty when nothing is left."""
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    whole = "-".join(re.findall(r"[a-z0-9]+", plain.replace("'", "")))
    return (
        whole if len(whole) <= KEY_CHARACTERS else whole[:KEY_CHARACTERS].rpartition("-")[0] or whole[:KEY_CHARACTERS]
    )
