"""A process of the memory service's own, asked over a pipe: started when it is first needed, and again when it ends.

`Child` is the side of the service; `standalone` is the other. Nothing here blocks the event loop, and a child that is
away fails a request at once, or after as long as the caller is ready to wait. It can hold nothing that is not
elsewhere: one that does not answer in time is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mycelium_kernel import tasks
from mycelium_memory.frames import Broken, Frame, receive

LOGGER = logging.getLogger(__name__)
PAUSE_FIRST_S = 0.2
PAUSE_MOST_S = 30.0
HEALTHY_S = 30.0  # one that ran this long begins again with the first pause


class Away(Exception):
    """The process is starting, has ended, or did not answer. The text says which; what was asked may have been done."""


class Failed(Exception):
    """The process answered with an error, which is the text."""


class Child:
    """`python -m module <pid of the parent> *arguments`, which first sends a frame that says hello, then answers."""

    def __init__(self, name: str, module: str, arguments: Sequence[str] = (), *, start_s: float = 120.0) -> None:
        self.name = name
        self.hello: Mapping[str, Any] = {}
        self.starts = 0
        self._command = (sys.executable, "-P", "-m", module, str(os.getpid()), *arguments)
        self._start_s = start_s
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None
        self._reading: list[asyncio.Task[None]] = []
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._numbers = itertools.count(1)
        self._printed = b""  # the end of it, for the text of an error
        self._pause_s = 0.0
        self._not_before = 0.0
        self._since = 0.0
        self._why = "not started yet"
        self._ended = False

    @property
    def is_up(self) -> bool:
        """Whether it said hello and has not ended."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """Its process id while it is up."""
        return self._process.pid if self._process else None

    @property
    def why_away(self) -> str:
        """Why it is not up, in words; empty when it is."""
        if self.is_up:
            return ""
        return f"{self.name} is starting" if self._starting else f"{self.name}: {self._why}"

    def wake(self) -> None:
        """Start it, if it is not up and its pause is over; returns at once."""
        if self.is_up or self._starting or self._ended or asyncio.get_running_loop().time() < self._not_before:
            return
        self._starting = asyncio.create_task(self._start(), name=f"start of {self.name}")

    async def ask(self, body: Mapping[str, Any], blob: bytes = b"", *, within_s: float, patience_s: float) -> Frame:
        """The answer to a request. Waits `patience_s` for a process that is starting; raises `Away` or `Failed`."""
        process = await self._up(patience_s)
        number = next(self._numbers)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(within_s):
                assert process.stdin is not None
                process.stdin.write(Frame({**body, "id": number}, blob).encode())
                await process.stdin.drain()
                frame = await answer
        except TimeoutError:
            self._kill(process, f"did not answer within {within_s:g} s")
            raise Away(f"{self.name} did not answer within {within_s:g} s") from None
        except (ConnectionError, RuntimeError) as error:  # the pipe's end, in the words of the one loop or the other
            raise Away(f"{self.name} has just ended ({error})") from None
        finally:
            self._waiting.pop(number, None)
        if "error" in frame.body:
            raise Failed(f"{self.name}: {frame.body['error']}")
        return frame

    async def stop(self) -> None:
        """End it for good. It has nothing to save: what it holds can be made again."""
        self._ended = True
        if self._starting is not None:  # once: its own end waits for the process that it kills
            self._starting.cancel()
            await asyncio.wait([self._starting], timeout=5)
        if self._process is not None:
            self._kill(self._process, "stopped")
        if self._reading:
            await asyncio.wait(self._reading, timeout=5)
        await tasks.end(self._reading)
        self._lost("stopped")

    async def _up(self, patience_s: float) -> asyncio.subprocess.Process:
        pause_s = self._not_before - asyncio.get_running_loop().time()
        if self._process is None and self._starting is None and 0 < pause_s <= patience_s:
            await asyncio.sleep(pause_s)
        self.wake()
        if self._process is None and self._starting is not None and patience_s > 0:
            await asyncio.wait([self._starting], timeout=patience_s)
        if self._process is None:
            raise Away(self.why_away)
        return self._process

    async def _start(self) -> None:
        process = None
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(),
            )
            await self._greet(process)
        except (OSError, TimeoutError, Broken) as error:
            self._rest(f"could not be started ({error or type(error).__name__}{self._last_words()})")
        finally:
            self._starting = None
            if process is not None and self._process is not process:
                self._kill(process, "")
                await process.wait()

    async def _greet(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        printing = asyncio.create_task(self._print(process.stderr), name=f"what {self.name} prints")
        self._reading = [printing]
        async with asyncio.timeout(self._start_s):
            hello = await receive(process.stdout)
        if hello is None:
            await asyncio.wait([printing], timeout=1)
            raise Broken(f"ended with {await process.wait()}")
        self.hello, self.starts, self._since = hello.body, self.starts + 1, asyncio.get_running_loop().time()
        self._process = process
        self._reading.append(asyncio.create_task(self._read(process), name=f"answers of {self.name}"))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        why = ""
        try:
            while (frame := await receive(process.stdout)) is not None:
                answer = self._waiting.get(frame.body["id"])
                if answer is not None and not answer.done():
                    answer.set_result(frame)
        except Broken as error:
            why = str(error)
        if why:
            self._kill(process, why)
        status = await _ended(process)
        self._lost(why or f"ended with {status}{self._last_words()}")

    def _lost(self, why: str) -> None:
        """Nobody waits for answers that can't come."""
        why = "stopped" if self._ended else why
        if self._process is not None:
            self._process = None
            self._rest(why)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(Away(self.why_away))

    def _rest(self, why: str) -> None:
        now = asyncio.get_running_loop().time()
        healthy = bool(self._since) and now - self._since >= HEALTHY_S
        self._pause_s = PAUSE_FIRST_S if healthy or not self._pause_s else min(self._pause_s * 2, PAUSE_MOST_S)
        self._not_before, self._why, self._since = now + self._pause_s, why, 0.0
        if not self._ended:
            LOGGER.warning("%s: %s", self.name, why)

    async def _print(self, stream: asyncio.StreamReader) -> None:
        while some := await stream.read(4096):
            self._printed = (self._printed + some)[-4096:]

    def _last_words(self) -> str:
        lines = self._printed.decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""

    def _kill(self, process: asyncio.subprocess.Process, why: str) -> None:
        if why and not self._ended:
            LOGGER.warning("%s is ended: %s", self.name, why)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Its status. One that has closed its pipe is ending; asyncio's own kill would take the status from asyncio."""
    try:
        async with asyncio.timeout(5):
            return await process.wait()
    except TimeoutError:
        process.kill()
        return await process.wait()


def _environment() -> dict[str, str]:
    """The service's own, without what is not the child's business, such as passwords; it fetches nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MYCELIUM_")}
    return {**kept, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
