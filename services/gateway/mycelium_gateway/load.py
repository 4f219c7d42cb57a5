"""How much is taken on at once: in all, and for one caller, so that nobody can keep the others out.

More than that is refused at once and told when to come back, before anything is read or asked. Waits, streams and
bundles last, and are counted by themselves. What an operator looks at when a hub is busy is never refused.
"""

from __future__ import annotations

import resource
from collections import Counter
from dataclasses import dataclass, field

import prometheus_client
from starlette.types import ASGIApp, Receive, Scope, Send

from mycelium_gateway import problems
from mycelium_gateway.actor import READ_HANDLE
from mycelium_gateway.head import LASTING
from mycelium_gateway.identity import STATE, Identity
from mycelium_gateway.settings import GatewaySettings

REFUSED = prometheus_client.Counter("mycelium_http_refused_total", "Requests refused since too many were open.", ["of"])
EXEMPT = frozenset({"/health", "/healthz", "/metrics"})


@dataclass
class Bound:
    """How many requests of one sort may be open, and how many are."""

    of: str
    most: int
    most_of_one: int
    count: int = 0
    by_caller: Counter[bytes] = field(default_factory=Counter)

    def refusal(self, caller: bytes) -> str:
        """Why one more of this caller is too many; empty when it is not."""
        if self.count >= self.most:
            REFUSED.labels("all").inc()
            return f"{self.most} {self.of} are open at this hub"
        if self.by_caller[caller] >= self.most_of_one:
            REFUSED.labels("one").inc()
            return f"{self.most_of_one} {self.of} of this caller are open"
        return ""

    def enter(self, caller: bytes) -> None:
        self.count += 1
        self.by_caller[caller] += 1

    def leave(self, caller: bytes) -> None:
        self.count -= 1
        self.by_caller[caller] -= 1
        if not self.by_caller[caller]:
            del self.by_caller[caller]


def lasting_most(wanted: int) -> int:
    """As many as wanted, and as leave half of the files that this process may open to everything else."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if files == resource.RLIM_INFINITY else min(wanted, max(1, files // 2))


class LoadMiddleware:
    """Answers 429 to a request that is one too many."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self._app = app
        self._brief = Bound("requests", settings.requests_at_once, settings.requests_of_one)
        self._lasting = Bound("streams and waits", lasting_most(settings.lasting_at_once), settings.lasting_of_one)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on and count, or answer with a problem."""
        if scope["type"] != "http" or scope["path"] in EXEMPT:
            await self._app(scope, receive, send)
            return
        bound = self._lasting if scope["path"].endswith(LASTING) else self._brief
        caller = _caller(scope)
        refusal = bound.refusal(caller)
        if refusal:
            await problems.response(problems.document("rate.limited", refusal))(scope, receive, send)
            return
        bound.enter(caller)
        try:
            await self._app(scope, receive, send)
        finally:
            bound.leave(caller)


def _caller(scope: Scope) -> bytes:
    """Whose token it is, else the handle that a request names, else the address that it comes from."""
    identity: Identity | None = scope.get("state", {}).get(STATE)
    if identity:
        return identity.handle.encode()
    for name, value in scope["headers"]:
        if name == READ_HANDLE:
            return bytes(value).strip().lower()
    client = scope.get("client")
    return client[0].encode() if client else b""
