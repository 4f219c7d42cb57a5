"""How the hub of one home is: its processes, its address, and what it says of its own health."""

from __future__ import annotations

import http.client
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from mycelium_hub import roster
from mycelium_hub.home import Home
from mycelium_hub.roster import Member

ASK_S = 5.0


@dataclass(frozen=True)
class Status:
    """What `mycelium status` shows of this machine's hub."""

    running: bool
    home: str
    url: str = ""
    pid: int | None = None
    version: str = ""
    started_at: str = ""
    uptime_s: int = 0
    nats_pid: int | None = None
    nats_port: int | None = None
    processes: tuple[Member, ...] = ()
    health: dict[str, Any] | None = None

    def as_json(self) -> str:
        """Every field, for programs."""
        return json.dumps(asdict(self), indent=2)

    def as_text(self) -> str:
        """A few aligned lines, for people."""
        if not self.running:
            starting = f"a hub is starting, pid {self.pid}" if self.pid else "no hub is running"
            return f"{starting} on {self.home}; `mycelium up --detach` starts one" if not self.pid else starting
        health = self.health or {"status": "no answer"}
        rows = [
            ("hub", str(health.get("status", "")), f"{self.url}  pid {self.pid}  up {_span(self.uptime_s)}"),
            *(_row(member) for member in self.processes),
        ]
        apart = {member.name for member in self.processes}
        if self.health and "gateway" not in apart:
            rows.append(("gateway", "ok", ""))  # it gave the answer
        for name, said in (health.get("services") or {}).items():
            if name not in apart or said.get("status") != "ok":
                rows.append((name, str(said.get("status", "")), str(said.get("detail") or "")))
        lines = [f"{name:<9} {state:<10} {detail}".rstrip() for name, state, detail in rows]
        lines += [f"warning: {warning}" for warning in health.get("warnings") or []]
        return "\n".join([*lines, f"home      {self.home}  version {self.version}"])


def look(home: Home) -> Status:
    """The status at this moment."""
    running = home.running()
    if running is None:
        return Status(False, str(home.path), pid=home.owner())
    found = roster.listed(home)
    nats = next((one for one in found if one.name == roster.NATS), Member(roster.NATS, roster.NATS, 1))
    began = datetime.fromisoformat(running.started_at)
    return Status(
        running=True,
        home=str(home.path),
        url=running.url,
        pid=running.pid,
        version=running.version,
        started_at=running.started_at,
        uptime_s=max(0, int((datetime.now(UTC) - began).total_seconds())),
        nats_pid=nats.pid or None,
        nats_port=nats.port or None,
        processes=tuple(found),
        health=_health(running.url),
    )


def _health(url: str) -> dict[str, Any] | None:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=ASK_S)
    try:
        connection.request("GET", "/health")
        said = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return said if isinstance(said, dict) else None


def _row(member: Member) -> tuple[str, str, str]:
    where = f"127.0.0.1:{member.port or member.health_port}"
    again = f"  started again {member.restarts} times" if member.restarts else ""
    return member.name, "ok" if member.pid else "down", f"{where}  pid {member.pid or '-'}{again}"


def _span(seconds: int) -> str:
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
