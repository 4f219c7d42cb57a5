"""Decides by a token who calls: the issuer that it names, that issuer's keys alone, times, audience, handle.

The layer that finds who calls asks here. The rules and their reasons stand in docs/decisions. Nothing of a token is
logged, shown in a refusal or kept: what was found is remembered under the token's digest.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycelium_gateway import token_text
from mycelium_gateway.identity import AGENT, USER, Identity
from mycelium_gateway.issuers import AuthSettings, Issuer
from mycelium_gateway.published_keys import SigningKey
from mycelium_gateway.signing_keys import NO_ISSUER, AuthUnavailable, IssuerKeys
from mycelium_gateway.token_text import TokenText, rejected
from mycelium_kernel import names
from mycelium_kernel.errors import Refusal

REMEMBERED = 4_096  # tokens, some hundred bytes each
LATEST = 1e12  # seconds since 1970; what is beyond is no time
# What Keycloak says in a claim `typ`: others are to be shown to the provider, not to a service.
CLAIMED_TYPES = frozenset({"bearer", "jwt", "at+jwt"})


@dataclass(frozen=True)
class _Known:
    """What a token said, and the key that vouches for it."""

    identity: Identity
    keys: IssuerKeys
    key: SigningKey


class Tokens:
    """All issuers that are trusted, and the tokens of theirs that were seen lately."""

    def __init__(
        self,
        settings: AuthSettings,
        *,
        now: Callable[[], float] = time.time,
        remembered: int = REMEMBERED,
        **keys: Any,
    ) -> None:
        self._settings = settings
        self._now = now
        self._remembered = remembered
        self._issuers: dict[str, tuple[Issuer, IssuerKeys]] = {}
        for issuer in settings.issuers:
            self._issuers.setdefault(issuer.issuer, (issuer, IssuerKeys(issuer, settings.jwks_ttl_s, **keys)))
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def verify(self, token: str) -> Identity:
        """Who calls with this token. Raises `token.refused`, or `AuthUnavailable` when nobody can say."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        known = self._known.get(digest)
        if known and known.keys.vouch_for(known.key) and self._now() < known.identity.expires_at:
            self._known.move_to_end(digest)
            return known.identity
        self._known.pop(digest, None)
        found = await self._found(token)
        self._known[digest] = found
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return found.identity

    def troubles(self) -> list[str]:
        """Whose keys can't be had at the moment, a line each."""
        return [keys.trouble for _issuer, keys in self._issuers.values() if keys.trouble]

    async def _found(self, token: str) -> _Known:
        if not self._issuers:
            raise AuthUnavailable(NO_ISSUER)
        text = token_text.read(token)
        named = text.claims.get("iss")
        trusted = self._issuers.get(named) if isinstance(named, str) else None
        if trusted is None:
            raise rejected("its issuer is not one that this hub trusts")
        issuer, keys = trusted
        key = await keys.signer(text)
        if key is None:
            raise rejected("its signature is not by a key that its issuer publishes")
        return _Known(self._identity(issuer, text), keys, key)

    def _identity(self, issuer: Issuer, text: TokenText) -> Identity:
        claims = text.claims
        expires_at = self._check_times(claims)
        _check_kind(claims)
        audience = issuer.audience or self._settings.audience
        if audience and audience not in _audiences(claims):
            raise rejected("it is for another audience")
        subject = claims.get("sub", "")
        if not isinstance(subject, str) or not _is_text(subject):
            raise rejected("its claim `sub` is no text")
        return Identity(
            handle=_handle(claims, issuer.handle_claim or self._settings.handle_claim),
            role=_role(claims, issuer.role_claim or self._settings.role_claim) or issuer.role,
            issuer=issuer.issuer,
            subject=subject,
            expires_at=expires_at,
        )

    def _check_times(self, claims: dict[str, Any]) -> float:
        """Until when it is good here."""
        now, leeway = self._now(), self._settings.leeway_s
        expires = _time(claims, "exp")
        if expires is None:
            raise rejected("it does not say when it expires")
        if now >= expires + leeway:
            raise rejected("Signature has expired")
        for name, what in (("nbf", "it is not valid yet"), ("iat", "it was issued in the future")):
            begins = _time(claims, name)
            if begins is not None and begins > now + leeway:
                raise rejected(f"{what}; compare the clocks of the hub and of the issuer")
        return expires + leeway


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        raise rejected(f"its claim `{name}` is no time")
    return float(value)


def _check_kind(claims: dict[str, Any]) -> None:
    """Tokens that are signed alike and meant for something else."""
    kind = claims.get("typ", "Bearer")
    if not isinstance(kind, str) or kind.lower() not in CLAIMED_TYPES:
        raise rejected("its claim `typ` is not that of an access token")
    if "events" in claims:
        raise rejected("it tells of an event, and is no access token")
    if "cnf" in claims:
        raise rejected("it is bound to a key of its holder; ask the issuer for a bearer token")


def _audiences(claims: dict[str, Any]) -> list[str]:
    found = claims.get("aud", [])
    listed = [found] if isinstance(found, str) else found
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise rejected("its claim `aud` is neither a text nor a list of texts")
    return listed


def _handle(claims: dict[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str):
        raise rejected(f"it has no claim `{claim}` to take the handle from; see auth.handle_claim")
    try:
        handle = names.handle(value if value == value.strip() else "")
    except Refusal:
        raise rejected(
            f"its claim `{claim}` can't be a handle (1 to 64 of a-z 0-9 . _ -, first a letter or digit,"
            " no dot at the end); see auth.handle_claim"
        ) from None
    try:
        return names.new_handle(handle)
    except Refusal:
        raise rejected(f"its claim `{claim}` is a name of the hub itself") from None


def _role(claims: dict[str, Any], claim: str) -> str:
    """The role that the token itself gives; empty when it gives none. A list, as some issuers send, may hold others."""
    value = claims.get(claim)
    if value is None:
        return ""
    listed = value if isinstance(value, list) else [value]
    roles = [role for role in (USER, AGENT) if role in listed]
    if len(roles) != 1:
        raise rejected(f"its claim `{claim}` says neither user nor agent")
    return roles[0]


def _is_text(value: str) -> bool:
    """Whether it can be written anywhere: JSON can escape halves of characters."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
