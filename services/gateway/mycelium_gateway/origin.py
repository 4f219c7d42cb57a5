"""Refuses requests that reached the hub under a name that is not its own, and those of pages from elsewhere.

A page of another site can make a browser call 127.0.0.1 (CSRF), or let its own name point there (DNS rebinding). The
first sends a foreign `Origin`, the second a foreign `Host`; neither gets further than here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from mycelium_gateway import problems
from mycelium_kernel.names import is_loopback

AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)\.?(?::([0-9]{1,5}))?")
UNSPECIFIED = frozenset({"", "0.0.0.0", "::"})  # every address, and the name of none  # noqa: S104
LONGEST = 300  # a name of DNS has at most 253 characters; scheme and port come to it
DEFAULT_PORTS = {"http": 80, "https": 443}
# A probe calls a pod by its address; what it gets to see is one word.
OPEN_PATHS = frozenset({"/healthz"})


@dataclass(frozen=True)
class Place:
    """A host and, when one was written, a port."""

    host: str
    port: int | None


def place(text: str) -> Place | None:
    """The place that an authority (`host`, `host:port`, `[::1]:port`) names; None when it is none."""
    found = AUTHORITY.fullmatch(text.strip().lower())
    if found is None:
        return None
    return Place(found[1].strip("[]"), int(found[2]) if found[2] else None)


def is_own(origin: str, host: Place) -> bool:
    """Whether a page of `origin` was served by the place that the request was sent to."""
    scheme, separator, authority = origin.strip().lower().partition("://")
    there = place(authority) if separator and scheme in DEFAULT_PORTS else None
    if there is None:
        return False
    default = DEFAULT_PORTS[scheme]
    return there.host == host.host and (there.port or default) == (host.port or default)


class Names:
    """The names under which a hub may be called."""

    def __init__(self, bind_host: str, allowed: Iterable[str]) -> None:
        self._exact = {name.lower().rstrip(".") for name in allowed if not name.startswith("*.")}
        if bind_host.strip("[]") not in UNSPECIFIED:
            self._exact.add(bind_host.lower().strip("[]"))
        self._below = tuple(name[1:].lower() for name in allowed if name.startswith("*."))
        self._judged = lru_cache(maxsize=1024)(self._judge)

    def includes(self, host: str) -> bool:
        """Whether `host` is one of them."""
        return host in self._exact or is_loopback(host) or bool(self._below and host.endswith(self._below))

    def judge(self, host: str | None, origin: str | None) -> tuple[str, str] | None:
        """Slug and detail of the refusal, or None. What is longer than any name is refused and not remembered."""
        for header, value in (("host", host), ("origin", origin)):
            if value is not None and len(value) > LONGEST:
                return f"{header}.refused", f"the request's {header} has {len(value)} characters"
        return self._judged(host, origin)

    def _judge(self, host: str | None, origin: str | None) -> tuple[str, str] | None:
        here = place(host) if host is not None else None
        if here is None:
            return "host.refused", "the request names no host" if not host else f"{host!r} is not a host"
        if not self.includes(here.host):
            return "host.refused", f"{here.host} is not a name of this hub"
        if origin is not None and not is_own(origin, here):
            return "origin.refused", f"the page's origin is {origin}, the hub's is {host}"
        return None


class OriginMiddleware:
    """Lets through what was sent to the hub's own name, by no page or by a page of the hub."""

    def __init__(self, app: ASGIApp, names: Names) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer with a problem."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            refused = self._names.judge(_only(scope, b"host"), _only(scope, b"origin"))
            if refused:
                await problems.response(problems.document(*refused))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _only(scope: Scope, name: bytes) -> str | None:
    """A header's value; several that differ are joined, so that they name no place."""
    values = {value.decode("latin-1") for header, value in scope["headers"] if header == name}
    return ", ".join(sorted(values)) if values else None
