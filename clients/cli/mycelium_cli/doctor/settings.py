"""Looks at `config.toml`: whether it can be read, and whether everything in it means something."""

import os
from collections.abc import Iterator
from typing import Any

from mycelium_cli import config, setting_tables, setting_values
from mycelium_cli.doctor.finding import COMMANDS, NOTE, OK, WRONG, Finding
from mycelium_cli.errors import Failure, nearest

_PART = "config"


def check() -> Iterator[Finding]:
    """The file, its keys, its values, and what in the environment wins over it."""
    if not os.path.exists(config.path()):
        yield Finding(_PART, OK, f"no {config.path()}; the environment and the defaults are used")
    try:
        found = flat(config.read_file())
    except Failure as failure:
        yield Finding(_PART, WRONG, failure.cause, failure.hint)
        return
    except RecursionError:  # tables in tables by their names alone, which the file's reader can take
        raise config.too_deep() from None
    troubles = [*_unknown(found), *_wrong_values(found)]
    if not troubles and os.path.exists(config.path()):
        yield Finding(_PART, OK, f"{config.path()} sets {len(found)} settings, all known and right")
    yield from troubles
    yield from _overruled(found)


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        found |= flat(value, f"{key}.") if isinstance(value, dict) else {key: value}
    return found


def _unknown(found: dict[str, Any]) -> Iterator[Finding]:
    known = list(setting_values.known())
    for key in found:
        if key in known:
            continue
        meant = nearest(key, known)
        seen = f"{config.path()} sets {key}, which nothing reads" + (f"; did you mean {meant}?" if meant else "")
        hint = f"mycelium config set {meant} <value>" if meant else f"take {key} out of {config.path()}"
        yield Finding(_PART, WRONG, seen, hint, of=_reader(meant or key))


def _wrong_values(found: dict[str, Any]) -> Iterator[Finding]:
    for key, setting in setting_values.known().items():
        try:
            if key in found and (setting.scope == "hub" or found[key] != ""):
                setting_values.parse(setting, _text(found[key]))
            config.effective(key)
        except Failure as failure:
            yield Finding(
                _PART, WRONG, failure.cause, failure.hint or f"mycelium config set {key} <value>", of=_reader(key)
            )


def _overruled(found: dict[str, Any]) -> Iterator[Finding]:
    for key, value in found.items():
        winner = config.from_environment(setting_values.known()[key].env) if key in setting_values.known() else None
        if winner is not None and str(winner.value) != _text(value):
            seen = f"{winner.source} is set in this shell, and wins over {key} in {config.path()}"
            yield Finding(_PART, NOTE, seen, f"unset {winner.source}, or leave it so", of=_reader(key))


def _text(value: object) -> str:
    """A value of the file as it would be typed; the hub takes no blank off it either."""
    return setting_tables.written(value) if isinstance(value, list) else str(value)


def _reader(key: str) -> str:
    """Who reads a setting. Misspelt keys of tables that only commands read are theirs, too."""
    tables = {name.partition(".")[0]: setting.scope for name, setting in setting_values.known().items()}
    return "" if tables.get(key.partition(".")[0], "hub") == "hub" else COMMANDS
