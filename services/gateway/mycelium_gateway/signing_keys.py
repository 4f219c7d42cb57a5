"""The keys with which one issuer signs: looked up, kept, asked for anew, and used while the issuer is away.

`tokens.py` asks. Keys are fetched when a token needs them, never at start, so that a hub starts without its issuer.
One request at a time fetches; whoever comes meanwhile waits, or is served by the keys that are there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from mycelium_gateway import published_keys
from mycelium_gateway.issuers import Issuer
from mycelium_gateway.published_keys import SigningKey, Unusable
from mycelium_gateway.token_text import TokenText
from mycelium_kernel.errors import Unavailable

LOGGER = logging.getLogger(__name__)
NO_ISSUER = "sign-in is on, and no issuer is trusted: add one to auth.issuers"
# Between two fetches because of keys that are not known: so long may a new key be unknown after a made-up one.
UNKNOWN_S = 2.0
# After a fetch that failed.
RETRY_S = 2.0


class AuthUnavailable(Unavailable):
    """Sign-in is on, and nobody can be signed in: no issuer is trusted, or none tells its keys."""

    slug = "auth.unavailable"


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(
        self,
        issuer: Issuer,
        ttl_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        unknown_s: float = UNKNOWN_S,
        retry_s: float = RETRY_S,
        within_s: float = published_keys.WITHIN_S,
    ) -> None:
        self.trouble = ""
        self._issuer = issuer
        self._ttl_s = ttl_s
        self._clock = clock
        self._unknown_s = unknown_s
        self._retry_s = retry_s
        self._within_s = within_s
        self._jwks_url = issuer.jwks_url
        self._keys: tuple[SigningKey, ...] = ()
        self._fetches = 0
        self._due_at = self._look_at = float("-inf")
        self._fetching = asyncio.Lock()

    def vouch_for(self, key: SigningKey) -> bool:
        """Whether the issuer still signs with this key, as far as is known, and nothing has to be asked first."""
        return key in self._keys and self._clock() < self._due_at

    async def signer(self, text: TokenText) -> SigningKey | None:
        """The key that signed this token; None when none of the issuer's did."""
        await self._ready()
        fetches = self._fetches
        found = self._signer(text)
        # A wrong signature under a name that is known is a forgery, whatever the issuer publishes by now.
        is_known = text.kid and any(key.kid == text.kid for key in self._keys)
        if found is None and not is_known and await self._look_again(fetches):
            found = self._signer(text)
        return found

    def _signer(self, text: TokenText) -> SigningKey | None:
        fitting = (key for key in self._keys if key.fits(text.algorithm) and text.kid in {"", key.kid})
        return next((key for key in fitting if key.signed(text.algorithm, text.signed, text.signature)), None)

    async def _ready(self) -> None:
        """Have keys, and new ones when it is time for them. Old ones serve while somebody else asks, and after."""
        if self._keys and (self._clock() < self._due_at or self._fetching.locked()):
            return
        async with self._fetching:
            if self._clock() >= self._due_at:
                await self._fetch()
        if not self._keys:
            raise AuthUnavailable(self.trouble)

    async def _look_again(self, fetches: int) -> bool:
        """Whether the keys are newer than `fetches` says: asks for them, unless that was done a moment ago."""
        async with self._fetching:
            if self._fetches == fetches and self._clock() >= self._look_at:
                self._look_at = self._clock() + self._unknown_s  # also when whoever asks gives up
                await self._fetch()
                self._look_at = self._clock() + self._unknown_s  # it may have taken longer: who waited asks no more
            return self._fetches != fetches

    async def _fetch(self) -> None:
        try:
            if not self._jwks_url:
                self._jwks_url = await published_keys.discover(self._issuer.issuer, self._within_s)
            self._keys = await published_keys.fetch(self._jwks_url, self._within_s)
        except Unusable as error:
            self._due_at = self._clock() + self._retry_s
            self._jwks_url = self._issuer.jwks_url
            self._tell(f"the signing keys of {self._issuer.issuer} can't be had: {error}")
        else:
            self._fetches += 1
            self._due_at = self._clock() + self._ttl_s
            self._tell("")

    def _tell(self, trouble: str) -> None:
        """Log a change, once."""
        if trouble and trouble != self.trouble:
            LOGGER.warning("%s; %s", trouble, "those that are there serve on" if self._keys else "nobody can sign in")
        elif self.trouble and not trouble:
            LOGGER.info("the signing keys of %s can be had again", self._issuer.issuer)
        self.trouble = trouble
