"""Refuses addresses that name nothing: those that are not UTF-8, and those with line breaks.

The server would put a sign in place of each broken byte, so that many addresses were one, and a write to one of them
went to all.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from mycelium_gateway import problems


class AddressMiddleware:
    """Answers 422 to an address that is no text on one line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer with a problem."""
        fault = find_fault(scope) if scope["type"] == "http" else ""
        if not fault:
            await self._app(scope, receive, send)
            return
        await problems.response(problems.document("request.invalid", fault))(scope, receive, send)


def find_fault(scope: Scope) -> str:
    """What is wrong with the address; empty for nothing."""
    for part in (scope.get("raw_path") or b"", scope["query_string"]):
        if b"%" in part or not part.isascii():
            try:
                unquote_to_bytes(part).decode()
            except UnicodeDecodeError as error:
                return f"the address is not UTF-8: it has the byte {error.object[error.start]:#04x}"
    return "the address has a line break in its path" if "\n" in scope["path"] else ""
