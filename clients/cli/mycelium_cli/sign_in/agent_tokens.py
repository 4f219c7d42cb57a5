"""The tokens of this machine's agents, a file each: whoever finds one expired asks for all the others that wait.

Where nothing can be written, as in a container, a process keeps its own.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from mycelium_cli import config, config_writing
from mycelium_cli.sign_in import private_file

_LONGEST_MARGIN_S = 30.0
_MOST_HUBS = 20


class Kept(NamedTuple):
    """An agent's token for one credential: since when good, until when, and the hubs that trust its issuer."""

    asked_as: list[str]
    token: str = ""
    expires_at: float = 0.0
    lasts_s: float = 0.0
    hubs: tuple[str, ...] | list[str] = ()
    failed_at: float = 0.0
    why: str = ""

    def is_good(self, now_s: float) -> bool:
        """Whether the token has some time left: a request must not arrive with one that ended on its way."""
        return bool(self.token) and now_s < self.expires_at - min(_LONGEST_MARGIN_S, self.lasts_s / 4)

    def and_hub(self, hub: str) -> "Kept":
        """The same, with one more hub that trusts the issuer."""
        return self._replace(hubs=[*self.hubs, hub][-_MOST_HUBS:])


_own: dict[str, Kept] = {}  # what could not be written


def folder() -> str:
    """Where the tokens are."""
    return os.path.join(config.home(), "agent-tokens")


def path(handle: str) -> str:
    """The file of an agent's token. A handle has no slash, and does not begin with a dot."""
    return os.path.join(folder(), f"{handle}.json")


def read(handle: str, asked_as: list[str]) -> Kept:
    """What is kept for this agent under this credential; nothing is a token that is over."""
    kept = _own.get(handle) or _from_file(handle)
    return kept if kept is not None and list(kept.asked_as) == asked_as else Kept(asked_as)


def any_of(handle: str) -> Kept | None:
    """What is kept for this agent, whatever it was asked for with."""
    return _own.get(handle) or _from_file(handle)


def _from_file(handle: str) -> Kept | None:
    try:
        row: dict[str, Any] = json.loads(private_file.read(path(handle)))
        kept = Kept(**row)
    except (OSError, ValueError, TypeError, RecursionError):
        return None  # none, or not one of ours: another is asked for
    numbers = all(isinstance(one, int | float) for one in (kept.expires_at, kept.lasts_s, kept.failed_at))
    lists = all(isinstance(one, list) for one in (row.get("hubs"), row.get("asked_as")))
    return kept if numbers and lists and {type(row.get("token")), type(row.get("why"))} == {str} else None


def write(handle: str, kept: Kept) -> None:
    """Keep it for every command of this machine; for this one where that can't be."""
    try:
        config_writing.replace(path(handle), json.dumps(kept._asdict()) + "\n")
        _own.pop(handle, None)
    except OSError:
        _own[handle] = kept


def forget(handle: str) -> None:
    """Take it away."""
    _own.pop(handle, None)
    with suppress(OSError):
        os.unlink(path(handle))


@contextmanager
def locked(handle: str) -> Iterator[float]:
    """One that asks at a time; since when this one has waited for it."""
    since_s = time.time()
    try:
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(folder(), f"{handle}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield since_s
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield since_s
    finally:
        os.close(lock)
