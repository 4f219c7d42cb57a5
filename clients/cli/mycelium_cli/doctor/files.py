"""Looks at the files of `MYCELIUM_HOME`: whose they are, who may read them, and whether there is room for more."""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from functools import partial

from mycelium_cli import config, joining
from mycelium_cli.doctor.finding import COMMANDS, FIXED, NOTE, OK, WRONG, Finding
from mycelium_cli.sign_in import agent_credentials, token_file

_PART = "files"
_MOST_FILES = 20_000
_SHOWN = 3
_PRIVATE = (".", "config.toml", "nats", "tables", "run", "logs")
_LOW_BYTES, _FULL_BYTES = 2 * 1024**3, 256 * 1024**2
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_files() -> Iterator[Finding]:
    """Owners and modes."""
    home = config.home()
    if not os.path.isdir(home):
        yield Finding(_PART, OK, f"{home} is not there; nothing is kept on this machine")
        return
    foreign, open_ones, count = _walk(home)
    if foreign:
        seen = f"{len(foreign)} of {count} files in {home} belong to somebody else: {_some(foreign)}"
        yield Finding(_PART, WRONG, seen, f"sudo chown -R $USER {home}")
    if open_ones:
        seen = f"others on this machine may read {_some(open_ones)}"
        yield Finding(_PART, WRONG, seen, "mycelium doctor --fix", partial(_close, open_ones))
    if not os.access(home, os.W_OK):
        yield Finding(_PART, NOTE, f"{home} can't be written: nothing can be set here", "use the environment alone")
    if not foreign and not open_ones:
        yield Finding(_PART, OK, f"{count} files in {home} are yours, and only yours where they must be")


def exposed() -> list[str]:
    """The files with tokens and secrets of commands that others can read. Looked for first: using one closes it."""
    return [place for place in _of_commands() if _is_exposed(place)]


def _of_commands() -> Iterator[str]:
    home = config.home()
    yield token_file.path()
    yield agent_credentials.path()
    yield from _listed(os.path.join(home, "agent-tokens"))
    place = next((place for place in joining.places() if os.path.exists(place)), None)
    if place is not None:
        yield place


def _listed(folder: str) -> Iterator[str]:
    yield folder
    try:
        yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    except OSError:
        return


def _is_exposed(place: str) -> bool:
    try:
        found = os.stat(place)
    except OSError:
        return False
    return bool(found.st_mode & _OTHERS) and found.st_uid == os.geteuid()


def check_exposed(places: list[str]) -> Iterator[Finding]:
    """Those that were found open: what is so still, and what has been closed since by being used."""
    still = [place for place in places if _is_exposed(place)]
    closed = [place for place in places if place not in still]
    if closed:
        seen = f"others on this machine could read {_some(closed)}; now only you can"
        yield Finding(_PART, FIXED, seen, "get new ones, if somebody may have", of=COMMANDS)
    if still:
        seen = f"others on this machine may read {_some(still)}"
        yield Finding(_PART, WRONG, seen, "mycelium doctor --fix", partial(_close, still), COMMANDS)


def _walk(home: str) -> tuple[list[str], list[str], int]:
    """Files of other owners, files that others can read and must not, and how many there are."""
    foreign, open_ones, count = [], [], 0
    for folder, _folders, names in os.walk(home):
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            try:
                found = os.lstat(path)
            except OSError:
                continue  # gone since
            count += 1
            if found.st_uid != os.geteuid():
                foreign.append(path)
            elif found.st_mode & _OTHERS and not stat.S_ISLNK(found.st_mode) and _private(home, path):
                open_ones.append(path)
        if count > _MOST_FILES:
            break
    return foreign, open_ones, count


def _private(home: str, path: str) -> bool:
    """Whether a file holds secrets or what was said in rooms. Below a closed folder it doesn't matter."""
    parts = os.path.relpath(path, home).split(os.sep)
    return parts[0] == "secrets" or (len(parts) == 1 and parts[0] in _PRIVATE)


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:_SHOWN])
    return shown if len(paths) <= _SHOWN else f"{shown} and {len(paths) - _SHOWN} more"


def _close(paths: list[str]) -> None:
    for path in paths:
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & ~_OTHERS)


def check_disk() -> Iterator[Finding]:
    """Space for what is posted next."""
    place = config.home()
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    free = shutil.disk_usage(place).free
    seen = f"{free / 1024**3:.1f} GB free where {config.home()} is"
    if free < _FULL_BYTES:
        yield Finding("disk", WRONG, f"{seen}: posts will be refused", "make room on this disk")
    elif free < _LOW_BYTES:
        yield Finding("disk", NOTE, seen, "make room on this disk soon")
    else:
        yield Finding("disk", OK, seen)


def check_hub_file() -> Iterator[Finding]:
    """Whether `run/hub.json` tells of a hub that runs."""
    place = os.path.join(config.home(), "run", "hub.json")
    if not os.path.exists(place):
        return
    if hub_runs():
        try:
            with open(place, encoding="utf-8") as file:
                url = json.load(file)["url"]
        except (OSError, ValueError, KeyError, TypeError):
            yield Finding("hub file", WRONG, f"{place} can't be read", "mycelium down && mycelium up")
        else:
            yield Finding("hub file", OK, f"the hub of {config.home()} runs, at {url}")
    else:
        seen = f"{place} was left by a hub that is gone"
        yield Finding("hub file", WRONG, seen, "mycelium doctor --fix", partial(os.unlink, place))


def hub_runs() -> bool:
    """Whether a hub owns this home: it holds the lock as long as it lives."""
    try:
        lock = os.open(os.path.join(config.home(), "run", "lock"), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
