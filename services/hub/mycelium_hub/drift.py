"""What a running hub was started with against what its files say now: `doctor`, `up` and `config apply` ask here."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mycelium_hub import settings
from mycelium_hub.home import Home, Started
from mycelium_kernel.settings import Sourced, Value

SALT_BYTES = 16
APPLY = "mycelium config apply"
_SECRET = {setting.key for setting in settings.SECRETS}
_FILES = {"default", "config.toml", *(f"secrets/{settings.secret_file(setting)}" for setting in settings.SECRETS)}


@dataclass(frozen=True)
class Difference:
    """A setting that the hub runs with, and what the files say of it now. A secret is masked in both."""

    key: str
    running: Value
    source: str
    written: Value
    written_source: str

    @property
    def overruled(self) -> bool:
        """A flag or the hub's environment says it, and wins over the file at every start."""
        return self.source not in _FILES

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "key": self.key,
            "running": self.running,
            "source": self.source,
            "written": self.written,
            "written_source": self.written_source,
        }


def differences(home: Home, started: Started) -> list[Difference]:
    """Every setting that differs, in the order of the settings. Refuses a file that can't be read."""
    now, secret = settings.written(home.path)
    now |= settings.hidden(secret)
    found = []
    for name, (value, source) in started.settings.items():
        wanted = now.get(name)
        if wanted is None or _same(name, value, wanted, started, secret):
            continue
        one = Difference(name, _value(value), source, wanted.value, wanted.source)
        if not (one.overruled and wanted.source == "default"):  # nothing in the file to compare it with
            found.append(one)
    return found


def told(home: Home, wanted: settings.HubSettings) -> list[str]:
    """What a start with these settings would change, in words, for who finds that a hub runs already."""
    started = home.started()
    if started is None:
        return []
    found = differences(home, started)
    said = [f"{one.key} is {shown(one.running)} there, and {shown(one.written)} in {one.written_source}"
            for one in found if not one.overruled]  # fmt: skip
    lines = [*said, f"Next: {APPLY}"] if said else []
    asked = [
        f"{key} is {shown(_value(started.settings[key][0]))} there, and {shown(sourced.value)} by {sourced.source}"
        for key, sourced in wanted.found.items()
        if sourced.source not in _FILES
        and key in started.settings
        and _value(started.settings[key][0]) != sourced.value
    ]
    return [*lines, *asked, "Next: mycelium down, then the same again"] if asked else lines


def shown(value: Value) -> str:
    """A value in a line for people."""
    return repr(value) if isinstance(value, str) else str(value).lower()


def next_values(home: Home, started: Started) -> settings.HubSettings:
    """What the hub would have after another start: its flags and variables go on to win. Refuses what can't be."""
    found, secret = settings.written(home.path)
    kept = {
        name: Sourced(_value(value), source)
        for name, (value, source) in started.settings.items()
        if name in found and name not in _SECRET and source not in _FILES
    }
    return settings.of({**found, **kept}, secret)


def marks(wanted: settings.HubSettings) -> dict[str, str]:
    """What tells by key whether a secret is still the same, without being it."""
    said = {key: str(sourced.value).strip() for key, sourced in wanted.secrets.items()}
    return {key: _mark(secret) for key, secret in said.items() if secret}


def _mark(secret: str) -> str:
    salt = secrets.token_hex(SALT_BYTES)
    return f"{salt} {_digest(secret, salt)}"


def _digest(secret: str, salt: str) -> str:
    return hashlib.blake2b(secret.encode(), key=salt.encode(), digest_size=32).hexdigest()


def _same(name: str, value: object, wanted: Sourced, started: Started, found: Mapping[str, Sourced]) -> bool:
    if name not in found:
        return value == wanted.value
    secret, (salt, _, digest) = str(found[name].value).strip(), started.marks.get(name, "").partition(" ")
    return hmac.compare_digest(_digest(secret, salt), digest) if secret and digest else not secret and not digest


def _value(value: object) -> Value:
    assert isinstance(value, str | int | float | bool)
    return value
