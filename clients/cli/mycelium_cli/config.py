"""Settings: what they are (`settings.json`), where each value comes from, and writing `config.toml`.

Reading needs no file at all when the environment says everything; writing is atomic, 0600, and keeps the
comments of people who edit by hand.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from mycelium_cli import setting_tables
from mycelium_cli.errors import Failure, nearest, usage

Scalar = str | int | float | bool

_SECRET_WORDS = ("secret", "token", "password", "api_key")
_YES = {"true", "yes", "on", "1"}
_NO = {"false", "no", "off", "0"}
_LAST_PORT = 65535


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


class Value(NamedTuple):
    """A value and where it was found, for `whoami --sources` and `config show`."""

    value: Any
    source: str


def home() -> str:
    """The directory of everything that this machine keeps."""
    named = os.environ.get("MYCELIUM_HOME") or os.environ.get("MYCELIUM_DATA_DIR") or "~/.mycelium"
    return os.path.abspath(os.path.expanduser(named))


def path() -> str:
    """The settings file."""
    return os.path.join(home(), "config.toml")


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


def from_environment(names: list[str]) -> Value | None:
    """What the first of these variables says that is set and not empty."""
    for name in names:
        found = os.environ.get(name)
        if found:
            return Value(found, name)
    return None


def read_file() -> dict[str, Any]:
    """`config.toml` as nested tables; a file that isn't there is an empty one."""
    import tomllib

    try:
        return tomllib.loads(_content(path()))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:  # no TOML, no UTF-8, or a number longer than Python reads
        raise usage(f"{path()} is not valid TOML: {error}", f"mend that line of {path()}") from None
    except RecursionError:
        raise too_deep() from None
    except OSError as error:
        if not os.access(home(), os.X_OK):  # a home of somebody else, as in a container: there is nothing of ours
            return {}
        raise usage(f"cannot read {path()}: {error.strerror}", f"mend {path()}") from None


def _content(place: str) -> str:
    """The text of a regular file. Anything else is refused unread: a pipe would wait for ever for its writer."""
    with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise usage(f"{place} is no regular file", f"move {place} away")
        return file.read().decode("utf-8")


def too_deep() -> Failure:
    """The refusal of a file that no reader can take apart."""
    return usage(f"{path()} is nested too deep to be read", f"mend {path()}")


def from_file(key: str) -> Value | None:
    """What `config.toml` says about a key, or a secret's own file; `None` when it says nothing."""
    if find(key).secret:
        from mycelium_cli import secret

        kept = secret.read(key)
        if kept:
            return Value(kept, secret.path(key))
    table: Any = read_file()
    for part in key.split("."):
        if not isinstance(table, dict):
            raise usage(
                f"{key.rpartition('.')[0]} in {path()} must be a table, since {key} stands in it", f"mend {path()}"
            )
        if part not in table:
            return None
        table = table[part]
    if find(key).unit == setting_tables.UNIT and isinstance(table, list):
        table = setting_tables.written(table)
    if not isinstance(table, str | int | float):
        shape = "a table" if isinstance(table, dict) else "a list" if isinstance(table, list) else "a date or a time"
        raise usage(f"{key} in {path()} must be one value, not {shape}", f"mend {path()}")
    return Value(table, path()) if table != "" else None


def lookup(key: str) -> Value | None:
    """A setting from the environment, else from the file; `None` when neither has it."""
    return from_environment(find(key).env) or from_file(key)


def effective(key: str) -> Value:
    """A setting's value as commands use it, with its type checked and its default as the last source."""
    setting = find(key)
    value = lookup(key) or Value(setting.default, "default")
    return Value(parse(setting, str(value.value).strip()), value.source) if value.source != "default" else value


def parse(setting: Setting, text: str) -> Scalar:
    """A typed value as its setting's type and within its bounds, or a refusal that says what would do."""
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
    if setting.unit == setting_tables.UNIT:
        return setting_tables.parse(setting.key, text)
    if setting.unit == "url":
        return checked_url(text, setting.key)
    if setting.unit == "provider/model" and text and not all(text.partition("/")):
        raise usage(f'{setting.key} is provider/model, such as anthropic/claude-sonnet-4-6, not "{text}"')
    return text.lower() if setting.choices else text


def _number(setting: Setting, text: str) -> int | float:
    try:
        number = type(setting.default)(text)
    except ValueError:
        raise usage(f'{setting.key} is a number ({setting.unit}), not "{text}"') from None
    if setting.unit == "port" and not 0 <= number <= _LAST_PORT:
        raise usage(f"{setting.key} is a port from 0 to {_LAST_PORT}, not {text}")
    return int(number) if isinstance(setting.default, int) else float(number)


def checked_url(text: str, source: str) -> str:
    """A hub's address without the last slash, or a refusal that shows a right one."""
    scheme, separator, rest = text.strip().partition("://")
    url = text.strip().rstrip("/")
    if not separator and url:
        raise usage(f'{source} is "{text}", an address without http:// or https://', f"use http://{url}")
    if scheme not in {"http", "https"} or set(rest) & set(" ?#@\\") or not _names_a_host(url):
        raise usage(
            f'{source} is "{text}", which is no http:// or https:// address', "use one such as http://localhost:8000"
        )
    return url


def plain(text: str, source: str) -> str:
    """A text that can travel in a header, or a refusal that doesn't repeat what may be a secret."""
    if not text or not all("!" <= character <= "~" for character in text):
        raise usage(f"{source} holds a blank or a character that is not plain ASCII", f"mend {source}")
    return text


def _names_a_host(url: str) -> bool:
    from urllib.parse import urlsplit  # whoever asks a hub has it loaded anyway

    try:
        place = urlsplit(url)
        return bool(place.hostname) and place.port != 0
    except ValueError:
        return False


def shown(setting: Setting, value: object) -> str:
    """A value for the screen: a secret by its last four characters, a truth as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    if setting.secret and text:
        return f"…{text[-4:]}" if len(text) > 8 else "…"
    return text


def write(key: str, value: Scalar | None) -> None:
    """Set a key in `config.toml`, or take it out (`None`), all at once and for this user's eyes only.

    A secret goes into a file of its own, and out of `config.toml`, should it stand there.
    """
    if find(key).secret:
        from mycelium_cli import secret

        secret.write(key, str(value or ""))
        value = None
        if not os.path.exists(path()):
            return
    import tomlkit
    from tomlkit.exceptions import ParseError

    with _one_line_on_failure(), locked_home():
        place = os.path.realpath(path())
        text = ""
        try:
            if os.path.exists(place):
                text = _content(place)
            document: Any = tomlkit.parse(text)
        except (ParseError, UnicodeDecodeError) as error:
            raise usage(f"{place} is not valid TOML: {error}", f"mend that line of {place}") from None
        except RecursionError:
            raise too_deep() from None
        _place(document, key, value)
        replace(place, tomlkit.dumps(document))


def touch() -> None:
    """Make an empty `config.toml` where there is none."""
    with _one_line_on_failure(), locked_home():
        if not os.path.exists(path()):
            replace(path(), "")


def _place(document: Any, key: str, value: Scalar | None) -> None:
    import tomlkit

    *tables, name = key.split(".")
    table = document
    for part in tables:
        if part not in table:
            table[part] = tomlkit.table()
        table = table[part]
        if not isinstance(table, dict):
            raise usage(f"{part} in {path()} must be a table, since {key} stands in it", f"mend {path()}")
    if value is None:
        table.pop(name, None)
    else:
        is_tables = bool(value) and find(key).unit == setting_tables.UNIT
        table[name] = setting_tables.to_toml(str(value)) if is_tables else value


def replace(place: str, text: str) -> None:
    """Write a file whole or not at all, for this user's eyes only."""
    beside = f"{place}.{os.getpid()}.new"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


@contextmanager
def locked_home() -> Iterator[None]:
    """One writer of its files at a time: two that read, change and write at once must not lose one of the two."""
    import fcntl

    os.makedirs(home(), mode=0o700, exist_ok=True)
    directory = os.open(home(), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


@contextmanager
def _one_line_on_failure() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cause = f"cannot write {path()}: {error.strerror}"
        hint = "set MYCELIUM_HOME, or say it in the environment (MYCELIUM_AGENT_HANDLE, MYCELIUM_ACTIVE_ROOM)"
        raise Failure(cause, hint=hint) from None
