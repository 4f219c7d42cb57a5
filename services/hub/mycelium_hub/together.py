"""The services inside the hub's own process: a sixth of the memory and start-up time of six processes.

`apart` is the other way. Both start every part, mind it, and stop it.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from mycelium_hub.errors import Refused
from mycelium_hub.services import PARTS, Part, Surroundings
from mycelium_kernel import collector, tasks
from mycelium_kernel.errors import words

if TYPE_CHECKING:  # loaded with the first service
    from mycelium_kernel.run import Runtime

LOGGER = logging.getLogger(__name__)
STOP_S = 6.0  # for all services together
LEAST_S = 0.5  # for each, also when one before took all the time
AGAIN_S = 1.0  # between the tries to start a part again


class Together:
    """Every service in this process. `given` tells what a part is started with."""

    def __init__(self, given: Callable[[Part], Surroundings]) -> None:
        self._given = given
        self._running: list[tuple[str, Runtime]] = []
        self._minding: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start one after another; each answers before the next begins. Refuses when one can't be started."""
        for part in filter(_is_here, PARTS):
            self._running.append((part.name, await _start_part(part, self._given(part))))
            self._minding.append(asyncio.create_task(self._mind(part)))
        collector.settle()

    async def _mind(self, part: Part) -> None:
        """Start a part anew whenever NATS has closed its connection for good."""
        place = [name for name, _ in self._running].index(part.name)
        while True:
            runtime = self._running[place][1]
            await runtime.connection.lost.wait()
            LOGGER.error("%s has lost its connection for good: starting it again", part.name)
            stopping = asyncio.create_task(runtime.stop())
            await asyncio.wait((stopping,), timeout=STOP_S)
            await tasks.end([stopping], again_s=LEAST_S)
            self._running[place] = (part.name, await self._start_again(part))

    async def _start_again(self, part: Part) -> Runtime:
        while True:
            try:
                return await _start_part(part, self._given(part))
            except Refused:  # logged where it was raised
                await asyncio.sleep(AGAIN_S)

    async def stop(self) -> bool:
        """Stop in the reverse order of the start, so that nothing loses what it stands on; whether all ended."""
        await tasks.end(self._minding, again_s=LEAST_S)
        clean = True
        until = asyncio.get_running_loop().time() + STOP_S
        while self._running:
            name, runtime = self._running.pop()
            stopping = asyncio.create_task(runtime.stop())
            left = max(LEAST_S, until - asyncio.get_running_loop().time())
            await asyncio.wait((stopping,), timeout=left)
            if not stopping.done():
                clean = False
                LOGGER.error("%s did not stop within %.1f s", name, left)
            elif stopping.exception():
                LOGGER.error("%s did not stop cleanly", name, exc_info=stopping.exception())
        return clean


def _is_here(part: Part) -> bool:
    return part.start is not None


async def _start_part(part: Part, surroundings: Surroundings) -> Runtime:
    """Start a service in a context of its own, by which the log knows whose record it is."""
    from structlog.contextvars import bind_contextvars

    assert part.start is not None
    context = contextvars.copy_context()
    context.run(bind_contextvars, service=part.name)
    try:
        return await asyncio.create_task(part.start(surroundings), context=context)
    except Exception as error:
        LOGGER.exception("%s can't be started", part.name)
        raise Refused(f"{part.name} can't be started: {words(error)}") from error
