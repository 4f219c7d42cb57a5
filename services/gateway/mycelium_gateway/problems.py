"""Every way in which a request can fail: one table of slugs, and the RFC 9457 documents made from it.

A slug is public interface: it never changes its meaning. Services name slugs in refusals; only this table says which
HTTP status each has. `reference.py` prints the table for the docs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mycelium_gateway import head
from mycelium_kernel.clock import new_id
from mycelium_kernel.errors import Internal, Refusal, Unavailable

LOGGER = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = {429: "1", 503: "1", 507: "30"}
# Extras that are one value, not several, and what each is.
ONE: dict[str, Callable[[str], Any]] = {
    "version": int,
    "updated_by": str,
    "updated_at": str,
    "holder": str,
    "pattern": str,
    "expires_at": str,
    "task": str,
    "thread": str,
    "sequence": int,
}
RESERVED = frozenset({"type", "title", "status", "detail", "slug", "next", "key"})
# What any route may answer, whatever it does.
EVERYWHERE = (
    "request.invalid",
    "handle.invalid",
    "host.refused",
    "origin.refused",
    "token.missing",
    "token.refused",
    "handle.forbidden",
    "auth.refused",
    "rate.limited",
    "auth.unavailable",
    "unavailable",
    "deadline.passed",
    "internal",
)
# What any write may answer beside that.
WRITING = ("handle.missing", "key.reused", "conflict", "store.full")


@dataclass(frozen=True)
class Slug:
    """One reason: its HTTP status, a sentence for people, and what the caller should do."""

    status: int
    title: str
    remedy: str


SLUGS: dict[str, Slug] = {
    "request.invalid": Slug(
        422, "The request is not valid", "Change what `detail` and `errors` name and send it again."
    ),
    "name.invalid": Slug(422, "The room name is not allowed", "Choose a name that follows the rules for room names."),
    "handle.invalid": Slug(
        422, "The handle is not allowed", "Use 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit."
    ),
    "handle.missing": Slug(
        422, "No handle was given", "Say who calls: header `Mycelium-Handle`, or the handle in the body."
    ),
    "mention.unknown": Slug(
        422, "A mentioned handle is unknown", "Correct it (see `near`), or send `allow_unknown` to post it anyway."
    ),
    "content.invalid": Slug(422, "The text can't be stored", "Remove what `detail` names from the text."),
    "content.empty": Slug(422, "The text is empty", "Send a text that is more than blanks."),
    "event.not_an_event": Slug(422, "The message is no event", "Only events have a status; reply to it instead."),
    "key.reused": Slug(422, "The idempotency key was used for another request", "Use a new key for a new request."),
    "room.import_refused": Slug(
        422, "The bundle makes no room", "Export the room again; a bundle that was cut or altered is refused whole."
    ),
    "memory.key_invalid": Slug(
        422, "The key is not allowed", "Choose a key that follows the rules for keys; `detail` says which is broken."
    ),
    "memory.field_invalid": Slug(422, "A field can't be kept", "Change what `detail` names; nothing was written."),
    "memory.field_managed": Slug(
        422,
        "The field is the hub's own",
        "Choose another name; the hub writes key, version, authors, times and thread.",
    ),
    "memory.file_invalid": Slug(422, "The file is no document", "Change what `detail` names; it is left as it is."),
    "memory.links_too_many": Slug(422, "The document has too many links", "Split it; nothing was written."),
    "memory.tag_invalid": Slug(422, "A tag can't be kept", "Change what `detail` names; nothing was written."),
    "presence.invalid": Slug(422, "That is no presence", "Send `state` idle, working or blocked, `ttl_s` 5 to 600."),
    "content.too_large": Slug(413, "The text is too large", "Send less: `detail` says how much is allowed."),
    "token.missing": Slug(401, "Sign in first", "Send a token: `Authorization: Bearer ...`."),
    "token.refused": Slug(
        401, "The token is not accepted", "Get a new one; `detail` says what is wrong with this one."
    ),
    "auth.refused": Slug(403, "Not allowed for this caller", "Ask somebody who may, or sign in as somebody else."),
    "handle.unregistered": Slug(
        403, "The handle is not a registered agent or user", "Register it first; `next` holds the command."
    ),
    "handle.mismatch": Slug(
        403, "Two handles in one request", "Name one caller: header and body must name the same handle."
    ),
    "handle.forbidden": Slug(
        403, "The token is another handle's", "Leave the handle out, or name the one that the token is for."
    ),
    "acting.forbidden": Slug(
        403, "The caller may not act for this handle", "Have its owner name the caller as `owner` or in `allow_from`."
    ),
    "sign_in.failed": Slug(
        403, "You are not signed in", "Begin again at `/api/auth/login`, in the browser that is to be signed in."
    ),
    "join.refused": Slug(
        403,
        "The code lets nobody in",
        "Ask for a new one: a code is good once, for ten minutes, at the hub it is from.",
    ),
    "record.foreign": Slug(
        403, "The record is somebody else's", "Ask whom `detail` names, or sign in as them; nothing was changed."
    ),
    "message.not_yours": Slug(403, "The message belongs to somebody else", "Only its sender can change a message."),
    "host.refused": Slug(
        403,
        "The hub does not answer to this name",
        "Call it by its own address, or add the name to the setting `runtime.allowed_hosts`.",
    ),
    "origin.refused": Slug(
        403, "Pages of another origin may not call the hub", "Open the page from the hub itself; CORS is closed."
    ),
    "sign_in.off": Slug(
        404, "Nobody signs in by a browser here", "Set `oidc.issuer` and `auth.session_secret`, with `auth.enabled` on."
    ),
    "room.not_found": Slug(404, "Room not found", "List the rooms, or create it first."),
    "member.not_found": Slug(404, "Member not found", "List the room's members, or add it first."),
    "engine.not_found": Slug(
        404, "No such engine", "List the room's engines, or add it; a member has its own address."
    ),
    "user.not_found": Slug(404, "User not found", "List the users, or create it first."),
    "message.not_found": Slug(404, "Message not found", "Take an id from the room's messages."),
    "thread.not_found": Slug(404, "Thread not found", "Take an id from the room's messages."),
    "delivery.not_found": Slug(
        404, "Delivery not found", "Take the `ack` of an answer of await, with the same handle and seat."
    ),
    "memory.not_found": Slug(404, "No such memory", "List the room's memory, or take one of `near`."),
    "subscription.not_found": Slug(404, "There is no such subscription", "List them; the pattern must be the same."),
    "task.not_found": Slug(404, "No such task", "Show the room's board, or take one of `near`."),
    "memory.version_not_found": Slug(404, "The memory was not there then", "List its versions: `?view=versions`."),
    "route.not_found": Slug(404, "No such address", "See /docs for what there is."),
    "method.not_allowed": Slug(
        405, "This address does not take that method", "Use one of the methods in header `Allow`."
    ),
    "room.name_taken": Slug(409, "The room name is taken", "Use that room, or choose another name."),
    "handle.taken": Slug(
        409,
        "The handle is taken, or can be taken for another",
        "Choose another handle, or change the existing record.",
    ),
    "name.taken": Slug(409, "The name can be taken for another's", "Choose another name; `detail` says whose it is."),
    "memory.key_taken": Slug(
        409,
        "A key that a disk may take for the same is there",
        "Write to that one (see `near`), or choose another key.",
    ),
    "join.other_member": Slug(
        409, "The code is another member's", "Nothing was done; use it elsewhere, or without naming a member."
    ),
    "claim.held": Slug(
        409, "Somebody else holds the task", "Wait until `expires_at`, ask `holder`, or take another task."
    ),
    "claim.none": Slug(409, "Nobody holds the task", "Claim it first; `next` holds the command."),
    "reservation.held": Slug(
        409, "Somebody else has reserved it", "Wait until `expires_at`, ask `holder`, or work on something else."
    ),
    "reservation.none": Slug(409, "You have not reserved it", "Reserve it first; `next` holds the command."),
    "reservation.full": Slug(409, "Too many reservations", "Release some, or reserve a folder in place of its files."),
    "lease.lost": Slug(
        409, "The claim has ended", "Stop: somebody else may have begun. Look at the task before you claim it again."
    ),
    "task.waiting": Slug(
        412, "The task waits for others", "Close those in `waits_for` first, or claim it by force; `next` does that."
    ),
    "task.closed": Slug(409, "The task is closed", "Open it again first; `next` holds the command."),
    "row.unchangeable": Slug(
        409, "The row is no task", "Rows whose `source` is no memory show what goes on elsewhere; change it there."
    ),
    "task.not_blocked": Slug(409, "The task is not blocked", "There is nothing to clear."),
    "id.ambiguous": Slug(409, "The short id fits more than one", "Use the full id; `candidates` holds them."),
    "event.expired": Slug(409, "The event's time is over", "Post a new one; this one stays in history as it is."),
    "conflict": Slug(409, "Others changed it at the same moment", "Look at it again and retry."),
    "memory.stale": Slug(
        412, "Another version is there", "Read it (`version`, `updated_by` say which), merge, and write expecting that."
    ),
    "request.timed_out": Slug(
        408, "The request did not come in time", "Send it again, whole; the connection is closed."
    ),
    "request.head_too_large": Slug(
        431, "The request's head is too large", "Send a shorter address and fewer headers; the connection is closed."
    ),
    "rate.limited": Slug(429, "Too many requests", "Wait for `Retry-After` seconds."),
    "unavailable": Slug(
        503, "A part of the hub does not answer", "Retry after `Retry-After` seconds with the same key."
    ),
    "auth.unavailable": Slug(
        503, "Sign-in does not work at the moment", "Retry after `Retry-After` seconds; `/health` says what is set."
    ),
    "store.full": Slug(
        507, "The hub's disk is full", "Free space on the hub's disk, then retry after `Retry-After` seconds."
    ),
    "deadline.passed": Slug(503, "It was not done in time", "Nothing was done; retry with the same key."),
    "internal": Slug(500, "A fault in the hub", "Report it with the `key`: the hub's log holds the details under it."),
}


def document(slug: str, detail: str, next_command: str = "", **extras: Any) -> dict[str, Any]:
    """The problem document of one failure."""
    entry = SLUGS[slug]
    body: dict[str, Any] = {
        "type": f"about:blank#{slug}",
        "title": entry.title,
        "status": entry.status,
        "detail": detail,
        "slug": slug,
    }
    if next_command:
        body["next"] = next_command
    body.update((name, value) for name, value in extras.items() if name == "key" or name not in RESERVED)
    return body


def response(body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """A problem document as an answer."""
    all_headers = dict(headers or {})
    if body["status"] == 401:
        all_headers.setdefault("WWW-Authenticate", _challenge(body))
    if body["status"] in RETRY_AFTER_S:
        all_headers.setdefault("Retry-After", RETRY_AFTER_S[body["status"]])
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, int(body["status"]), all_headers, MEDIA_TYPE)


def _challenge(body: Mapping[str, Any]) -> str:
    """What a 401 asks for (RFC 6750): a token, and what was wrong with the one that was sent."""
    if body["slug"] == "token.missing":
        return "Bearer"
    why = "".join(character for character in str(body["detail"]) if " " <= character <= "~" and character not in '"\\')
    return f'Bearer error="invalid_token", error_description="{why}"'


def of_refusal(refusal: Refusal) -> dict[str, Any]:
    """The document of a refusal. A slug that is not in the table is a fault of ours, and told as one."""
    if refusal.slug not in SLUGS:
        return of_fault(refusal, f"a refusal with the unlisted slug {refusal.slug!r}")
    extras = {name: ONE[name](values[0]) if name in ONE else values for name, values in refusal.extras.items()}
    return document(refusal.slug, refusal.detail, refusal.next, **extras)


def of_unavailable(error: Unavailable) -> dict[str, Any]:
    """The document for a part that did not answer in time."""
    slug = error.slug if error.slug in SLUGS else "unavailable"
    return document(slug, str(error) or SLUGS[slug].title)


def of_internal(error: Internal) -> dict[str, Any]:
    """The document for a bug in a service, which has logged it under the key."""
    return document("internal", "the hub has logged the fault under this key", key=error.key)


def of_fault(error: BaseException, where: str) -> dict[str, Any]:
    """The document for a bug of the gateway, logged here, once; the caller learns the key and nothing else."""
    key = new_id()
    LOGGER.error("unexpected fault %s in %s", key, where, exc_info=error)
    return document("internal", "the hub has logged the fault under this key", key=key)


async def answer_refusal(_request: Request, error: Exception) -> Response:
    """Exception handler for refusals."""
    assert isinstance(error, Refusal)
    return response(of_refusal(error))


async def answer_unavailable(_request: Request, error: Exception) -> Response:
    """Exception handler for parts that did not answer."""
    assert isinstance(error, Unavailable)
    return response(of_unavailable(error))


async def answer_internal(_request: Request, error: Exception) -> Response:
    """Exception handler for bugs that a service has logged."""
    assert isinstance(error, Internal)
    return response(of_internal(error))


async def answer_http(request: Request, error: Exception) -> Response:
    """Exception handler for what the web framework refuses itself."""
    assert isinstance(error, HTTPException)
    where = f"{request.method} {request.url.path}"
    if error.status_code == 404:
        return response(document("route.not_found", f"there is nothing at {request.url.path}"))
    if error.status_code == 405:
        allowed = methods(request)
        detail = f"{request.url.path} takes {', '.join(allowed)}, not {request.method}"
        return response(document("method.not_allowed", detail), {"Allow": ", ".join(allowed)})
    if error.status_code == 413:
        return response(document("content.too_large", str(error.detail)))
    if isinstance(error.__cause__, ClientDisconnect):  # it left in the middle of its body
        return Response(status_code=400)  # to nobody
    return response(of_fault(error, where))


def methods(request: Request) -> list[str]:
    """The methods that some route takes at the request's path."""
    found: set[str] = set()
    for route in request.app.routes:
        if route.path_regex.match(request.scope["path"]):
            found |= route.methods
    if "GET" in found and head.is_served(request.scope["path"]):
        found.add("HEAD")
    return sorted(found)


def responses(*slugs: str) -> dict[int | str, dict[str, Any]]:
    """What a route declares for the OpenAPI document: the slugs that it may answer, by status."""
    declared: dict[int | str, dict[str, Any]] = {}
    for slug in sorted({*slugs, *EVERYWHERE}):
        entry = SLUGS[slug]
        there = declared.setdefault(
            entry.status,
            {"description": "", "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}},
        )
        there["description"] += f"{', ' if there['description'] else ''}`{slug}`"
    return declared
