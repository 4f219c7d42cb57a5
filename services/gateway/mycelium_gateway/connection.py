"""What a route can learn about the client's connection while it answers."""

from __future__ import annotations

from starlette.types import Receive


async def until_disconnect(receive: Receive) -> None:
    """Return when the client has gone. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
