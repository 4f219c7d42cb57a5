"""Renewing a browser's session once, by one gateway, for every request that comes at that moment.

A page asks for many things at once, and of several gateways. Issuers that give out a refresh token for one use take its
second use for a theft and end the session, so whoever is first claims the token in a bucket in memory and lays what it
got there for the others: sealed, under the token's digest, for a minute. Without NATS each gateway renews by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import nats.js.errors
from nats.js.kv import KeyValue

from mycelium_gateway.web_cookies import Sealer
from mycelium_gateway.web_issuer import Granted
from mycelium_kernel.connections import NATS_ERRORS, Connection
from mycelium_kernel.in_memory import keep_bucket, open_bucket

BUCKET = "gateway_sessions"
RENEWED = "renewed"  # what is sealed for the other gateways
KEPT_S = 60.0  # requests of a page come together, and some with the cookie from before
WAIT_S = 12.0  # longer than an issuer may take; then whoever has claimed it is gone
LOOK_S = 0.05
MOST = 1_000
Renew = Callable[[str], Awaitable[Granted]]
MISSING = (nats.js.errors.KeyNotFoundError, nats.js.errors.KeyDeletedError)
TAKEN = nats.js.errors.KeyWrongLastSequenceError


class Renewals:
    """The renewals of one gateway. `renew` asks the issuer."""

    def __init__(self, connection: Connection, sealer: Sealer, renew: Renew) -> None:
        self._connection = connection
        self._sealer = sealer
        self._renew = renew
        self._bucket: KeyValue | None = None
        self._known: OrderedDict[str, tuple[float, asyncio.Task[Granted]]] = OrderedDict()

    async def of(self, refresh: str) -> Granted:
        """What a refresh token was changed for, by whoever came first."""
        digest, now = hashlib.sha256(refresh.encode()).hexdigest(), time.monotonic()
        while self._known and next(iter(self._known.values()))[0] < now - KEPT_S:
            self._known.popitem(last=False)
        if digest not in self._known:
            renewing = asyncio.create_task(self._once(digest, refresh), name="renew-web-session")
            renewing.add_done_callback(lambda done: self._forget(digest, done))
            self._known[digest] = (now, renewing)
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return await asyncio.shield(self._known[digest][1])

    def _forget(self, digest: str, done: asyncio.Task[Granted]) -> None:
        """One that failed is tried again by the next request."""
        if (done.cancelled() or done.exception()) and digest in self._known and self._known[digest][1] is done:
            del self._known[digest]

    async def _once(self, digest: str, refresh: str) -> Granted:
        """Renew, or have what another gateway was given."""
        try:
            async with asyncio.timeout(WAIT_S):
                found = await self._claim(digest)
        except NATS_ERRORS:  # also when nothing came of another gateway's claim
            self._bucket = None
            return await self._renew(refresh)
        if found is not None:
            return found
        try:
            granted = await self._renew(refresh)
        except BaseException:
            with contextlib.suppress(*NATS_ERRORS):
                await self._there().delete(digest)
            raise
        with contextlib.suppress(*NATS_ERRORS):
            await self._there().put(digest, self._sealer.seal(RENEWED, asdict(granted)).encode())
        return granted

    async def _claim(self, digest: str) -> Granted | None:
        """None for whoever has to renew; to the others what came of it."""
        bucket = await self._open()
        while True:
            try:
                await bucket.create(digest, b"")
            except TAKEN:
                pass
            else:
                return None
            with contextlib.suppress(*MISSING):
                while not (said := (await bucket.get(digest)).value):  # noqa: ASYNC110 - a watch costs more than looks
                    await asyncio.sleep(LOOK_S)
                found = self._sealer.unseal(RENEWED, said.decode())
                if found is None:  # by a gateway that has another secret: nothing to wait for
                    raise TimeoutError
                return Granted(**found)

    async def _open(self) -> KeyValue:
        """The bucket, made if it is missing: a restart of NATS empties it."""
        if self._bucket is None:
            keep_bucket(self._connection, BUCKET, ttl_s=KEPT_S)
            self._bucket = await open_bucket(self._connection, BUCKET, KEPT_S)
        return self._bucket

    def _there(self) -> KeyValue:
        assert self._bucket
        return self._bucket
