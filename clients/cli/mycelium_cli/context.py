"""Who acts, where, and on which hub, each with its source: flag, environment, this machine's setup.

A flag wins over the environment, that over the setup of this machine. `whoami --sources` prints exactly
what the functions here return, so it can't say anything else than what commands do.
"""

import json
import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from mycelium_cli import config
from mycelium_cli.config import Value
from mycelium_cli.errors import usage
from mycelium_cli.output import Output
from mycelium_cli.session import session

if TYPE_CHECKING:
    from mycelium_cli.api import Hub

_TYPED = "the handle"
_HANDLE = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?")


def handle_of(typed: str, source: str = _TYPED) -> str:
    """A handle as the hub writes it: `@Sec` and `sec` are the same."""
    handle = typed.strip().removeprefix("@").lower()
    if not _HANDLE.fullmatch(handle):
        rule = "a to z, 0 to 9, dot, dash or underscore, at most 64, starting with a letter or digit"
        hint = "" if source in {_TYPED, "--handle"} else f"mend {source}"
        raise usage(f'{source} is "{typed}", which is no handle ({rule})', hint, "handle.invalid")
    return handle


def handle(flag: str | None) -> Value | None:
    """Who acts; `None` when nobody said so (the hub then knows it from the token, or refuses)."""
    if flag:
        return Value(handle_of(flag, "--handle"), "--handle")
    found = config.lookup("identity.name")
    return Value(handle_of(str(found.value), found.source), found.source) if found else None


def room(flag: str | None) -> Value | None:
    """The room to act in."""
    return Value(flag, "--room") if flag else config.lookup("rooms.active")


def token() -> Value | None:
    """The credential; only the environment holds one so far."""
    name = "MYCELIUM_AGENT_AUTH_TOKEN"
    found = os.environ.get(name, "").strip()
    return Value(plain(found, name), name) if found else None


def plain(text: str, source: str) -> str:
    """A text that can travel in a header, or a refusal that doesn't repeat what may be a secret."""
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise usage(f"{source} holds a blank or a character that is not plain ASCII", f"mend {source}")
    return text


def hub_url() -> Value:
    """The hub's address: as set, else the one that this machine's own hub wrote down, else the default."""
    found = config.lookup("server.api_url") or _own_hub()
    if found is None:
        return Value(config.find("server.api_url").default, "default")
    return Value(config.checked_url(str(found.value), found.source), found.source)


def named_hub_url() -> str:
    """The hub's address where one is named; empty while it is down, so that nobody ends up at another one."""
    found = hub_url()
    return str(found.value) if found.source != "default" else ""


def _own_hub() -> Value | None:
    place = os.path.join(config.home(), "run", "hub.json")
    try:
        with open(place, encoding="utf-8") as file:
            url = json.load(file)["url"]
    except (OSError, ValueError, KeyError, TypeError):
        # No hub here, or one that is being written down right now: the default is as good a guess.
        return None
    return Value(str(url), place)


def _meant(near: str, right: str) -> str:
    """A variable that is set, and looks like the one that counts."""
    return f" ({near} is set, but {right} is the one that counts)" if os.environ.get(near) else ""


class Here:
    """What a command is given: where it is, who acts, the hub to ask, the place to print."""

    def __init__(self, *, json_wanted: bool = False, verbose: bool = False, key: str | None = None) -> None:
        self.verbose = verbose
        self.key = plain(key, "--key") if key else None
        self.out = Output(json_wanted=json_wanted)

    @property
    def json(self) -> bool:
        """Whether a program reads along."""
        return self.out.json

    @cached_property
    def hub_url(self) -> str:
        """The hub's address."""
        return str(hub_url().value)

    @cached_property
    def session(self) -> str:
        """The session's id."""
        return str(session().value)

    def hub(self, handle_flag: str | None = None) -> "Hub":
        """The hub, spoken to by whoever acts here (perhaps nobody: reading needs no name)."""
        from mycelium_cli.api import Caller, Hub

        who, secret = handle(handle_flag), token()
        caller = Caller(handle=who.value if who else "", session=self.session, token=secret.value if secret else "")
        return Hub(self.hub_url, caller, verbose=self.verbose, key=self.key, locate=named_hub_url)

    def room(self, flag: str | None) -> str:
        """The room's name, or a refusal that says how to name one."""
        found = room(flag)
        if found is None:
            hint = "mycelium room use <name> (or --room, or MYCELIUM_ACTIVE_ROOM)"
            cause = "No room context found: No room specified and no active room set"
            raise usage(cause + _meant("MYCELIUM_ROOM", "MYCELIUM_ACTIVE_ROOM"), hint, "cli.no_room")
        return str(found.value)

    def handle(self, flag: str | None) -> str:
        """The handle that acts; with a token and no handle the hub knows it, and the answer is empty."""
        found = handle(flag)
        if found is None and token() is None:
            hint = "mycelium iam <handle> (or --handle, or MYCELIUM_AGENT_HANDLE)"
            cause = "No handle found: nobody said who is acting"
            raise usage(cause + _meant("MYCELIUM_HANDLE", "MYCELIUM_AGENT_HANDLE"), hint, "cli.no_handle")
        return str(found.value) if found else ""
