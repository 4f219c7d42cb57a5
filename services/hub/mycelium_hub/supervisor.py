"""A child process that is kept running: started again with a growing pause when it ends, ended with the hub."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mycelium_hub import processes

LOGGER = logging.getLogger(__name__)
PAUSE_FIRST_S = 0.05
PAUSE_MOST_S = 5.0
HEALTHY_S = 10.0  # a child that ran this long begins again with the first pause
STOP_S = 10.0


class StartFailed(Exception):
    """The child ended before it was ready for the first time."""


def pause_after(pause_s: float, ran_s: float) -> float:
    """How long to wait before the next start, after one that ran for `ran_s` and was preceded by `pause_s`."""
    if ran_s >= HEALTHY_S or pause_s == 0:
        return PAUSE_FIRST_S
    return min(pause_s * 2, PAUSE_MOST_S)


@dataclass(frozen=True)
class ChildCommand:
    """What to run, and how to tell that it is ready."""

    name: str
    command: Sequence[str]
    ready: Callable[[], Awaitable[None]]
    stop_signal: signal.Signals = signal.SIGTERM


class Child:
    """One supervised process."""

    def __init__(self, what: ChildCommand) -> None:
        self.what = what
        self.process: asyncio.subprocess.Process | None = None
        self.restarts = 0
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it, and return once it is ready. Raises `StartFailed` when it ends before that."""
        process = await self._spawn()
        ended = asyncio.create_task(process.wait())
        ready = asyncio.ensure_future(self.what.ready())
        done, _ = await asyncio.wait((ended, ready), return_when=asyncio.FIRST_COMPLETED)
        if ready not in done:
            ready.cancel()
            raise StartFailed(f"{self.what.name} ended with status {process.returncode} before it was ready")
        ended.cancel()
        self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.what.name}")

    async def stop(self) -> None:
        """End it and see it gone."""
        if self._keeper:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(self.what.stop_signal)
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            LOGGER.warning("%s did not stop within %.0f s and is killed", self.what.name, STOP_S)
            process.kill()
            await process.wait()

    async def _spawn(self) -> asyncio.subprocess.Process:
        self.process = await asyncio.create_subprocess_exec(
            *self.what.command,
            stdin=asyncio.subprocess.DEVNULL,
            preexec_fn=processes.dies_with_parent(),
            start_new_session=True,  # Ctrl-C is for the hub, which stops its children in order
        )
        LOGGER.info("%s started, pid %d", self.what.name, self.process.pid)
        return self.process

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = 0.0
        while True:
            assert self.process is not None
            began = loop.time()
            status = await self.process.wait()
            pause_s = pause_after(pause_s, loop.time() - began)
            LOGGER.warning("%s ended with status %d; starting again in %.2f s", self.what.name, status, pause_s)
            await asyncio.sleep(pause_s)
            self.restarts += 1
            try:
                await self._spawn()
            except OSError:
                LOGGER.exception("%s can't be started", self.what.name)
