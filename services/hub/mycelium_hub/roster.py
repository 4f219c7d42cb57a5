"""The processes of a running hub, in `run/processes.json`: who each is, where its probes are, how often it came back.

Written by the hub; read by `mycelium status`, the doctor, and the next hub, which ends what a dead one left behind.
"""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mycelium_hub import processes
from mycelium_hub.home import Home, write_private

LOGGER = logging.getLogger(__name__)
NATS = "nats"  # the service of NATS servers; the first of them has its name too


@dataclass(frozen=True)
class Member:
    """One process: `port` is where NATS answers clients, `health_port` where a service answers probes (0: none)."""

    name: str
    service: str
    replica: int
    pid: int = 0
    port: int = 0
    health_port: int = 0
    restarts: int = 0


class Roster:
    """The list, kept up by whoever starts processes."""

    def __init__(self, home: Home) -> None:
        self._path = path(home)
        self._members: dict[str, Member] = {}

    def put(self, member: Member) -> None:
        """A process was started, for the first time or again."""
        self._members[member.name] = member
        items = [asdict(one) for one in self._members.values()]
        write_private(self._path, json.dumps({"items": items}, indent=2) + "\n")

    def clear(self) -> None:
        """All of them have ended."""
        self._members.clear()
        self._path.unlink(missing_ok=True)


def path(home: Home) -> Path:
    """Where the list stands."""
    return home.run / "processes.json"


def listed(home: Home) -> list[Member]:
    """Every process of the list; pid 0 for one that does not run now."""
    try:
        found = [Member(**item) for item in json.loads(path(home).read_text())["items"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return [one if str(home.path) in processes.command_line(one.pid) else replace(one, pid=0) for one in found]


def members(home: Home) -> list[Member]:
    """Those that run, of a hub that lives or of one that is gone; whoever's child they are."""
    return [one for one in listed(home) if one.pid]


def end_leftovers(home: Home) -> None:
    """End what outlived its hub: a server would keep the store from the new one, a service would write its tables."""
    for member in members(home):
        LOGGER.warning("ending %s, which a dead hub left behind, pid %d", member.name, member.pid)
        processes.end(member.pid)
    with contextlib.suppress(OSError):
        path(home).unlink()


def replica_name(service: str, replica: int) -> str:
    """The first is named as the service, the others are numbered from 2."""
    return service if replica == 1 else f"{service}-{replica}"
