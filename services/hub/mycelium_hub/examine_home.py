"""Looks at the files of a home and at the process that owns it: settings, owners, leftovers, port, drift, limits."""

from __future__ import annotations

import os
import resource
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from mycelium_hub import address, drift, processes, roster, settings, settings_file
from mycelium_hub.errors import Refused
from mycelium_hub.finding import NOTE, OK, WRONG, Finding
from mycelium_hub.home import DATA, Home

MOST_FILES = 20_000
SHOWN = 3
OTHERS = stat.S_IRWXG | stat.S_IRWXO
FILES_FEW, FILES_MANY = 1_024, 4_096
FILES_USED = 0.8
JUMP_S = 5.0
RESTART = "mycelium down && mycelium up"


def check_settings(home: Home) -> Iterator[Finding]:
    """`config.toml`: that it can be read, and that everything in it means something."""
    path = home.path / "config.toml"
    wrong = settings_file.faults(home.path)
    for fault in wrong:
        yield Finding("config", WRONG, fault.seen, fault.next)
    if not wrong:
        yield Finding("config", OK, f"{path} is right" if path.exists() else f"no {path}; the defaults are used")


def check_files(home: Home) -> Iterator[Finding]:
    """Whose the files are, and that nobody else reads what was said or is secret."""
    if not home.path.is_dir():
        yield Finding("files", OK, f"{home.path} is not there yet; `mycelium up` makes it")
        return
    foreign, readable, count = _walk(home)
    if foreign:
        seen = f"{len(foreign)} of {count} files in {home.path} belong to somebody else: {_some(foreign)}"
        yield Finding("files", WRONG, seen, f"sudo chown -R $USER {home.path}")
    if readable:
        seen = f"others on this machine may read {_some(readable)}"
        yield Finding("files", WRONG, seen, "mycelium-hub doctor --fix", partial(_close, readable))
    if not foreign and not readable:
        yield Finding("files", OK, f"{count} files in {home.path} are this user's, private where they must be")


def _walk(home: Home) -> tuple[list[Path], list[Path], int]:
    foreign, readable, count = [], [], 0
    private = {home.path, home.path / "config.toml", *(home.path / name for name in DATA)}
    for folder, _folders, names in os.walk(home.path):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            try:
                found = path.lstat()
            except OSError:
                continue  # gone since
            count += 1
            if found.st_uid != os.geteuid():
                foreign.append(path)
            elif found.st_mode & OTHERS and (path in private or path.parent == home.secrets):
                readable.append(path)
        if count > MOST_FILES:
            break
    return foreign, readable, count


def _some(paths: list[Path]) -> str:
    shown = ", ".join(str(path) for path in paths[:SHOWN])
    return shown if len(paths) <= SHOWN else f"{shown} and {len(paths) - SHOWN} more"


def _close(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~OTHERS)


def check_leftovers(home: Home) -> Iterator[Finding]:
    """Whether a hub owns this home, and what a dead one left behind."""
    owner = home.owner()
    if owner is not None:
        running = home.running()
        seen = f"runs at {running.url}, pid {running.pid}" if running else f"is starting, pid {owner}"
        yield Finding("hub", OK if running else NOTE, seen, "" if running else "mycelium logs hub --follow")
        return
    left = _leftovers(home)
    if left:
        seen = f"a hub that is gone left behind: {', '.join(left)}"
        yield Finding("hub", WRONG, seen, "mycelium-hub doctor --fix", partial(_sweep, home))
    else:
        yield Finding("hub", NOTE, f"no hub runs on {home.path}; nothing is left of an earlier one", "mycelium up")


def _leftovers(home: Home) -> list[str]:
    left = [str(home.hub_file)] if home.hub_file.exists() else []
    left += [f"{member.name}, pid {member.pid}" for member in roster.members(home)]
    return left + [str(path) for path in _unfinished(home)]


def _unfinished(home: Home) -> list[Path]:
    """Files that were being written when their writer was killed."""
    return [path for folder in (home.run, home.secrets) if folder.is_dir() for path in folder.glob(".*.*.*")]


def _sweep(home: Home) -> None:
    with home.owned():
        home.withdraw()
        roster.end_leftovers(home)
        for path in _unfinished(home):
            path.unlink()


def check_port(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the hub has its port, or could have it."""
    running = home.running()
    if running:
        port = urlsplit(running.url).port or 0
        yield Finding("port", OK, f"port {port} is the hub's")
        return
    try:
        wanted = settings.load(home.path, environ)
    except Refused:
        return  # said of the settings
    try:
        with closing(address.listen(wanted.host, wanted.port)):
            pass
    except Refused as refused:
        yield Finding("port", WRONG, str(refused), f"lsof -i :{wanted.port}, or mycelium up --port 0")
        return
    yield Finding("port", OK, f"port {wanted.port} is free" if wanted.port else "any free port will be taken")


def check_drift(home: Home) -> Iterator[Finding]:
    """What the hub runs with against what stands in `config.toml` now, and the clock since its start."""
    started = home.started()
    if started is None:
        return
    try:
        found = drift.differences(home, started)
    except Refused:
        found = []  # said of the settings
    for one in found:
        seen = f"Runtime config drift: the hub runs with {one.key} {drift.shown(one.running)} ({one.source})"
        told = f"{seen}, now it is {drift.shown(one.written)} in {one.written_source}"
        if one.overruled:
            yield Finding("drift", NOTE, told, f"mycelium down, then mycelium up without {one.source}")
        else:
            yield Finding("drift", WRONG, told, drift.APPLY)
    if not found:
        yield Finding("drift", OK, "the hub runs with the settings as they are")
    jumped_s = (time.time() - started.wall_s) - (processes.boot_s() - started.boot_s)
    if abs(jumped_s) > JUMP_S:
        seen = f"this machine's clock was set {'forward' if jumped_s > 0 else 'back'} by {abs(jumped_s):.0f} s"
        yield Finding("clock", NOTE, f"{seen} since the hub started", "timedatectl status")


def check_limits(home: Home) -> Iterator[Finding]:
    """How many files the hub may open: every reader of a live stream is one."""
    owner = home.owner()
    if owner and sys.platform.startswith("linux"):
        most = resource.prlimit(owner, resource.RLIMIT_NOFILE)[0]
        used = len(os.listdir(f"/proc/{owner}/fd"))
        seen = f"{used} of {most} files are open"
    else:
        most, used = resource.getrlimit(resource.RLIMIT_NOFILE)[1], 0
        seen = f"a hub may open {'any number of' if most == resource.RLIM_INFINITY else most} files"
    most = sys.maxsize if most == resource.RLIM_INFINITY else most
    if most < FILES_FEW or used > most * FILES_USED:
        yield Finding("limits", WRONG, f"{seen}, too few for more readers", f"ulimit -n 65536 && {RESTART}")
    elif most < FILES_MANY:
        yield Finding("limits", NOTE, seen, "ulimit -n 65536, before mycelium up, for more readers")
    else:
        yield Finding("limits", OK, seen)
