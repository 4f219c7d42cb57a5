"""Memory of a room: write, read, list, remove documents; every version of them."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from mycelium.memory.v1 import files_pb2, service_pb2
from mycelium_gateway import problems, shapes_memory
from mycelium_gateway.actor import Call, Caller
from mycelium_gateway.answers import answer, done
from mycelium_gateway.routes import links
from mycelium_gateway.routes.plain import PlainRoute
from mycelium_gateway.schemas import memory as schemas
from mycelium_gateway.schemas.links import DocumentLinks, ExpandedMemory
from mycelium_kernel.errors import Refusal

router = APIRouter(prefix="/api/rooms/{room}/memory", tags=["memory"], route_class=PlainRoute)
ETAG = re.compile(r'"([0-9]{1,18})"')
NUMBER = re.compile(r"[0-9]{0,18}", re.ASCII)
IfMatch = Annotated[str, Header(alias="If-Match", description="The `ETag` that the document has to have.")]
IfNoneMatch = Annotated[str, Header(alias="If-None-Match", description="`*`: there must be no such document.")]
Found = service_pb2.GetDocumentResponse | service_pb2.GetVersionResponse
KEYS = "Slashes of a key may stand as they are, or as `%2F`."
READING = ("room.not_found", "memory.not_found", "memory.key_invalid")
CHANGING = (*READING, "memory.stale", "handle.mismatch", *problems.WRITING)
WRITING = (
    "memory.key_taken",
    "memory.field_managed",
    "memory.field_invalid",
    "memory.tag_invalid",
    "memory.links_too_many",
    "content.invalid",
    "content.too_large",
    *CHANGING,
)
WRITTEN: dict[int | str, dict[str, Any]] = {200: {"model": schemas.WrittenMemory, "description": "A further version."}}
RAW: dict[int | str, dict[str, Any]] = {
    200: {"description": "As `view` says.", "content": {"text/markdown": {"schema": {"type": "string"}}}}
}


@router.get(
    "",
    response_model=schemas.MemoryPage | schemas.FileProblems,
    summary="List memory by key",
    description="A page ends at 512 KB. `view=problems` lists the files that are no documents as they stand.",
    responses=problems.responses("room.not_found"),
)
async def list_memory(room: str, wanted: Annotated[schemas.Listed, Query()], call: Caller) -> Response:
    if wanted.view == "problems":
        found = await call.ask(files_pb2.ListProblemsRequest(room=room), files_pb2.ListProblemsResponse)
        return answer(shapes_memory.problems(found.message))
    request = service_pb2.ListDocumentsRequest(
        room=room,
        prefix=wanted.prefix,
        tag=wanted.tag,
        at=wanted.at,
        zone=wanted.tz,
        cursor=wanted.cursor,
        limit=wanted.limit,
        brief=wanted.brief,
    )
    reply = await call.ask(request, service_pb2.ListDocumentsResponse)
    return answer(shapes_memory.listed(reply.message, brief=wanted.brief or bool(wanted.at)))


@router.put(
    "/{key:path}",
    status_code=201,
    response_model=schemas.WrittenMemory,
    summary="Write a document, whole or in part",
    description=f"A new document, or a new version of one. Fields and tags that are not given stay. {KEYS}",
    responses={**WRITTEN, **problems.responses(*WRITING)},
)
async def write_memory(
    room: str,
    key: str,
    body: schemas.MemoryChange,
    call: Caller,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
) -> Response:
    if "value" not in body.model_fields_set:
        raise Refusal("request.invalid", "body.value: is missing; PATCH changes the rest of a document")
    return await _write(room, key, body, call, expected(if_match, if_none_match, body.expect))


@router.patch(
    "/{key:path}",
    response_model=schemas.WrittenMemory,
    summary="Change fields, tags or the text of a document that is there",
    description=KEYS,
    responses=problems.responses(*WRITING),
)
async def change_memory(
    room: str, key: str, body: schemas.MemoryChange, call: Caller, if_match: IfMatch = ""
) -> Response:
    if not body.model_fields_set - {"handle", "expect"}:
        raise Refusal("request.invalid", "body: nothing to change; send value, meta, tags, expandable or embed")
    return await _write(room, key, body, call, expected(if_match, "", body.expect))


async def _write(room: str, key: str, body: schemas.MemoryChange, call: Call, expect: int | None) -> Response:
    request = service_pb2.WriteDocumentRequest(
        room=room,
        key=key,
        fields_json=_json("meta", body.meta) if body.meta else "",
        tags=service_pb2.Tags(tags=body.tags) if body.tags is not None else None,
        expandable=body.expandable,
        unsearched=not body.embed if body.embed is not None else None,
        expect=expect,
    )
    if "value" in body.model_fields_set:
        if isinstance(body.value, str):
            request.body = body.value
        else:
            request.value_json = _json("value", body.value)
    reply = await call.named(body.handle).ask(request, service_pb2.WriteDocumentResponse)
    document = reply.message.document
    status = 200 if document.HasField("replaced") else 201
    return _tagged(answer(shapes_memory.written(document), status, sequence=reply.sequence), document.version)


def _json(what: str, value: object) -> str:
    """JSON that every reader can take: NaN is none."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise Refusal("request.invalid", f"body.{what}: {error}") from None


def expected(if_match: str, if_none_match: str, expect: int | None) -> int | None:
    """The version that a write expects, by header or body; both must say the same."""
    found = {expect} - {None}
    if if_match.strip():
        tag = ETAG.fullmatch(if_match.strip())
        if tag is None:
            raise Refusal("request.invalid", f'header If-Match is {if_match[:40]!r}: send one ETag, such as "3"')
        found.add(int(tag[1]))
    if if_none_match.strip():
        if if_none_match.strip() != "*":
            raise Refusal("request.invalid", f"header If-None-Match is {if_none_match[:40]!r}: send *")
        found.add(0)
    if len(found) > 1:
        raise Refusal("request.invalid", "the headers and body.expect expect different versions")
    return found.pop() if found else None


@router.get(
    "/{key:path}",
    response_model=schemas.Memory | schemas.VersionPage | DocumentLinks | ExpandedMemory,
    summary="Read a document, as it is or as it was, or list its versions or links",
    description=KEYS,
    responses={**RAW, **problems.responses(*READING, "memory.version_not_found")},
)
async def get_memory(room: str, key: str, wanted: Annotated[schemas.Viewed, Query()], call: Caller) -> Response:
    _check(wanted)
    if wanted.view == "versions":
        asked = service_pb2.ListVersionsRequest(room=room, key=key, before=int(wanted.cursor or 0), limit=wanted.limit)
        versions = await call.ask(asked, service_pb2.ListVersionsResponse)
        return answer(shapes_memory.versions(versions.message))
    if wanted.view == "links":
        return await links.links_of(room, key, wanted.cursor, wanted.limit, call)
    if wanted.expand:
        return await links.expanded(room, key, call)
    is_raw = wanted.view == "raw"
    if wanted.version is not None or wanted.at:
        was = service_pb2.GetVersionRequest(room=room, key=key, zone=wanted.tz, as_file=is_raw)
        if wanted.at:
            was.at = wanted.at
        else:
            was.version = wanted.version or 0
        found: Found = (await call.ask(was, service_pb2.GetVersionResponse)).message
    else:
        current = service_pb2.GetDocumentRequest(room=room, key=key, as_file=is_raw)
        found = (await call.ask(current, service_pb2.GetDocumentResponse)).message
    shown = Response(found.file, media_type="text/markdown") if is_raw else answer(shapes_memory.memory(found.document))
    return _tagged(shown, found.document.version)


def _check(wanted: schemas.Viewed) -> None:
    """Refused for parameters of which one would be passed over."""
    was = wanted.version is not None or bool(wanted.at)
    if wanted.version is not None and wanted.at:
        raise Refusal("request.invalid", "query: version and at can't both be meant")
    if wanted.expand and (was or wanted.view != "document"):
        raise Refusal(
            "request.invalid",
            "query: expand shows a document with others as they are now; leave view, version and at away",
        )
    if wanted.view == "links" and was:
        raise Refusal("request.invalid", "query: links are shown as they are now; leave version and at away")
    if wanted.view == "versions" and not NUMBER.fullmatch(wanted.cursor):
        raise Refusal("request.invalid", f"query.cursor is {wanted.cursor[:40]!r}: send `next` of the page before")


def _tagged(response: Response, version: int) -> Response:
    response.headers["ETag"] = f'"{version}"'
    return response


@router.delete(
    "/{key:path}",
    status_code=204,
    summary="Remove a document",
    description=f"Its versions can still be read. {KEYS}",
    responses=problems.responses(*CHANGING),
)
async def remove_memory(
    room: str, key: str, wanted: Annotated[schemas.Expected, Query()], call: Caller, if_match: IfMatch = ""
) -> Response:
    request = service_pb2.RemoveDocumentRequest(room=room, key=key, expect=expected(if_match, "", wanted.expect))
    return done((await call.named(None).ask(request, service_pb2.RemoveDocumentResponse)).sequence)
