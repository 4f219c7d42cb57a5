"""A child process that is kept running: started again when it ends or answers nothing any more, ended with the hub."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mycelium_hub import processes
from mycelium_kernel import tasks

LOGGER = logging.getLogger(__name__)
PAUSE_FIRST_S = 0.05
PAUSE_MOST_S = 5.0
HEALTHY_S = 10.0  # a child that ran this long begins again with the first pause
STOP_S = 10.0
PRINTED = os.O_WRONLY | os.O_CREAT | os.O_APPEND
SILENT_LOOKS = 5  # this many in a row without an answer, and it is taken for frozen


class StartFailed(Exception):
    """The child ended before it was ready for the first time."""


def pause_after(pause_s: float, ran_s: float) -> float:
    """How long to wait before the next start, after one that ran for `ran_s` and was preceded by `pause_s`."""
    if ran_s >= HEALTHY_S or pause_s == 0:
        return PAUSE_FIRST_S
    return min(pause_s * 2, PAUSE_MOST_S)


async def _always() -> None:
    return


def _unheard(_pid: int, _restarts: int) -> None:
    return


def _nothing() -> None:
    return


@dataclass(frozen=True)
class ChildCommand:
    """What to run, how to tell that it is ready, and how to tell that it still answers.

    `answers` returns once it does, or when it can't be called at all: then it is starting, or has ended, which is seen
    otherwise. A child that may be killed at any moment without losing anything may have one. `environment` None hands
    on the hub's own; `files` are open files that the child inherits under their numbers. `started` is told of each
    start: the process id, and how many starts came before it. `before` is called, in a thread, before each start.
    `output` is the file that gets what it prints; without one it prints where the hub does.
    """

    name: str
    command: Sequence[str]
    ready: Callable[[], Awaitable[None]]
    stop_signal: signal.Signals = signal.SIGTERM
    answers: Callable[[], Awaitable[None]] = _always
    look_s: float = 2.0  # between two looks at whether it answers, and how long it has for one
    environment: Mapping[str, str] | None = None
    files: tuple[int, ...] = ()
    started: Callable[[int, int], None] = _unheard
    before: Callable[[], None] = _nothing
    output: Path | None = None


class Child:
    """One supervised process."""

    def __init__(self, what: ChildCommand) -> None:
        self.what = what
        self.process: asyncio.subprocess.Process | None = None
        self.restarts = 0
        self._ending = False
        self._starting = asyncio.Lock()
        self._keepers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start it, and return once it is ready. Raises `StartFailed` when it ends before that."""
        process = await self._spawn()
        ended = asyncio.create_task(process.wait())
        ready = asyncio.create_task(_wait_for(self.what.ready))
        try:
            await asyncio.wait((ended, ready), return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise StartFailed(f"{self.what.name} ended with status {process.returncode} before it was ready")
        finally:
            await tasks.end([ready, ended])
        name = self.what.name
        self._keepers = [
            asyncio.create_task(self._keep(), name=f"keep {name}"),
            asyncio.create_task(self._watch(), name=f"watch {name}"),
        ]

    async def stop(self) -> None:
        """End it and see it gone. One that answers nothing is killed at once: it would not hear the signal."""
        self._ending = True
        async with self._starting:  # never in the middle of a start, of which nobody would know the process
            await tasks.end(self._keepers)
        if await self._answers():
            self._signal(self.what.stop_signal)
            if await self._gone(STOP_S):
                return
            LOGGER.warning("%s did not stop within %.0f s and is killed", self.what.name, STOP_S)
        await self._kill()

    async def end_if_frozen(self) -> None:
        """Kill it for good when it answers nothing, so that nobody waits for it while all is being stopped."""
        self._ending = True
        if not await self._answers():
            LOGGER.warning("%s does not answer and is killed", self.what.name)
            await self._kill()

    async def restart(self) -> None:
        """Stop it in its own way; the keeper starts it again."""
        self._signal(self.what.stop_signal)
        if not await self._gone(STOP_S):
            await self._kill()

    async def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        await self._gone(STOP_S)

    def _signal(self, number: signal.Signals) -> None:
        if self.process and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def _gone(self, within_s: float) -> bool:
        if self.process is None:
            return True
        waiting = asyncio.create_task(self.process.wait())
        await asyncio.wait((waiting,), timeout=within_s)
        gone = waiting.done()
        await tasks.end([waiting])
        return gone

    async def _answers(self) -> bool:
        """Whether it still answers, or is not there to do so."""
        try:
            async with asyncio.timeout(self.what.look_s):
                await self.what.answers()
        except TimeoutError:
            return False
        return True

    async def _spawn(self) -> asyncio.subprocess.Process:
        await asyncio.to_thread(self.what.before)
        printed = os.open(self.what.output, PRINTED, 0o600) if self.what.output else None
        try:
            self.process = await self._exec(printed)
        finally:
            if printed is not None:
                os.close(printed)
        self.what.started(self.process.pid, self.restarts)
        LOGGER.info("%s started, pid %d", self.what.name, self.process.pid)
        return self.process

    async def _exec(self, printed: int | None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.what.command,
            stdout=printed,
            stderr=printed,
            stdin=asyncio.subprocess.DEVNULL,
            preexec_fn=processes.dies_with_parent(),
            start_new_session=True,  # Ctrl-C is for the hub, which stops its children in order
            env=self.what.environment,
            pass_fds=self.what.files,
        )

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = 0.0
        while True:
            assert self.process is not None
            began = loop.time()
            status = await self.process.wait()
            if self._ending:
                return
            pause_s = pause_after(pause_s, loop.time() - began)
            LOGGER.warning("%s ended with status %d; starting again in %.2f s", self.what.name, status, pause_s)
            await asyncio.sleep(pause_s)
            async with self._starting:
                await self._start_again()

    async def _start_again(self) -> None:
        if self._ending:
            return
        self.restarts += 1
        try:
            await self._spawn()
        except OSError:
            LOGGER.exception("%s can't be started", self.what.name)

    async def _watch(self) -> None:
        """Kill it when it has answered nothing for a while; the keeper then starts it again."""
        silent = 0
        while not self._ending:
            if await self._answers():
                silent = 0
                await asyncio.sleep(self.what.look_s)
                continue
            silent += 1
            LOGGER.warning("%s has not answered for %.0f s", self.what.name, silent * self.what.look_s)
            if silent == SILENT_LOOKS:
                LOGGER.error("%s is taken for frozen and is killed", self.what.name)
                await self._kill()
                silent = 0


async def _wait_for(what: Callable[[], Awaitable[None]]) -> None:
    await what()
