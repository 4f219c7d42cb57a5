"""Settings with their sources: default, then `config.toml`, then the environment; a flag is the caller's business.

A setting's key is its name in `config.toml` (`runtime.backend_port`); its environment name is `MYCELIUM_` and the key
in capitals, and older documented names are aliases. Each package lists its own settings; the lists make the reference
page and the CLI's `config` command.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

Value = str | int | float | bool
Kind = Literal["str", "int", "float", "bool", "tables"]  # tables: a list of them, and as a value its JSON
SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
LARGEST = 2**63 - 1  # what a message of the bus can hold
HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?\.?")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # no process can be handed the first of them at all


@dataclass(frozen=True)
class Setting:
    """One setting: its key, kind, default, unit (empty when none), why one would change it, and older names.

    A value below `least`, above `most` or beside `choices` is refused wherever it stands, and so is a text in which
    `fault` finds something wrong.
    """

    key: str
    kind: Kind
    default: Value
    why: str
    unit: str = ""
    aliases: tuple[str, ...] = ()
    scope: Literal["hub", "cli", "service"] = "hub"
    secret: bool = False
    least: int | None = None
    most: int | None = None
    choices: tuple[Value, ...] = ()
    fault: Callable[[str], str] | None = None

    @property
    def allowed(self) -> str:
        """What a value has to be, in words; empty when everything of its kind is."""
        if self.choices:
            shown = [str(choice) for choice in self.choices]
            return f"one of {', '.join(shown)}"
        if self.most is not None:
            return f"{self.least} to {self.most}"
        return "" if self.least is None else f"{self.least} or more"

    @property
    def environment(self) -> tuple[str, ...]:
        """The names under which the environment may set it, the first of them the current one."""
        return (f"MYCELIUM_{self.key.replace('.', '_').upper()}", *self.aliases)


@dataclass(frozen=True)
class Sourced:
    """A value and where it came from: `default`, `config.toml`, or the name of an environment variable."""

    value: Value
    source: str


class BadSetting(Exception):
    """A setting has a value that its kind does not allow. The text names both and what is allowed."""


def home(environment: Mapping[str, str]) -> Path:
    """The folder that holds everything of one hub."""
    named = environment.get("MYCELIUM_HOME") or environment.get("MYCELIUM_DATA_DIR")
    return Path(named).expanduser() if named else Path.home() / ".mycelium"


def load(settings: Iterable[Setting], folder: Path, environment: Mapping[str, str]) -> dict[str, Sourced]:
    """Every setting with its value and source. Raises `BadSetting` for a value or a file that can't be read."""
    written = read(folder / "config.toml")
    found: dict[str, Sourced] = {}
    for setting in settings:
        found[setting.key] = _find(setting, written, environment)
    return found


def _find(setting: Setting, written: Mapping[str, object], environment: Mapping[str, str]) -> Sourced:
    for name in setting.environment:
        if environment.get(name):
            return Sourced(parse(setting, environment[name], name), name)
    value: object = written
    for part in setting.key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return Sourced(setting.default, "default")
    return Sourced(parse(setting, value, "config.toml"), "config.toml")


def parse(setting: Setting, raw: object, source: str) -> Value:
    """`raw` as the setting's kind and within its bounds. Raises `BadSetting`."""
    value = _typed(setting, raw, source)
    low = setting.least is not None and not isinstance(value, str) and value < setting.least
    high = setting.most is not None and not isinstance(value, str) and value > setting.most
    if low or high or (setting.choices and value not in setting.choices):
        raise BadSetting(f"{setting.key} is {value!r} in {source}: use {setting.allowed}")
    if setting.fault and isinstance(value, str) and (found := setting.fault(value)):
        raise BadSetting(f"{setting.key} in {source}: {found}")
    return value


def _typed(setting: Setting, raw: object, source: str) -> Value:
    if setting.kind == "bool":
        if isinstance(raw, bool):
            return raw
        if str(raw).lower() in SWITCH:
            return SWITCH[str(raw).lower()]
        raise BadSetting(f"{setting.key} is {raw!r} in {source}: use true or false")
    if setting.kind == "tables":
        return _tables(setting, raw, source)
    if setting.kind == "str":
        if isinstance(raw, list | dict):
            seen = "not shown" if setting.secret else repr(raw)
            raise BadSetting(f"{setting.key} is {seen} in {source}: use a text")
        if CONTROL.search(str(raw)):
            seen = "not shown" if setting.secret else repr(raw)
            raise BadSetting(f"{setting.key} is {seen} in {source}: use a text without control characters")
        return str(raw).lower() if setting.choices else str(raw)
    if isinstance(raw, bool):
        raise BadSetting(f"{setting.key} is {raw!r} in {source}: use a number")
    kind = "a whole number" if setting.kind == "int" else "a number"
    number: int | float = math.nan
    with contextlib.suppress(ValueError):
        number = int(str(raw)) if setting.kind == "int" else float(str(raw))
    if not -LARGEST <= number <= LARGEST:  # also what is no number
        raise BadSetting(f"{setting.key} is {raw!r} in {source}: use {kind}")
    return number


def _tables(setting: Setting, raw: object, source: str) -> str:
    """A list of tables, or its JSON, as JSON in one form; none at all is an empty text."""
    found: Any = raw
    if isinstance(raw, str):
        try:
            found = json.loads(raw) if raw.strip() else []
        except (ValueError, RecursionError):
            raise BadSetting(f"{setting.key} in {source} is no JSON: use [{{...}}, {{...}}]") from None
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise BadSetting(f"{setting.key} in {source}: use tables, each begun by [[{setting.key}]], or their JSON")
    try:
        return json.dumps(found, ensure_ascii=False, sort_keys=True, allow_nan=False) if found else ""
    except (TypeError, ValueError):  # a date or a time, or what is no number
        raise BadSetting(f"{setting.key} in {source}: use texts in its tables") from None


def read(path: Path) -> Mapping[str, object]:
    """What a file of settings says; one that isn't there says nothing. Raises `BadSetting`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # a service in a pod has no home
        return {}
    except RecursionError:
        raise BadSetting(f"{path} can't be read: it is nested too deep") from None
    except (ValueError, OSError) as error:  # no TOML, no UTF-8, or a number of thousands of digits
        raise BadSetting(f"{path} can't be read: {error}") from None


def is_web_address(text: str) -> bool:
    """Whether a client could be sent there: `http://` or `https://`, a host, perhaps a port."""
    try:
        place = urlsplit(text)
        found = place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
    except ValueError:  # brackets or a port that can't be
        return False
    return found and not any(letter.isspace() for letter in text)


def host_fault(text: str) -> str:
    """What is wrong with an address to listen on, as far as its letters tell; empty for nothing."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        if not HOST.fullmatch(text):
            return f"{text!r} is no address: use one of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
    return ""
