"""Keeps the people of two issuers apart who have one handle: it is of the issuer that proved it first.

The rooms service knows whose each handle is. It is asked once for each handle that an issuer proves, and by each
process; what it said stays true for as long as this process runs, since its settings do.
"""

from __future__ import annotations

import asyncio
import logging

from mycelium.rooms.v1 import issuers_pb2
from mycelium_gateway.identity import Identity
from mycelium_gateway.issuers import AuthSettings
from mycelium_kernel import tasks
from mycelium_kernel.bus import Bus
from mycelium_kernel.errors import Internal, Refusal, Unavailable
from mycelium_kernel.service import Actor

LOGGER = logging.getLogger(__name__)
NOBODY = Actor("", "")
REMEMBERED = 10_000  # handles; more are asked for again
TOLD = 1_000  # handles of two issuers that are counted for /health


class Namesakes:
    """What this process knows of whose handles are."""

    def __init__(self, bus: Bus, auth: AuthSettings) -> None:
        self._bus = bus
        self._sources = {one.issuer: one.names_of or one.issuer for one in auth.issuers}
        self._trusted = sorted(set(self._sources.values()))
        self._owners: dict[tuple[str, str], str] = {}  # by issuer and handle
        self._clashes: dict[tuple[str, str], set[str]] = {}  # handles, by the issuer that is refused and the owner
        self._noting: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def check(self, identity: Identity) -> None:
        """Refused when the handle is another issuer's.

        While one alone is trusted nobody can clash, so nobody waits: it is noted for the day when there are two.
        """
        known = self._sources[identity.issuer], identity.handle
        if known not in self._owners:
            if len(self._trusted) < 2:
                self._note(known)
                return
            await self._ask(known)
        owner = self._owners[known]
        if owner == known[0]:
            return
        handles = self._clashes.setdefault((identity.issuer, owner), set())
        if len(handles) < TOLD:
            handles.add(identity.handle)
        detail = (
            f"token rejected: @{identity.handle} is of {owner} on this hub, and the token is from {identity.issuer}"
        )
        raise Refusal("token.refused", detail, next=f"mycelium login --issuer {owner}")

    def troubles(self) -> list[str]:
        """Which issuers give out names of each other, a line each."""
        return [
            f"{len(handles)} of the handles that {issuer} gives out are of {owner} here, and its tokens for them are"
            " refused; if they are the same people, set names_of"
            for (issuer, owner), handles in self._clashes.items()
        ]

    async def stop(self) -> None:
        """Note no more."""
        await tasks.end(list(self._noting.values()))

    async def _ask(self, known: tuple[str, str]) -> None:
        issuer, handle = known
        request = issuers_pb2.ProveHandleRequest(handle=handle, issuer=issuer, trusted=self._trusted)
        answer = await self._bus.ask(request, issuers_pb2.ProveHandleResponse, actor=NOBODY)
        while len(self._owners) >= REMEMBERED:
            del self._owners[next(iter(self._owners))]
        self._owners[known] = answer.message.issuer

    def _note(self, known: tuple[str, str]) -> None:
        """Have it noted whose the handle is, behind the request that came with it."""
        if known not in self._noting:
            task = asyncio.create_task(self._try(known), name="namesakes-note")
            self._noting[known] = task
            task.add_done_callback(lambda _done: self._noting.pop(known, None))

    async def _try(self, known: tuple[str, str]) -> None:
        try:
            await self._ask(known)
        except (Refusal, Unavailable, Internal) as error:
            LOGGER.info("whose @%s is can't be noted: %s", known[1], error)
