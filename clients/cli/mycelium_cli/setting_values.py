"""Which settings there are (`settings.json`), and what a value of one may be: its type, its bounds, its rules.

`config` finds values and says where they came from; what is refused here is refused whoever reads it.
"""

import json
import os
from functools import cache
from typing import Any, NamedTuple

from mycelium_cli import handles, setting_rules, setting_tables
from mycelium_cli.errors import nearest, usage

Scalar = str | int | float | bool

_SECRET_WORDS = ("secret", "token", "password", "api_key")
_YES = {"true", "yes", "on", "1"}
_NO = {"false", "no", "off", "0"}
_LAST_PORT = 65535
_LARGEST = 2**63 - 1  # what a message of the hub can hold


class Setting(NamedTuple):
    """One row of `settings.json`, which is generated from the hub's and the client's own settings."""

    key: str
    env: list[str]
    default: Any
    unit: str
    why: str
    scope: str
    least: float | None = None
    most: float | None = None
    choices: tuple[Scalar, ...] | list[Scalar] = ()

    @property
    def secret(self) -> bool:
        """Whether only its last four characters are ever shown."""
        return self.key.rpartition(".")[2].endswith(_SECRET_WORDS)


@cache
def known() -> dict[str, Setting]:
    """Every setting by its key, in the order of the file."""
    place = os.path.join(os.path.dirname(__file__), "settings.json")
    with open(place, encoding="utf-8") as file:
        rows = json.load(file)
    names = Setting._fields
    return {row["key"]: Setting(**{name: row[name] for name in names if name in row}) for row in rows}


def find(key: str) -> Setting:
    """The setting of that name, or a refusal that names the nearest."""
    settings = known()
    if key in settings:
        return settings[key]
    from mycelium_cli import replaced

    instead = replaced.setting(key)
    if instead is not None:
        raise instead
    table, _, last = key.rpartition(".")
    ending = [name for name in settings if name.endswith(f"_{last}")]  # runtime.port: runtime.backend_port
    ending = [name for name in ending if name.startswith(f"{table}.")] or ending
    meant = ending[0] if len(ending) == 1 else nearest(key, list(settings))
    meant = meant or nearest(key, [name.rpartition(".")[2] for name in settings])
    full = next((name for name in settings if name == meant or name.endswith(f".{meant}")), "") if meant else ""
    cause = f'no setting is called "{key}"' + (f"; did you mean {full}?" if full else "")
    raise usage(cause, "mycelium config show")


def parse(setting: Setting, text: str) -> Scalar:
    """A typed value as its setting's type, bounds and rules want it, or a refusal that says what would do."""
    value = _typed(setting, text)
    if setting.choices and value not in setting.choices:
        raise usage(f"{setting.key} is one of {', '.join(map(str, setting.choices))}, not {text}")
    if isinstance(value, str):
        return value
    low = setting.least is not None and value < setting.least
    if low or (setting.most is not None and value > setting.most):
        span = f"{setting.least} or more" if setting.most is None else f"from {setting.least} to {setting.most}"
        raise usage(f"{setting.key} is {span} ({setting.unit}), not {text}")
    return value


def _typed(setting: Setting, text: str) -> Scalar:
    if isinstance(setting.default, bool):
        if text.lower() not in _YES | _NO:
            raise usage(f'{setting.key} is true or false, not "{text}"')
        return text.lower() in _YES
    if isinstance(setting.default, int | float):
        return _number(setting, text)
    value = _text(setting, text)
    fault = setting_rules.fault_of(setting.key, setting.unit, value)
    if fault:
        raise usage(f"{setting.key} {fault}", _hint(setting))
    return value


def _text(setting: Setting, text: str) -> str:
    """A text in the form in which it is kept."""
    if setting.unit == setting_tables.UNIT:
        return setting_tables.parse(setting.key, text)
    if setting.unit == "handle":
        return handles.handle_of(text, setting.key) if text else ""
    if setting.unit == "url":
        return _address(setting, text)
    return text.lower() if setting.choices else text


def _address(setting: Setting, text: str) -> str:
    """The hub's own address is this program's to ask; what is at any other, who reads it knows, to the last slash."""
    if setting.key == "server.api_url":
        return checked_url(text, setting.key)
    if text and not setting_rules.is_web_address(text):
        raise _no_address(text, setting.key)
    return text


def _hint(setting: Setting) -> str:
    if setting.unit == setting_tables.UNIT:
        return setting_tables.hint(setting.key)
    return f"openssl rand -hex 32 | mycelium config set {setting.key}" if setting.secret else ""


def _number(setting: Setting, text: str) -> int | float:
    try:
        number = type(setting.default)(text)
    except ValueError:
        number = None
    if number is None or not -_LARGEST <= number <= _LARGEST:  # also what is called nan
        raise usage(f'{setting.key} is a number ({setting.unit}), not "{text}"')
    if setting.unit == "port" and not 0 <= number <= _LAST_PORT:
        raise usage(f"{setting.key} is a port from 0 to {_LAST_PORT}, not {text}")
    return int(number) if isinstance(setting.default, int) else float(number)


def checked_url(text: str, source: str) -> str:
    """A hub's address without the last slash, or a refusal that shows a right one."""
    scheme, separator, rest = text.strip().partition("://")
    url = text.strip().rstrip("/")
    if not separator or scheme not in {"http", "https"} or set(rest) & set(" ?#@\\"):
        raise _no_address(text, source)
    if not setting_rules.is_web_address(url):
        raise _no_address(text, source)
    return url


def _no_address(text: str, source: str) -> Exception:
    url = text.strip().rstrip("/")
    if url and "://" not in text:
        return usage(f'{source} is "{text}", an address without http:// or https://', f"use http://{url}")
    said = f'{source} is "{text}", which is no http:// or https:// address'
    return usage(said, "use one such as http://localhost:8000")


def plain(text: str, source: str) -> str:
    """A text that can travel in a header, or a refusal that doesn't repeat what may be a secret."""
    if not text or not all("!" <= character <= "~" for character in text):
        raise usage(f"{source} holds a blank or a character that is not plain ASCII", f"mend {source}")
    return text


def shown(setting: Setting, value: object) -> str:
    """A value for the screen: a secret by its last four characters, a truth as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    if setting.secret and text:
        return f"…{text[-4:]}" if len(text) > 8 else "…"
    return text
