"""Finds who calls, before anything else is done with a request: by its token, or because it was made on this machine.

With sign-in on, every address but the open ones needs a token. Whoever sends one is judged by it, also on the hub's own
machine. What was found stands in the state of the request; `actor.py` makes the caller of it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mycelium_gateway import peers, problems
from mycelium_gateway.gateway import Gateway
from mycelium_gateway.identity import STATE, Identity
from mycelium_gateway.peers import TrustedProxies
from mycelium_gateway.signing_keys import NO_ISSUER, AuthUnavailable
from mycelium_gateway.web_sign_in import COOKIES
from mycelium_kernel.errors import Refusal, Unavailable

OPEN = frozenset({"/", "/health", "/healthz", "/docs", "/redoc", "/openapi.json", "/api/join"})
# What a room tells of itself to those who look for agents, and the steps of signing in.
OPEN_BELOW = re.compile(r"/api/rooms/[^/\n]+/\.well-known/agent-card\.json|/api/auth/[a-z]+")
AUTHORIZATION = b"authorization"
BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
# Finds who calls by one part of a request; None when the request has no such part. Raises what is wrong with it.
Source = Callable[[Scope], Awaitable[Identity | None]]


class SigningInMiddleware:
    """Lets through whoever is known; answers 401 or 503 to others."""

    def __init__(self, app: ASGIApp, gateway: Gateway | None) -> None:
        self._app = app
        self._gateway = gateway
        self._proxies = TrustedProxies(gateway.settings.trusted_proxies if gateway else "")
        # Asked in this order; the first that finds somebody is believed.
        self._sources: tuple[Source, ...] = (self._by_bearer, self._by_cookie)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer with a problem."""
        if scope["type"] == "http":
            peers.believe_scheme(scope, self._proxies)
            if self._gateway and self._gateway.settings.auth.enabled and not is_open(scope["path"]):
                try:
                    scope.setdefault("state", {})[STATE] = await self._find(scope)
                except Refusal as refusal:
                    answer = problems.response(problems.of_refusal(refusal))
                    await answer(scope, receive, _with_cookies(scope, send))
                    return
                except Unavailable as error:
                    await problems.response(problems.of_unavailable(error))(scope, receive, send)
                    return
                send = _with_cookies(scope, send)
        await self._app(scope, receive, send)

    async def _find(self, scope: Scope) -> Identity | None:
        """Who calls; None for the hub's own machine, which names itself as it likes."""
        assert self._gateway
        for source in self._sources:
            identity = await source(scope)
            if identity is not None:
                return identity
        auth = self._gateway.settings.auth
        if auth.localhost_bypass and peers.is_local(scope, self._proxies):
            return None
        if not auth.issuers:
            raise AuthUnavailable(NO_ISSUER)
        raise Refusal("token.missing", "this needs a token: `Authorization: Bearer ...`", next="mycelium login")

    async def _by_bearer(self, scope: Scope) -> Identity | None:
        """By the header `Authorization`."""
        assert self._gateway
        sent = [value for name, value in scope["headers"] if name == AUTHORIZATION]
        if not sent:
            return None
        found = BEARER.fullmatch(bytes(sent[0]).strip())
        if len(sent) > 1 or found is None:
            what = "came more than once" if len(sent) > 1 else "is not `Bearer` and one token"
            raise Refusal("token.refused", f"token rejected: the header Authorization {what}")
        return await self._gateway.identify(found[1].decode())

    async def _by_cookie(self, scope: Scope) -> Identity | None:
        """By the session of a browser."""
        assert self._gateway
        return await self._gateway.web.who(scope)


def _with_cookies(scope: Scope, send: Send) -> Send:
    """What sends an answer with the cookies that finding the caller has changed; almost always none."""
    cookies: list[tuple[str, str]] = scope["state"].get(COOKIES, [])
    if not cookies:
        return send

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [(name.lower().encode(), value.encode()) for name, value in cookies]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sending


def is_open(path: str) -> bool:
    """Whether anybody may call this address."""
    return path in OPEN or OPEN_BELOW.fullmatch(path) is not None
