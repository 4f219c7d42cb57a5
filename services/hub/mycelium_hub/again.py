"""A hub that starts itself again in its own process, with the settings as they are by then.

The lock on the home, the listening socket, the process id and its terminal stay: nobody can take the home between,
and whoever calls waits in the socket's queue instead of being turned away. What stays travels in a file without a
name, since secrets are in it. When the new settings can't be started with, the hub comes back with those before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NoReturn

from mycelium_hub import settings
from mycelium_kernel.settings import Sourced, Value

ASKED = signal.SIGUSR1  # on this the hub stops in order and starts itself again
GONE = -1


@dataclass
class Kept:
    """What a hub hands to itself. `lock` and `listener` are open files by their numbers; `port` is the socket's own."""

    lock: int
    listener: int
    port: int
    times: int
    found: Mapping[str, tuple[Value, str]]
    secrets: Mapping[str, tuple[Value, str]] = field(repr=False)
    refused: str = ""

    def before(self) -> settings.HubSettings:
        """What the hub ran with before."""
        found, secrets = ({name: Sourced(*said) for name, said in some.items()} for some in (self.found, self.secrets))
        return settings.of(found, secrets)

    def same_address(self, wanted: settings.HubSettings) -> bool:
        """Whether the socket is the one that the new settings ask for."""
        before = self.before()
        return self.listener != GONE and (wanted.host, wanted.port) == (before.host, before.port)

    def release_listener(self) -> None:
        """Give the old address up: the new one may be the same port on all of the machine's addresses."""
        if self.listener != GONE:
            os.close(self.listener)
            self.listener = GONE

    def port_for(self, wanted: settings.HubSettings) -> int:
        """The port to take on another address: any free one is the one that the hub has, as long as it can be."""
        return self.port if wanted.port == self.before().port else wanted.port


def take(number: int) -> Kept:
    """What the process was handed, in the open file of that number."""
    with open(number, "rb") as file:
        said = json.loads(file.read())
    pairs = {part: {name: tuple(one) for name, one in said[part].items()} for part in ("found", "secrets")}
    kept = Kept(**{**said, **pairs})
    for descriptor in (kept.lock, kept.listener):
        if descriptor != GONE:
            os.set_inheritable(descriptor, False)
    return kept


def _nameless(content: bytes) -> int:
    """An open file that nobody else can find, in memory where the system has such. A pipe would take 64 KB only."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("kept")
    else:
        with tempfile.TemporaryFile() as unnamed:
            number = os.dup(unnamed.fileno())
    with open(number, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(number, 0, os.SEEK_SET)
    return number


def ignore_requests() -> None:
    """Until the hub listens for them: by default the signal ends a process, and this one is a hub that only starts."""
    signal.signal(ASKED, signal.SIG_IGN)


def become(command: Sequence[str], kept: Kept, *, hidden: Mapping[str, str]) -> NoReturn:
    """Start this process anew by `command`, which is told what is kept; `hidden` goes back into its environment."""
    handed = _nameless(json.dumps(asdict(kept)).encode())
    for descriptor in (handed, kept.lock, kept.listener):
        if descriptor != GONE:
            os.set_inheritable(descriptor, True)
    sys.stdout.flush()
    sys.stderr.flush()
    ignore_requests()
    os.execve(command[0], [*command, f"--kept={handed}"], {**os.environ, **hidden})  # noqa: S606 - no shell is wanted
