"""What the routes of one gateway share. Made by the worker in `service.py`, read through `app.state.gateway`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mycelium_gateway import joined, operator_token
from mycelium_gateway.identity import Identity
from mycelium_gateway.joining import Leaving
from mycelium_gateway.live import Live
from mycelium_gateway.namesakes import Namesakes
from mycelium_gateway.presence import Presence
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.tokens import Tokens
from mycelium_gateway.waits import Waits
from mycelium_gateway.web_sign_in import WebSignIn
from mycelium_kernel.bus import Bus
from mycelium_kernel.clock import Clock
from mycelium_kernel.connections import Connection

# Streams that may ask a service at once: a thousand that come back together must not keep everybody else out.
JOINING = 8


@dataclass(frozen=True)
class Gateway:
    """The bus to ask, the log's end for live streams, the open waits, what members do."""

    settings: GatewaySettings
    version: str
    connection: Connection
    bus: Bus
    clock: Clock
    live: Live
    waits: Waits
    presence: Presence
    health: Callable[[], dict[str, Any]]  # what the kernel says of this process
    tokens: Tokens
    namesakes: Namesakes
    tries: joined.Tries = field(default_factory=lambda: joined.Tries(time.monotonic))
    joining: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(JOINING))
    leaving: Leaving = field(default_factory=Leaving)
    began: float = field(default_factory=time.monotonic)

    @cached_property
    def web(self) -> WebSignIn:
        """How people sign in by a browser, and who calls by the cookie that it then keeps."""
        return WebSignIn(self.settings, self.identify, self.connection, lambda: self.clock().timestamp())

    def is_late(self, service: str) -> bool:
        """Whether a service may still be on its way."""
        return service in self.settings.late and time.monotonic() - self.began < self.settings.late_s

    async def identify(self, token: str) -> Identity:
        """Whose token it is. Raises why it is refused, or that this can't be told now."""
        operator = operator_token.identity_of(token, self.settings.operator_digest)
        if operator:
            return operator
        if joined.is_own(token):
            return await joined.identity_of(self.bus, token)
        identity = await self.tokens.verify(token)
        await self.namesakes.check(identity)
        return identity
