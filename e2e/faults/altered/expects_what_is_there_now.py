"""A seeded bug: a fact of an entity expects what its subject holds when it is appended, not what it was decided from.

So nobody ever loses a race, and of two who decide from one version both win it.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

MODULE = "mycelium_kernel.decide"


def patch(decide: Any) -> None:
    """Look how far the subject is right before appending to it; nobody waits for a turn, as in two processes."""
    append = decide.Log.append

    async def appends(self: Any, subject: str, data: bytes, headers: dict[str, str], **said: Any) -> Any:
        if said["expect"] is not None:
            said["expect"] = await self._connection.last_sequence(subject)
        return await append(self, subject, data, headers, **said)

    @contextlib.asynccontextmanager
    async def taken(_self: Any, _subject: str) -> AsyncIterator[Any]:
        from mycelium_kernel.turns import Turn

        yield Turn()

    decide.Turns.taken = taken
    decide.Log.append = appends
