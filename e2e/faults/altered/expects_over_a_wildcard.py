"""A seeded bug: facts of entities expect the last place under a wildcard, and therefore seem free to share a batch.

Everything else of optimistic concurrency is kept: the tables hold all up to that place before a command is decided. But
nobody waits for a turn: within one process that would leave the log nothing to settle.
"""

import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

MODULE = "mycelium_kernel.decide"
SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
DECIDED_AT: ContextVar[dict[str, int]] = ContextVar("decided_at")


def patch(decide: Any) -> None:
    """Look how far the log is under each wildcard before deciding, and expect that."""
    attempt, append = decide.Decider._attempt, decide.Log.append  # noqa: SLF001 - what a test build changes

    async def attempts(self: Any, *args: Any) -> Any:
        await self.projector.catch_up()
        DECIDED_AT.set({"position": self.projector.tables.position})
        return await attempt(self, *args)

    async def appends(self: Any, subject: str, data: bytes, headers: dict[str, str], **said: Any) -> Any:
        if said["expect"] is None:
            return await append(self, subject, data, headers, **said)
        wildcard = ".".join(subject.split(".")[:-1]) + ".>"
        last = await self._connection.last_sequence(wildcard)
        if last > DECIDED_AT.get()["position"]:
            raise decide.WrongSequence("decided from what is no longer so")
        expecting = {**headers, decide.headers.EXPECTED: str(last), SUBJECT: wildcard}
        return await append(self, subject, data, expecting, **{**said, "expect": None})

    @contextlib.asynccontextmanager
    async def taken(_self: Any, _subject: str) -> AsyncIterator[Any]:
        from mycelium_kernel.turns import Turn

        yield Turn()

    decide.Turns.taken = taken
    decide.Decider._attempt = attempts  # noqa: SLF001 - as above
    decide.Log.append = appends
