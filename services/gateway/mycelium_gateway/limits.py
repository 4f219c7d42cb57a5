"""Stops bodies that are too large while they arrive, so that none is ever held whole.

The connection stays open: the server drops the rest of the body as it comes, and the client lives to read the answer.
"""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mycelium_gateway import problems

BODY_BYTES = 1024 * 1024
DOCUMENT_BYTES = 4 * 1024 * 1024  # half a megabyte of text has up to six times as many bytes in JSON
DOCUMENT = re.compile(r"/api/rooms/[^/]+/memory/.+")
STREAMED = frozenset({"/api/rooms/import"})  # has a bound of its own, and is never held whole
DETAIL = "the body is larger than {limit} bytes"


class BodyLimitMiddleware:
    """Answers 413 to a body over its limit: by its announced length at once, else when it has grown over it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on with a counting `receive`, or answer with a problem."""
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD"} or scope["path"] in STREAMED:
            await self._app(scope, receive, send)
            return
        limit = DOCUMENT_BYTES if DOCUMENT.fullmatch(scope["path"]) else BODY_BYTES
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if length.isdigit() and int(length) <= limit:
            await self._app(scope, receive, send)  # the server holds the client to the length that it announced
        elif length:
            document = problems.document("content.too_large", DETAIL.format(limit=limit))
            await problems.response(document)(scope, receive, send)
        else:
            await self._app(scope, counted(receive, limit), send)


def counted(receive: Receive, limit: int) -> Receive:
    """A `receive` that raises as soon as more than `limit` bytes have come."""
    total = 0

    async def counting() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise HTTPException(413, DETAIL.format(limit=limit))
        return message

    return counting
