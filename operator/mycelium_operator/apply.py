"""Makes a room as its object wants it, and reports; unmakes it when the object goes. Safe to repeat after any step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakValueDictionary

from mycelium_operator import desired, names
from mycelium_operator.cluster import Cluster
from mycelium_operator.desired import Found, Json, Known, Outcome, Wanted
from mycelium_operator.hub import Away, Hub, Refused

Now = Callable[[], str]
OURS = frozenset({"key.reused"})  # made under this very key, when the object asked for another privacy


class Operator:
    """What its handlers need: the hub, the cluster, the time."""

    def __init__(self, hub: Hub, cluster: Cluster, now: Now) -> None:
        self._hub = hub
        self._cluster = cluster
        self._now = now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by uid: one at a time

    async def make_so(self, body: Json) -> None:
        """Make the room as wanted and say how it went. Raises `Away`, once that has been said too, when the hub is.

        What was seen of the object may be old by now, so it is read first.
        """
        async with self._locks.setdefault(body["metadata"]["uid"], asyncio.Lock()):
            current = await self._cluster.read(body)
            if current is not None and not desired.is_going(current):
                await self._make_so(current)

    async def _make_so(self, body: Json) -> None:
        want, know = desired.wanted(body), desired.known(body)
        try:
            know, found = await self._room(body, want, know)
            if found is None:
                await self._report(body, know, _taken(want))
                return
            know = await self._note(body, want, know)
            await self._fill(want, found, know)
            know = replace(know, members=tuple(want.members), engines=tuple(want.engines))
        except Refused as refused:
            await self._report(body, know, Outcome(False, names.REFUSED, f"{refused.slug}: {refused}"))
        except Away as away:
            await self._report(body, know, Outcome(False, names.HUB_AWAY, str(away)))
            raise
        else:
            await self._report(body, know, _done(want, know))

    async def unmake(self, body: Json) -> None:
        """Delete the room that was made for the object. Raises `Away` when the hub is."""
        async with self._locks.setdefault(body["metadata"]["uid"], asyncio.Lock()):
            await self._unmake(await self._cluster.read(body) or body)

    async def _unmake(self, body: Json) -> None:
        want, know = desired.wanted(body), desired.known(body)
        if not want.goes:
            return
        try:
            made = know.made or await self._made_unnoticed(body, want, know)
            if made:
                await self._hub.delete(made)
        except Away as away:
            await self._report(body, know, Outcome(False, names.HUB_AWAY, f"the room can't be deleted: {away}"))
            raise

    async def _room(self, body: Json, want: Wanted, know: Known) -> tuple[Known, Found | None]:
        """The room, made if it is missing; None when the name is taken by one that the operator can't see."""
        found = await self._hub.find(want.name)
        if found is None or found.id not in (know.made, know.adopted):
            if want.goes:  # before there is anything to clean up
                await self._cluster.hold(body, held=True)
            made = await self._make(body, want, know)
            know = replace(know, made=made, adopted="" if made or not found else found.id)
            await self._write(body, know)
            found = await self._hub.find(made or want.name)
        await self._hold(body, want, know)
        return know, found

    async def _hold(self, body: Json, want: Wanted, know: Known) -> None:
        """Keep the object until its room is deleted, if it is to be and the operator made it; else let it go."""
        current = await self._cluster.read(body)
        if current and not desired.is_going(current):
            await self._cluster.hold(current, held=bool(want.goes and know.made))

    async def _make(self, body: Json, want: Wanted, know: Known) -> str:
        """The id of the room that was made for this object, now or by an earlier try; empty when the name is taken."""
        try:
            return await self._hub.make(want.name, private=bool(want.private), key=desired.key(body, know))
        except Refused as refused:
            if refused.slug in OURS:
                found = await self._hub.find(want.name)
                return found.id if found else ""
            if refused.slug != "room.name_taken":
                raise
            return ""

    async def _made_unnoticed(self, body: Json, want: Wanted, know: Known) -> str:
        """The id of a room that was made before the operator could write it down."""
        found = await self._hub.find(want.name)
        if found is None or found.id == know.adopted:
            return ""
        return await self._make(body, want, know)

    async def _note(self, body: Json, want: Wanted, know: Known) -> Known:
        """Write down who is going to be added, so that they are known to go again even when this ends half-way."""
        noted = replace(
            know,
            members=tuple(dict.fromkeys((*know.members, *want.members))),
            engines=tuple(dict.fromkeys((*know.engines, *want.engines))),
        )
        if noted != know:
            await self._write(body, noted)
        return noted

    async def _fill(self, want: Wanted, found: Found, know: Known) -> None:
        """Settings, members, engines."""
        todo = desired.steps(want, found, know)
        if todo.settings:
            await self._hub.change(found.id, todo.settings)
        for member in todo.members:
            await self._hub.add(found.id, member)
        for engine in todo.engines:
            await self._hub.add_engine(found.id, engine)
        for handle in todo.leaving:
            await self._hub.remove(found.id, handle)

    async def _write(self, body: Json, know: Known) -> None:
        """Keep what is known, whatever is still to come."""
        await self._cluster.apply_status(body, desired.noted(body, know))

    async def _report(self, body: Json, know: Known, outcome: Outcome) -> None:
        now = self._now()
        before = desired.condition(body)
        said = desired.status(body, know, outcome, now)
        if said != body.get("status"):
            await self._cluster.apply_status(body, said)
        if (before.get("reason"), before.get("message")) != (outcome.reason, outcome.message):
            await self._cluster.tell(
                body, warning=not outcome.ready, reason=outcome.reason, message=outcome.message, now=now
            )


def _taken(want: Wanted) -> Outcome:
    return Outcome(False, names.NAME_TAKEN, f"a room named {want.name!r} exists, and the operator is no member of it")


def _done(want: Wanted, know: Known) -> Outcome:
    if know.made:
        return Outcome(True, names.AS_WANTED, f"room {want.name!r} is as wanted")
    return Outcome(True, names.ADOPTED, f"room {want.name!r} is as wanted; it was there before, so it is never deleted")
