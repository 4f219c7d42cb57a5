"""Signing in by a browser: the way to the issuer and back, the session cookie, its renewal, signing out.

The access token never reaches a script: the browser keeps it sealed (`web_cookies.py`), and the gateway takes it out of
the cookie of each request. No gateway remembers a session; what is renewed at this moment they tell each other
(`web_renewals.py`).
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from mycelium_gateway import web_cookies
from mycelium_gateway.identity import Identity
from mycelium_gateway.settings import GatewaySettings
from mycelium_gateway.signing_keys import AuthUnavailable
from mycelium_gateway.web_cookies import LAX, SESSION, STEP, STEP_S, STRICT, Sealer
from mycelium_gateway.web_issuer import Granted, WebIssuer
from mycelium_gateway.web_renewals import Renewals
from mycelium_kernel.connections import Connection
from mycelium_kernel.errors import Refusal

BACK = "/api/auth/callback"
COOKIES = "set_cookies"  # in a request's state: headers that its answer gets
STATE = re.compile(r"[A-Za-z0-9_-]{43}")
# A path of the app itself: `//host` and `/\host` would be addresses elsewhere to a browser.
NEXT = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,1000}")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
SESSION_S = 30 * 24 * 3_600  # how long a browser keeps a session that can be renewed
RENEW_S = 30.0  # a token that ends sooner is renewed first

Identify = Callable[[str], Coroutine[Any, Any, Identity]]


@dataclass(frozen=True)
class Step:
    """What the browser keeps, sealed, while it is at the issuer."""

    state: str
    nonce: str
    verifier: str
    next: str
    until: float


class WebSignIn:
    """The sign-in of one gateway's web app."""

    def __init__(
        self,
        settings: GatewaySettings,
        identify: Identify,
        connection: Connection,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.is_on = settings.auth.enabled and settings.web.is_on
        self._own_issuer = settings.web.issuer
        self._issuer = WebIssuer(settings.web, now)
        self._sealer = Sealer(settings.web.session_secret)
        self._renewals = Renewals(connection, self._sealer, self._issuer.renew)
        self._identify = identify
        self._now = now

    def check(self) -> None:
        """Refused when the app has no sign-in."""
        if not self.is_on:
            detail = "nobody signs in by a browser here: auth.enabled, oidc.issuer or auth.session_secret is not set"
            raise Refusal("sign_in.off", detail)

    async def begin(self, scope: Scope, wanted: str) -> Response:
        """Send the browser to the issuer; `wanted` is where in the app it is to come back to."""
        self.check()
        step = Step(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            next=wanted if NEXT.fullmatch(wanted) else "/",
            until=self._now() + STEP_S,
        )
        there = await self._issuer.way_out(_back(scope), step.state, step.nonce, step.verifier)
        sealed = self._sealer.seal(STEP, asdict(step))
        headers = web_cookies.setting(scope, _step(step.state), sealed, same_site=LAX, lasts_s=STEP_S)
        return _redirect(there, [*web_cookies.crowded(scope), *headers])

    async def finish(self, scope: Scope, said: dict[str, str]) -> Response:
        """The browser is back from the issuer: make the session. Refused when this browser did not begin it."""
        self.check()
        state = said.get("state", "")
        step = self._step(scope, state)
        if step is None:
            raise Refusal("sign_in.failed", "it was not begun in this browser, or more than ten minutes ago")
        if said.get("iss", self._own_issuer) != self._own_issuer:  # RFC 9207
            raise Refusal("sign_in.failed", "the answer is of another issuer than the one that was asked")
        if not said.get("code"):
            raise Refusal("sign_in.failed", "the issuer did not sign you in")
        granted = await self._issuer.exchange(said["code"], _back(scope), step.nonce, step.verifier)
        await self._identify(granted.access)
        return _redirect(step.next, [*self._session(scope, granted), *self.abandon(scope, state)])

    def abandon(self, scope: Scope, state: str) -> list[tuple[str, str]]:
        """The headers after which this browser can't come back from the issuer with that state any more."""
        return list(web_cookies.forgetting(scope, _step(state))) if STATE.fullmatch(state) else []

    async def end(self, scope: Scope) -> tuple[str, list[tuple[str, str]]]:
        """Sign out: where the browser goes to sign out of the issuer too, and the headers that end the session.

        The session ends here whether the issuer answers or not.
        """
        self.check()
        kept, there = self._kept(scope), ""
        if kept:
            _check_origin(scope)
        with contextlib.suppress(AuthUnavailable):
            there = await self._issuer.way_off()
            if kept and kept.refresh:
                await self._issuer.revoke(kept.refresh)
        return there or "/", list(web_cookies.forgetting(scope, SESSION))

    async def who(self, scope: Scope) -> Identity | None:
        """Who calls by the session cookie; None when there is none that is good.

        Refused when something is to be done that no page of the hub is seen to have asked for.
        """
        kept = self._kept(scope) if self.is_on else None
        if kept is None:
            return None
        _check_origin(scope)
        if kept.expires_at - self._now() < RENEW_S and kept.refresh:
            kept = await self._renewed(scope, kept)
        try:
            return await self._identify(kept.access)
        except Refusal:
            _say(scope, list(web_cookies.forgetting(scope, SESSION)))
            raise

    async def _renewed(self, scope: Scope, kept: Granted) -> Granted:
        """The session with newer tokens, which the browser is given; as it is, while it is good and none can be had."""
        try:
            renewed = await self._renewals.of(kept.refresh)
        except Refusal:
            _say(scope, list(web_cookies.forgetting(scope, SESSION)))
            raise Refusal("token.refused", "the session has ended: sign in again") from None
        except AuthUnavailable:
            if kept.expires_at <= self._now():
                raise
            return kept
        _say(scope, self._session(scope, renewed))
        return renewed

    def _kept(self, scope: Scope) -> Granted | None:
        sealed = web_cookies.read(scope, SESSION)
        found = self._sealer.unseal(SESSION, sealed) if sealed else None
        return Granted(found["access"], found["refresh"], "", found["expires_at"]) if found else None

    def _session(self, scope: Scope, granted: Granted) -> list[tuple[str, str]]:
        content = {"access": granted.access, "refresh": granted.refresh, "expires_at": granted.expires_at}
        lasts_s = SESSION_S if granted.refresh else max(1, int(granted.expires_at - self._now()))
        sealed = self._sealer.seal(SESSION, content)
        try:
            return web_cookies.setting(scope, SESSION, sealed, same_site=STRICT, lasts_s=lasts_s)
        except ValueError:
            raise Refusal("sign_in.failed", "the issuer's tokens are too long for cookies") from None

    def _step(self, scope: Scope, state: str) -> Step | None:
        sealed = web_cookies.read(scope, _step(state)) if STATE.fullmatch(state) else ""
        found = self._sealer.unseal(STEP, sealed) if sealed else None
        step = Step(**found) if found else None
        return step if step and step.state == state and self._now() < step.until else None


def _say(scope: Scope, headers: list[tuple[str, str]]) -> None:
    """Have the answer to this request carry these headers."""
    scope.setdefault("state", {})[COOKIES] = headers


def _step(state: str) -> str:
    """The cookie of one way out, by the start of its state: two tabs sign in side by side."""
    return f"{STEP}_{state[:8]}"


def _back(scope: Scope) -> str:
    """Where the issuer sends the browser back to: under the name that the hub was called by."""
    return f"{scope['scheme']}://{Headers(scope=scope)['host']}{BACK}"


def _redirect(there: str, headers: list[tuple[str, str]]) -> Response:
    answer = RedirectResponse(there, 303, {"Cache-Control": "no-store"})
    for name, value in headers:
        answer.headers.append(name, value)
    return answer


def _check_origin(scope: Scope) -> None:
    """A cookie is sent by itself, so what changes something must come from a page of the hub.

    `origin.py` has refused foreign origins; here one has to be there, as browsers send it with every such request.
    """
    headers = Headers(scope=scope)
    if scope["method"] not in SAFE and "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        raise Refusal("origin.refused", "a request by cookie needs the header Origin")
