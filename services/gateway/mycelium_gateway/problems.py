"""What a request is answered that fails: an RFC 9457 document, made from the table of slugs (`slugs`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mycelium_gateway import head
from mycelium_gateway.slugs import SLUGS
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
