"""Processes as the system sees them: who a pid is, who holds a port, and children that can't outlive the hub."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LISTEN = "0A"  # the state in /proc/net/tcp


def dies_with_parent() -> Callable[[], None] | None:
    """What a child does between fork and exec so that the kernel kills it when its parent ends, even by SIGKILL.

    Only Linux has it; elsewhere the next start ends what was left behind.
    """
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return prepare


def command_line(pid: int) -> str:
    """The command line of a process, empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()


def end(pid: int, within_s: float = 5.0) -> None:
    """Kill a process that is not our child, and return once it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not command_line(pid), within_s)


def boot_s() -> float:
    """Seconds since the machine started, sleep included where that can be told; nobody can set this clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def wait_until(condition: Callable[[], bool], within_s: float) -> bool:
    """Look again and again until it is so; False when it was not within the time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def listener(port: int) -> str:
    """The process that listens on a port, as ` (pid 12, python3)`; empty when it can't be told."""
    with contextlib.suppress(OSError, ValueError):
        sockets = _listening_sockets(port)
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and _holds(folder, sockets):
                program = command_line(int(folder.name)).split(" ")[0].rpartition("/")[2]
                return f" (pid {folder.name}, {program})"
    return ""


def _listening_sockets(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _holds(folder: Path, sockets: set[str]) -> bool:
    with contextlib.suppress(OSError):
        return any(os.readlink(entry) in sockets for entry in (folder / "fd").iterdir())
    return False
