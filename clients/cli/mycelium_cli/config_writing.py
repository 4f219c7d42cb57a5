"""Writing `config.toml`: whole or not at all, 0600, one writer at a time; the comments of people stay."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from mycelium_cli import setting_tables
from mycelium_cli.config import content, home, path, too_deep
from mycelium_cli.errors import Failure, usage
from mycelium_cli.setting_values import Scalar, find


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
                text = content(place)
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
    with replacing(place) as (file, _):
        file.write(text.encode())


@contextmanager
def replacing(path: str) -> Iterator[tuple[BinaryIO, str]]:
    """A file beside `path`, for this user alone, that takes its place when the block succeeds; and its own path."""
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            yield file, beside
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
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
