"""What is wrong in a home's `config.toml`: all of it, a line each. `doctor` and `config apply` ask here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mycelium_hub import settings
from mycelium_hub.errors import Refused
from mycelium_kernel import settings as kernel_settings
from mycelium_kernel.settings import Setting, Sourced

_BY_KEY = {setting.key: setting for setting in settings.SETTINGS}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: the setting, what was seen, and what to type next."""

    key: str
    seen: str
    next: str

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {"key": self.key, "seen": self.seen, "next": self.next}


def faults(folder: Path) -> list[Fault]:
    """Everything that is wrong in the file, whatever the environment says. Client commands' own tables are theirs."""
    path = folder / "config.toml"
    try:
        written = _flat(kernel_settings.read(path))
    except kernel_settings.BadSetting as error:
        return [Fault("", str(error), f"mend {path}")]
    except RecursionError:  # tables in tables by their names alone, which the file's reader can take
        return [Fault("", f"{path} can't be read: it is nested too deep", f"mend {path}")]
    found: dict[str, Sourced] = {}
    wrong: list[Fault] = []
    for key, setting in _BY_KEY.items():
        try:
            found |= kernel_settings.load((setting,), folder, {})
        except kernel_settings.BadSetting as error:
            wrong.append(Fault(key, str(error), _set(key)))
            found[key] = Sourced(setting.default, "default")
    for setting in settings.SECRETS:
        try:
            settings.secret(setting, found[setting.key], folder)
        except Refused as refused:
            wrong.append(Fault(setting.key, str(refused), f"mycelium config set {setting.key}"))
    wrong += [Fault(key, seen, _set(key)) for key, seen in (*settings.troubles(found), *_meant_otherwise(found))]
    return [*_unknown(written, path), *wrong]


def _set(key: str) -> str:
    return f"mycelium config set {key} <value>"


def _unknown(written: Iterable[str], path: Path) -> Iterator[Fault]:
    for key in written:
        if key in _BY_KEY or key.split(".")[0] in settings.OF_CLIENTS:
            continue
        meant = difflib.get_close_matches(key, _BY_KEY, 1)
        seen = f"{path} sets {key}, which nothing reads" + (f"; did you mean {meant[0]}?" if meant else "")
        take = f"take {key} out of {path}"
        yield Fault(key, seen, f"{_set(meant[0])}, and {take}" if meant else take)


def _meant_otherwise(found: Mapping[str, Sourced]) -> Iterator[tuple[str, str]]:
    """Values that a hub starts with all the same, and that can't be what was meant."""
    for key, (setting, value) in {key: (_BY_KEY[key], str(one.value)) for key, one in found.items()}.items():
        said = _expected(setting, value) if value and found[key].source != "default" else ""
        if said:
            yield key, f"{key} is {found[key].value!r} in {found[key].source}: use {said}"


def _expected(setting: Setting, value: str) -> str:
    if setting.unit == "url" and not kernel_settings.is_web_address(value):
        return "an http:// or https:// address"
    if setting.unit == "provider/model" and not all(value.partition("/")):
        return "provider/model"
    return ""


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted keys of nested tables."""
    found: list[str] = []
    for name, value in table.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]
    return found
