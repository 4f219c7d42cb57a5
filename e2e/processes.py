"""Programs that run beside a test: started with a clean environment, read line by line, ended by their pid."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from e2e.waiting import until


class Result(NamedTuple):
    """How a program ended and what it said."""

    status: int
    out: str
    err: str

    def ok(self) -> "Result":
        """Itself, when it went well."""
        assert self.status == 0, f"exit {self.status}\n{self.out}{self.err}"
        return self

    def failed(self, status: int) -> "Result":
        """Itself, when it ended so."""
        assert self.status == status, f"exit {self.status}\n{self.out}{self.err}"
        return self

    @property
    def json(self) -> Any:
        """The JSON that it printed."""
        import json

        return json.loads(self.ok().out)


class Background:
    """A program that is running, with everything it has said so far."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str], cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            _reader(self.process.stdout, self.out),
            _reader(self.process.stderr, self.err),
        ]

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def line(self, wanted: Callable[[str], bool], what: str, within_s: float = 60.0) -> str:
        """The first line on stdout that is wanted."""

        def look() -> str | None:
            return next((line for line in list(self.out) if wanted(line)), None)

        return until(look, f"{what}; it said {self.out + self.err}", within_s)

    def ended(self, within_s: float = 60.0) -> Result:
        """How it ended, waiting for that."""
        try:
            status = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within_s:g} s; it said {self.out + self.err}") from None
        for reader in self._readers:
            reader.join(within_s)
        return Result(status, "".join(self.out), "".join(self.err))

    def signal(self, number: int) -> None:
        """Send it a signal, unless it is gone."""
        if self.alive:
            os.kill(self.pid, number)

    def kill(self) -> Result:
        """SIGKILL it."""
        self.signal(signal.SIGKILL)
        return self.ended()

    def end(self) -> Result:
        """Ask it to end; SIGKILL when it doesn't listen."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            return self.ended()
        return self.kill()


def _reader(stream: IO[str], lines: list[str]) -> threading.Thread:
    def read() -> None:
        with stream:
            for line in iter(stream.readline, ""):
                lines.append(line)  # noqa: PERF402 - one by one: the test looks meanwhile

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def children(pid: int) -> dict[int, str]:
    """The processes that a process has started, with theirs: pid to command line."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines() if len(line.split(None, 2)) == 3]
    found: dict[int, str] = {}
    parents = [pid]
    while parents:
        parent = parents.pop()
        for child, of, command in rows:
            if int(of) == parent:
                found[int(child)] = command
                parents.append(int(child))
    return found


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(listed.stdout.strip()) and not listed.stdout.strip().startswith("Z")
