"""What the shell may complete beyond commands and options: rooms, handles, settings, services.

Asked of the hub while somebody waits at a prompt, so within a moment or not at all, and never with a word of
trouble. Each function is click's `shell_complete` of an option or an argument.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from mycelium_cli.api import Hub

PATIENCE = "MYCELIUM_COMPLETION_S"
_WITHIN_S = 0.3


def rooms(_ctx: "click.Context", _param: "click.Parameter", begun: str) -> list[str]:
    """Names of rooms."""
    return _beginning(begun, _asked(lambda hub: _names(hub, "name", "rooms")))


def members(ctx: "click.Context", _param: "click.Parameter", begun: str) -> list[str]:
    """Handles of the room's members."""
    place = _room_of(ctx)
    return _handles(begun, _asked(lambda hub: _names(hub, "handle", "rooms", place, "members")) if place else [])


def people(_ctx: "click.Context", _param: "click.Parameter", begun: str) -> list[str]:
    """Handles of the hub's users."""
    return _handles(begun, _asked(lambda hub: _names(hub, "handle", "users")))


def anybody(ctx: "click.Context", _param: "click.Parameter", begun: str) -> list[str]:
    """Handles of members and of users."""
    place = _room_of(ctx)

    def both(hub: "Hub") -> Iterator[str]:
        if place:
            yield from _names(hub, "handle", "rooms", place, "members")
        yield from _names(hub, "handle", "users")

    return _handles(begun, dict.fromkeys(_asked(both)))


def settings(_ctx: "click.Context", _param: "click.Parameter", begun: str) -> list[str]:
    """Keys of settings; these need no hub."""
    from mycelium_cli.setting_values import known

    return _beginning(begun, known())


def services(_ctx: "click.Context", _param: "click.Parameter", begun: str) -> list[str]:
    """The parts of the hub, as far as it tells."""
    return _beginning(begun, _asked(lambda hub: ["hub", "nats", *hub.get("/health")["services"]]))


def _names(hub: "Hub", field: str, *path: str) -> Iterator[str]:
    from mycelium_cli.api import api_path

    return (str(row[field]) for row in hub.items(api_path(*path)))


def _room_of(ctx: "click.Context") -> str:
    from mycelium_cli.context import room

    with suppress(Exception):  # settings that can't be read are told by the command itself
        found = room(ctx.params.get("room"))
        return str(found.value) if found else ""
    return ""


def _asked(question: "Callable[[Hub], Iterable[str]]") -> list[str]:
    """The hub's answer, when it comes in time. The asking thread ends with the program, whatever it waits for."""
    from threading import Thread

    from mycelium_cli.context import Here

    found: list[str] = []

    def ask() -> None:
        with suppress(Exception):
            found.extend(question(Here().hub()))

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_patience_s())
    return list(found)


def _patience_s() -> float:
    """How long somebody at a prompt waits for the hub."""
    with suppress(ValueError):
        return min(max(float(os.environ.get(PATIENCE, "")), 0), 60)
    return _WITHIN_S


def _handles(begun: str, found: Iterable[str]) -> list[str]:
    at = "@" if begun.startswith("@") else ""
    return _beginning(begun, [f"{at}{handle}" for handle in found])


def _beginning(begun: str, found: Iterable[str]) -> list[str]:
    """What begins like that, as the shell must read it."""
    return [_word(name) for name in found if name.casefold().startswith(begun.casefold()) and name.isprintable()]


def _word(name: str) -> str:
    """Zsh and fish quote what they insert; bash inserts it as it comes, after reading its backslashes once."""
    if os.environ.get("_MYCELIUM_COMPLETE") != "bash_complete" or _in_quotes(os.environ.get("COMP_WORDS", "")):
        return name
    return re.sub(r"([^\w@%+=:,./-])", r"\\\\\1", name)


def _in_quotes(typed: str) -> bool:
    from shlex import split

    try:
        split(typed)
    except ValueError:
        return True
    return False
