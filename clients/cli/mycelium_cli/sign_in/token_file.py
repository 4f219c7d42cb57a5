"""Who is signed in where: one file for this user alone, a row a hub. `renewal` and `login` write it.

A token is found by the address of the hub that it was got for, so it is never sent to another one.
"""

import json
import os
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mycelium_cli import config, config_writing
from mycelium_cli.errors import Failure
from mycelium_cli.sign_in import private_file
from mycelium_cli.transport import LOOPBACK

_PORTS = {"http": 80, "https": 443}


class Person(NamedTuple):
    """A sign-in: what the hub is sent, what renews it, and who that is."""

    issuer: str
    client_id: str
    handle: str
    access_token: str
    expires_at: float
    lifetime_s: float
    refresh_token: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    by_basic: bool = True
    failed_at: float = 0.0
    ended: str = ""


def path() -> str:
    """Where the tokens are."""
    named = os.environ.get("MYCELIUM_TOKEN_FILE")
    return os.path.abspath(os.path.expanduser(named)) if named else os.path.join(config.home(), "token.json")


def key(url: str) -> str:
    """A hub's address in one way of writing it: this machine by whichever name is this machine."""
    place = urlsplit(url.strip().rstrip("/"))
    try:
        port = place.port or _PORTS.get(place.scheme, 0)
    except ValueError:
        port = 0
    host = place.hostname or ""
    host = "localhost" if host in LOOPBACK else host
    return f"{place.scheme}://{host}:{port}{place.path}"


def find(url: str) -> Person | None:
    """The sign-in for a hub."""
    return _person(_read().get(key(url)))


def everyone() -> dict[str, Person]:
    """Each sign-in, by its hub."""
    found = {hub: _person(row) for hub, row in _read().items()}
    return {hub: person for hub, person in found.items() if person is not None}


def keep(url: str, person: Person | None) -> None:
    """Write a hub's row, or take it out (`None`); whoever calls holds the lock."""
    place = os.path.realpath(path())
    rows = _read()
    rows.pop(key(url), None)
    if person is not None:
        rows[key(url)] = person._asdict()
    try:
        if not rows:
            with suppress(FileNotFoundError):
                os.unlink(place)
            return
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        config_writing.replace(place, json.dumps({"hubs": rows}, indent=1) + "\n")
    except OSError as error:
        raise Failure(f"cannot write {place}: {error.strerror}", hint="set MYCELIUM_TOKEN_FILE") from None


def _read() -> dict[str, Any]:
    """The rows; a file that isn't there, or is none of ours, has none."""
    rows: object = {}
    with suppress(OSError, ValueError, AttributeError, RecursionError):
        rows = json.loads(private_file.read(path())).get("hubs")
    return rows if isinstance(rows, dict) else {}


def _person(row: object) -> Person | None:
    """A row, unless somebody has written something else there."""
    if not isinstance(row, dict):
        return None
    try:
        person = Person(**row)
        numbers = (person.expires_at, person.lifetime_s, person.failed_at)
        texts = set(map(type, person)) <= {str, float, int, bool} and isinstance(person.access_token, str)
    except (TypeError, ValueError):
        return None
    return person if texts and all(isinstance(number, int | float) for number in numbers) else None
