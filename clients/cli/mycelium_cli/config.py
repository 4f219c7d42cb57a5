"""Where the value of each setting comes from: the environment, `config.toml` or a secret's own file, the default.

Reading needs no file at all when the environment says everything. What a value may be is in `setting_values`; files
are written by `config_writing`.
"""

import os
import stat
from typing import Any, NamedTuple

from mycelium_cli import setting_tables
from mycelium_cli.errors import Failure, usage
from mycelium_cli.setting_values import find, parse


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
        return tomllib.loads(content(path()))
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


def content(place: str) -> str:
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
    if value.source == "default":
        return value
    try:
        return Value(parse(setting, str(value.value).strip()), value.source)
    except Failure as failure:
        failure.hint = failure.hint or f"mend {value.source}"
        raise
