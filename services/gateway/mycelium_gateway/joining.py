"""Lets few live streams begin at a time, and few end: a thousand that come or go at once hold up nobody who is served.

Who has not been let in yet costs next to nothing. Meanwhile the collector's full passes wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mycelium_kernel.collector import Rush

AT_ONCE = 8


class JoiningMiddleware:
    """Holds requests for streams back until it is their turn; a turn lasts until the answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._rush = Rush()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, in turn if it is a stream."""
        # A document may be called so too: who writes it slowly must not have a turn.
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].endswith("/stream"):
            await self._app(scope, receive, send)
            return
        with self._rush:
            await self._turns.acquire()
        has_turn = True

        def end() -> None:
            nonlocal has_turn
            if has_turn:
                has_turn = False
                self._turns.release()

        async def begun(message: Message) -> None:
            end()
            await send(message)

        try:
            await self._app(scope, receive, begun)
        finally:
            end()


class Leaving:
    """Ends what is to be ended, a few each turn of the loop."""

    def __init__(self) -> None:
        self._ends: deque[Callable[[], object]] = deque()

    def add(self, end: Callable[[], object]) -> None:
        """Have it called soon, from the loop of this call."""
        self._ends.append(end)
        if len(self._ends) == 1:
            asyncio.get_running_loop().call_soon(self._some)

    def _some(self) -> None:
        for _ in range(min(AT_ONCE, len(self._ends))):
            self._ends.popleft()()
        if self._ends:
            asyncio.get_running_loop().call_soon(self._some)
