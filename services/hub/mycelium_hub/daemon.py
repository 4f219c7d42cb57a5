"""The hub as a background process, seen from the command that starts or stops it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mycelium_hub import processes, roster
from mycelium_hub.errors import Refused
from mycelium_hub.home import DATA, Home, Running, write_private
from mycelium_hub.settings import FLAGS, SECRETS, secret_file
from mycelium_kernel.settings import Value

READY_S = 120.0  # tables may have to be made anew from a long log
STOP_S = 30.0
LINES_SHOWN = 12
ANSWERS = "The hub answers at"


def command(home: Home, flags: Mapping[str, Value], *more: str) -> list[str]:
    """The command line of the hub's own process; it names the home, and imports nothing from the caller's folder.

    `flags` holds, by key, the settings that the command line overrides.
    """
    said = [f"{FLAGS[key]}={value}" if value is not True else FLAGS[key] for key, value in flags.items()]
    return [sys.executable, "-P", "-m", "mycelium_hub", "serve", "--home", str(home.path), *said, *more]


def become(arguments: Sequence[str]) -> None:
    """Turn this process into the hub's own."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(arguments[0], list(arguments))  # noqa: S606 - no shell is wanted


def start(home: Home, flags: Mapping[str, Value]) -> tuple[Running, bool]:
    """The hub that runs on `home`, and whether this call started it. Returns once it answers."""
    home.prepare()
    found = wait_for_other(home)
    if found:
        return found, False
    words = _printed(home)
    with words.open("wb") as file:
        os.chmod(words, 0o600)
        process = subprocess.Popen(
            command(home, flags, "--background"),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            cwd=home.path,
        )

    def settled() -> bool:
        running = home.running()
        return process.poll() is not None or (running is not None and running.pid == process.pid)

    try:
        in_time = processes.wait_until(settled, READY_S)
    except KeyboardInterrupt:
        process.terminate()
        raise
    if not in_time:
        process.terminate()
        raise Refused(f"the hub did not answer within {READY_S:.0f} s and was stopped; see `mycelium logs`")
    running = home.running()
    if running is None:
        raise Refused(_reason(words, process.poll()))
    return running, True


def wait_for_other(home: Home) -> Running | None:
    """A hub that is starting at this moment is waited for."""
    if home.owner() is None:
        return None
    processes.wait_until(lambda: home.running() is not None or home.owner() is None, READY_S)
    return home.running()


def _printed(home: Home) -> Path:
    """What a hub in the background prints."""
    return home.logs / "start.log"


def last_words(home: Home) -> str:
    """The last line that a hub in the background printed; empty when that is not why it ended."""
    with contextlib.suppress(OSError):
        lines = _printed(home).read_text(errors="replace").strip().splitlines()
        return "" if not lines or lines[-1].startswith(ANSWERS) else lines[-1].removeprefix("error: ")
    return ""


def _reason(words: Path, status: int | None) -> str:
    said = words.read_text(errors="replace").strip().splitlines()[-LINES_SHOWN:]
    told = "\n".join(said).removeprefix("error: ")
    return told or f"the hub ended with status {status}; see `mycelium logs`"


def stop(home: Home) -> int | None:
    """Stop the hub of `home` and see it gone. Its process id, or None when none ran."""
    owner = home.owner()
    if owner == 0:
        processes.wait_until(lambda: home.owner() != 0, 1.0)
        owner = home.owner()
    if not owner:
        _sweep(home)
        return None
    try:
        os.kill(owner, signal.SIGTERM)
    except PermissionError:
        raise Refused(f"the hub on {home.path} is another user's, pid {owner}") from None
    except ProcessLookupError:
        pass

    def gone() -> bool:
        return home.owner() != owner and str(home.path) not in processes.command_line(owner)

    if not processes.wait_until(gone, STOP_S):
        os.kill(owner, signal.SIGKILL)
        processes.wait_until(gone, STOP_S)
    _sweep(home)
    return owner


def _sweep(home: Home) -> None:
    """Take away what a hub that was killed could not."""
    if home.owner() is None and home.run.exists():
        home.withdraw()
        roster.end_leftovers(home)


def delete_data(home: Home) -> None:
    """Delete what the hub of `home` keeps; settings stay. Refuses while a hub runs."""
    if not home.run.exists():
        return
    with home.owned():
        files = [home.secrets / secret_file(setting) for setting in SECRETS]
        kept = {file: file.read_text(encoding="utf-8") for file in files if file.exists()}
        for folder in (*home.stores, *(home.path / name for name in DATA)):
            shutil.rmtree(folder, ignore_errors=True)
        if kept:
            home.secrets.mkdir(mode=0o700)
        for file, text in kept.items():
            write_private(file, text)
