"""HEAD wherever GET is: the GET without its body (RFC 9110, 9.3.2), so that a probe or a proxy may ask that way.

Not for what lasts: a stream without its body would be a stream for nobody.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# How the addresses end of what may stay open for long.
LASTING = ("/await", "/stream", "/export", "/import")


class HeadMiddleware:
    """Asks as GET, and answers with the head alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, under the other name."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or not is_served(scope["path"]):
            await self._app(scope, receive, send)
            return
        asked = {**scope, "method": "GET"}

        async def bare(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        try:
            await self._app(asked, receive, bare)
        finally:
            if "route" in asked:
                scope["route"] = asked["route"]  # the outer layers count by it


def is_served(path: str) -> bool:
    """Whether HEAD is answered where GET is."""
    return not path.endswith(LASTING)
