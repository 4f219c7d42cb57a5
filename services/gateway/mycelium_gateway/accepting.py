"""Lets connections in one at a time, so that a thousand that come at once hold up nobody who is served already.

An event loop by itself accepts all that wait in one go and looks at nothing else meanwhile. Taking one a turn also
shares a rush between gateways that take from the same listening socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

LOGGER = logging.getLogger(__name__)
PAUSE_S = 1.0  # after an error such as too many open files, which the next try would meet too


class Accepting:
    """One listening socket, with the face of `asyncio.Server` that uvicorn uses: to be closed, and waited for."""

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.Protocol], backlog: int) -> None:
        listener.setblocking(False)
        listener.listen(backlog)
        self._listener = listener
        self._make = make
        self._task = asyncio.create_task(self._accept(), name="accepting")

    def close(self) -> None:
        """Take no more."""
        self._task.cancel()

    async def wait_closed(self) -> None:
        """Return once nobody can be let in any more."""
        await asyncio.wait([self._task])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except ConnectionError:  # it left while it waited
                continue
            except OSError as error:
                LOGGER.warning("no connection can be taken: %s", error.strerror)
                await asyncio.sleep(PAUSE_S)
                continue
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                await loop.connect_accepted_socket(self._make, connection)
            await asyncio.sleep(0)
