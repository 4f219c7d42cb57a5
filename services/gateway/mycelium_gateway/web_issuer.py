"""The issuer at which people sign in by their browser: where its addresses are, codes and tokens changed for tokens.

OpenID Connect Core and RFC 6749, 7009, 7636, by Authlib. `web_sign_in.py` calls it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx

from mycelium_gateway import published_keys, token_text
from mycelium_gateway.issuers import Issuer
from mycelium_gateway.published_keys import WELL_KNOWN, WITHIN_S, Unusable
from mycelium_gateway.signing_keys import AuthUnavailable, IssuerKeys
from mycelium_gateway.web_settings import WebSettings
from mycelium_kernel.errors import Refusal

KEPT_S = 300.0  # how long the issuer's addresses are believed
RETRY_S = 2.0  # after it could not be asked: so long whoever comes is told so at once
LONGEST_S = 30 * 24 * 3_600.0  # of an access token, whatever the issuer says
LEEWAY_S = 60.0
BUSY = frozenset({429, *range(500, 600)})


@dataclass(frozen=True)
class Places:
    """Where the issuer does what: `authorize` for browsers, the others for the gateway. Empty: it does not."""

    authorize: str
    token: str
    revoke: str
    end_session: str
    jwks_url: str
    keys: IssuerKeys


@dataclass(frozen=True)
class Granted:
    """What the issuer gave: tokens, and until when the access token is good, in seconds since 1970."""

    access: str
    refresh: str
    identity: str
    expires_at: float


class WebIssuer:
    """One issuer, asked as the web app's client."""

    def __init__(self, settings: WebSettings, now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._now = now
        self._places: Places | None = None
        self._due_at = float("-inf")
        self._trouble = ""
        self._reading = asyncio.Lock()

    async def places(self) -> Places:
        """Its addresses, from its discovery document. Raises `AuthUnavailable`."""
        async with self._reading:
            if time.monotonic() >= self._due_at:
                try:
                    self._places = await self._discover()
                    self._due_at = time.monotonic() + KEPT_S
                except Unusable as error:
                    self._trouble = f"{self._settings.issuer} can't be asked: {error}"
                    self._due_at = time.monotonic() + RETRY_S
            if self._places is None:
                raise AuthUnavailable(self._trouble)
            return self._places

    async def _discover(self) -> Places:
        own = self._settings.internal_issuer or self._settings.issuer
        document = await published_keys.fetch_object(own.rstrip("/") + WELL_KNOWN, WITHIN_S)
        if document.get("issuer") not in {self._settings.issuer, own}:
            raise Unusable("its discovery document is about another issuer; oidc.issuer must hold the exact `iss`")
        authorize = self._moved(document, "authorization_endpoint", own, self._settings.issuer)
        token, keys = (
            self._moved(document, name, self._settings.issuer, own) for name in ("token_endpoint", "jwks_uri")
        )
        if not (authorize and token and keys):
            raise Unusable("its discovery document lacks an address that is needed")
        known = self._places.keys if self._places and self._places.jwks_url == keys else None
        return Places(
            authorize=authorize,
            token=token,
            revoke=self._moved(document, "revocation_endpoint", self._settings.issuer, own),
            end_session=self._moved(document, "end_session_endpoint", own, self._settings.issuer),
            jwks_url=keys,
            keys=known or IssuerKeys(Issuer(self._settings.issuer, jwks_url=keys), KEPT_S),
        )

    @staticmethod
    def _moved(document: dict[str, Any], name: str, there: str, here: str) -> str:
        """An address of the document, as whoever is to use it reaches it."""
        found = published_keys.named(document, name)
        base = there.rstrip("/")
        return here.rstrip("/") + found[len(base) :] if found.startswith(base + "/") else found

    async def way_out(self, back: str, state: str, nonce: str, verifier: str) -> str:
        """Where a browser signs in, and comes back from to `back`."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        extras = {"audience": self._settings.audience} if self._settings.audience else {}
        places = await self.places()
        uri: str = prepare_grant_uri(
            places.authorize,
            client_id=self._settings.client_id,
            response_type="code",
            redirect_uri=back,
            scope=self._settings.scopes,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
            **extras,
        )
        return uri

    async def exchange(self, code: str, back: str, nonce: str, verifier: str) -> Granted:
        """Tokens for a code. Refused when the issuer refuses, or what it says is not of this sign-in."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        granted = await self._ask(form)
        await self._check_identity(granted.identity, nonce)
        return granted

    async def renew(self, refresh: str) -> Granted:
        """New tokens for a refresh token; the issuer may give another one with them."""
        return await self._ask({"grant_type": "refresh_token", "refresh_token": refresh}, refresh)

    async def revoke(self, refresh: str) -> None:
        """Have the issuer forget a refresh token, if it can; signing out does not depend on it."""
        places = await self.places()
        if places.revoke:
            await self._post(places.revoke, {"token": refresh, "token_type_hint": "refresh_token"})

    async def way_off(self) -> str:
        """Where a browser signs out of the issuer, too; empty when it has no such page."""
        there = (await self.places()).end_session
        joint = "&" if "?" in there else "?"
        return f"{there}{joint}{urlencode({'client_id': self._settings.client_id})}" if there else ""

    async def _ask(self, form: dict[str, str], refresh: str = "") -> Granted:
        places = await self.places()
        extras = {"audience": self._settings.audience} if self._settings.audience else {}
        status, body = await self._post(places.token, form | extras)
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        if status in BUSY or not isinstance(said, dict):
            raise AuthUnavailable(f"{self._settings.issuer} answered with status {status}")
        if status != HTTPStatus.OK:
            why = _plain(said.get("error"))
            if refresh and why != "invalid_grant":  # it says nothing about the session
                raise AuthUnavailable(f"{self._settings.issuer} does not renew sessions: {why}")
            raise Refusal("sign_in.failed", f"the issuer refused: {why}")
        access, lasts = said.get("access_token"), said.get("expires_in", 60)
        if not isinstance(access, str) or isinstance(lasts, bool) or not isinstance(lasts, int | float):
            raise Refusal("sign_in.failed", "the issuer gave no access token")
        expires_at = self._now() + float(max(0.0, min(lasts, LONGEST_S)))  # it may be too large for a float
        return Granted(access, str(said.get("refresh_token") or refresh), str(said.get("id_token") or ""), expires_at)

    async def _post(self, url: str, form: dict[str, str]) -> tuple[int, bytes]:
        """What the issuer says to a form: the status and the body."""
        client, secret = self._settings.client_id, self._settings.client_secret
        auth: httpx.Auth = httpx.Auth()  # none
        if secret:  # RFC 6749, 2.3.1: each written as in a form
            auth = httpx.BasicAuth(quote_plus(client), quote_plus(secret))
        form = form if secret else {**form, "client_id": client}
        try:
            async with (
                asyncio.timeout(WITHIN_S),
                published_keys.client(url) as http,
                http.stream("POST", url, data=form, auth=auth) as answer,
            ):
                return answer.status_code, await published_keys.read_body(answer)
        except Unusable as error:
            raise AuthUnavailable(f"{self._settings.issuer} can't be asked: {error}") from None
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise AuthUnavailable(f"{self._settings.issuer} can't be asked ({type(error).__name__})") from None

    async def _check_identity(self, token: str, nonce: str) -> None:
        """The id token has to be of this issuer, for this client, of this very sign-in (OpenID Connect, 3.1.3.7)."""
        text = token_text.read(token)
        places = await self.places()
        if await places.keys.signer(text) is None:
            raise Refusal("sign_in.failed", "the id token is not signed by a key that its issuer publishes")
        claims, own = text.claims, self._settings.client_id
        audience = claims.get("aud")
        listed = audience if isinstance(audience, list) else [audience]
        expires = claims.get("exp")
        fits = (
            claims.get("iss") == self._settings.issuer
            and own in listed
            and (len(listed) == 1 or claims.get("azp") == own)
            and claims.get("nonce") == nonce
            and isinstance(expires, int | float)
            and expires > self._now() - LEEWAY_S
        )
        if not fits:
            raise Refusal("sign_in.failed", "the id token is not of this sign-in")


def _plain(error: object) -> str:
    """The error code of RFC 6749; anything else an issuer may write there is not repeated."""
    text = str(error)
    return text if text.isascii() and text.replace("_", "").isalnum() and len(text) < 60 else "no reason was given"
