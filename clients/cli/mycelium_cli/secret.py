"""Settings that are secret: each in a file of its own below `secrets`, for this user alone, never in `config.toml`."""

import os
import sys

from mycelium_cli import config, config_writing
from mycelium_cli.errors import Failure, usage

_LONGEST = 10_000


def path(key: str) -> str:
    """The file of a secret setting."""
    return os.path.join(config.home(), "secrets", key.replace(".", "_"))


def read(key: str) -> str:
    """What the file holds; empty when there is none."""
    try:
        with open(path(key), encoding="utf-8") as file:
            return file.read(_LONGEST).strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise usage(f"cannot read {path(key)}: {error}", f"mend {path(key)}") from None


def write(key: str, value: str) -> None:
    """Keep it, all at once, or take it away (empty)."""
    place = path(key)
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        if value:
            config_writing.replace(place, f"{value}\n")
        elif os.path.exists(place):
            os.unlink(place)
    except OSError as error:
        raise Failure(f"cannot write {place}: {error.strerror}", hint="set MYCELIUM_HOME") from None


def asked(key: str) -> str:
    """The value, typed unseen at a terminal, or from a pipe: on a command line others could read it."""
    if sys.stdin.isatty():
        from getpass import getpass

        value = getpass(f"{key}: ")
    else:
        value = sys.stdin.read(_LONGEST)
    return value.strip()


def checked(key: str, value: str) -> str:
    """A value that can be sent in a header, or a refusal that does not repeat it."""
    if not value.isascii() or not value.isprintable() or " " in value:
        raise usage(f"{key} is one word of printable ASCII; what came is not")
    return value
