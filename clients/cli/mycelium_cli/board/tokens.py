"""What proves the claims made on this machine, so that nobody has to type a token.

A file a claim, readable by its owner alone, in a folder a hub, room and handle. Without it a claim is judged by handle.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from mycelium_cli import config


class Kept(NamedTuple):
    """A claim that was made here."""

    place: str
    task: str
    thread: str
    token: int


def folder(hub: str, room: str, handle: str) -> str:
    """Where the claims of one handle in one room of one hub are."""
    named = hashlib.sha256(f"{hub}\n{room}\n{handle}".encode()).hexdigest()[:32]
    return os.path.join(config.home(), "claims", named)


def keep(place: str, task: str, thread: str, token: int) -> None:
    """Remember a claim. Nothing is said when that can't be: the handle counts then."""
    name = hashlib.sha256(task.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError):
        os.makedirs(place, mode=0o700, exist_ok=True)
        config.replace(os.path.join(place, name), json.dumps({"task": task, "thread": thread, "token": token}))


def find(place: str, named: str) -> Kept | None:
    """The claim of a task, however the task is named."""
    wanted = named.strip().lower()
    found = [kept for kept in _all(place) if wanted in {kept.task, kept.thread, kept.thread[-8:]}]
    found += [kept for kept in _all(place) if "/" not in wanted and kept.task.partition("/")[2] == wanted]
    return found[0] if found else None


def forget(kept: Kept | None) -> None:
    """A claim is over."""
    if kept:
        with contextlib.suppress(OSError):
            os.unlink(kept.place)


def _all(place: str) -> Iterator[Kept]:
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        path = os.path.join(place, name)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(path, encoding="utf-8") as file:
            told = json.load(file)
            yield Kept(path, str(told["task"]), str(told["thread"]), int(told["token"]))
