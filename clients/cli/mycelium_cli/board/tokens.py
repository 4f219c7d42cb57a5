"""What proves the claims made on this machine, so that nobody has to type a token.

A file a claim, readable by its owner alone, in a folder a hub, room and handle. Without it a claim is judged by handle.
Beside them stands how far a task had come when its claim was refused or a wait for it was told something: the next
wait goes on from there.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from mycelium_cli import config, config_writing

_NAME_DIGITS = 32  # other files are not claims, or not yet
_REFUSED = "refused-"
MOST = 2**63 - 1  # of a token: what is greater is none


class Kept(NamedTuple):
    """A claim that was made here."""

    place: str
    task: str
    thread: str
    token: int


class Refused(NamedTuple):
    """Where a wait for a task begins: behind its last fact when a claim was refused, and behind what was told."""

    place: str
    sequence: int
    after: int = 0


def folder(hub: str, room: str, handle: str, kind: str = "claims") -> str:
    """Where the claims, or the reservations, of one handle in one room of one hub are."""
    named = hashlib.sha256(f"{hub}\n{room}\n{handle}".encode()).hexdigest()[:32]
    return os.path.join(config.home(), kind, named)


def keep(place: str, task: str, thread: str, token: int) -> None:
    """Remember a claim. Nothing is said when that can't be: the handle counts then."""
    _write(place, _name(task), {"task": task, "thread": thread, "token": token})
    forget_refusal(refused(place, task))


def keep_refusal(place: str, task: str, thread: str, sequence: int) -> None:
    """Remember that a claim was refused, and where in the log the last fact of its task stood then."""
    _write(place, _REFUSED + _name(task), {"task": task, "thread": thread, "sequence": sequence})


def keep_told(place: str, task: str, thread: str, since: int, after: int, before: Refused | None) -> Refused | None:
    """Remember what a wait for a task was told last, unless a claim of it was refused meanwhile: what stands then."""
    there = refused(place, task)
    if there == before:
        _write(place, _REFUSED + _name(task), {"task": task, "thread": thread, "sequence": since, "after": after})
    return refused(place, task)


def refused(place: str, named: str) -> Refused | None:
    """Where the next wait for a task goes on, however the task is named."""
    wanted = named.strip().lower()
    for path, told in _read(place, _REFUSED):
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
            task, thread = str(told["task"]).lower(), str(told["thread"])
            if wanted in {task, task.partition("/")[2] or task, thread, thread[-8:]}:
                found = Refused(path, int(told["sequence"]), int(told.get("after", 0)))
                return found if 0 <= found.sequence <= MOST and 0 <= found.after <= MOST else None
    return None


def forget_refusal(gone: Refused | None) -> None:
    """It is of no use any more; a newer one stays."""
    if gone and any(
        path == gone.place and (told.get("sequence"), told.get("after", 0)) == (gone.sequence, gone.after)
        for path, told in _read_of(gone)
    ):
        _unlink(gone.place)


def _read_of(gone: Refused) -> Iterator[tuple[str, dict[str, Any]]]:
    return _read(os.path.dirname(gone.place), _REFUSED)


def _name(task: str) -> str:
    return hashlib.sha256(task.encode()).hexdigest()[:_NAME_DIGITS]


def _write(place: str, name: str, told: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.makedirs(place, mode=0o700, exist_ok=True)
        config_writing.replace(os.path.join(place, name), json.dumps(told))


def find(place: str, named: str) -> Kept | None:
    """The claim of a task, however the task is named."""
    wanted = named.strip().lower()
    found = [one for one in kept(place) if wanted in {one.task, one.thread, one.thread[-8:]}]
    found += [one for one in kept(place) if "/" not in wanted and one.task.partition("/")[2] == wanted]
    return found[0] if found else None


def forget(kept: Kept | None) -> None:
    """A claim is over."""
    if kept:
        _unlink(kept.place)


def forget_if(gone: Kept) -> None:
    """A claim is over, unless another of the same task is kept by now."""
    if gone in kept(os.path.dirname(gone.place)):
        _unlink(gone.place)


def kept(place: str) -> list[Kept]:
    """All claims of a folder."""
    found = []
    for path, told in _read(place, ""):
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
            one = Kept(path, str(told["task"]), str(told["thread"]), int(told["token"]))
            if 1 <= one.token <= MOST:
                found.append(one)
    return found


def _read(place: str, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        if not name.startswith(prefix) or len(name) != len(prefix) + _NAME_DIGITS:
            continue
        path = os.path.join(place, name)
        with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
            told = json.load(file)
            if isinstance(told, dict):
                yield path, told


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
