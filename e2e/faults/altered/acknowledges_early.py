"""A seeded bug: a free fact is acknowledged before it was appended, with the place that it will probably get."""

import asyncio
from typing import Any

MODULE = "mycelium_kernel.log"


def patch(log: Any) -> None:
    """Let `append` answer at once."""
    append = log.Log.append
    under_way: set[asyncio.Task[Any]] = set()
    last = 0

    async def late(*args: Any, **said: Any) -> Any:
        nonlocal last
        appended = await append(*args, **said)
        last = max(last, appended.sequence)
        return appended

    async def early(self: Any, subject: str, data: bytes, headers: dict[str, str], **said: Any) -> Any:
        if said["expect"] is not None:
            return await late(self, subject, data, headers, **said)
        task = asyncio.create_task(late(self, subject, data, headers, **said))
        under_way.add(task)
        task.add_done_callback(_forget(under_way))
        return log.Appended(last + len(under_way))

    log.Log.append = early


def _forget(under_way: set[asyncio.Task[Any]]) -> Any:
    def forget(task: asyncio.Task[Any]) -> None:
        under_way.discard(task)
        if not task.cancelled():
            task.exception()  # nobody is told any more

    return forget
