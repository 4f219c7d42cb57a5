"""Who acts, where, and on which hub, each with its source: flag, environment, this machine's setup.

A flag wins over the environment, that over the folder's join, that over the signed-in person and the setup of this
machine. `whoami --sources` prints exactly what the functions here return, so it can't say anything else than what
commands do.
"""

import json
import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from mycelium_cli import config, setting_values
from mycelium_cli.config import Value
from mycelium_cli.errors import usage
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Output
from mycelium_cli.session import session

if TYPE_CHECKING:
    from mycelium_cli.api import Hub
    from mycelium_cli.joining import Joined

_LAST_PORT = 65535


def handle(flag: str | None) -> Value | None:
    """Who acts; `None` when nobody said so (the hub then knows it from the token, or refuses)."""
    if flag:
        return Value(handle_of(flag, "--handle"), "--handle")
    setting = setting_values.find("identity.name")
    found = (
        config.from_environment(setting.env) or _joined_handle() or _signed_in_handle() or config.from_file(setting.key)
    )
    return Value(handle_of(str(found.value), found.source), found.source) if found else None


def room(flag: str | None) -> Value | None:
    """The room to act in."""
    if flag:
        return Value(flag, "--room")
    setting = setting_values.find("rooms.active")
    join = joined()
    return (
        config.from_environment(setting.env)
        or (Value(join.room, join.source) if join else None)
        or config.from_file(setting.key)
    )


def joined() -> "Joined | None":
    """What joined this folder, or one above it, to a room; not while the environment names another hub."""
    from mycelium_cli import joining

    join = joining.joined()
    if join is None:
        return None
    named = config.from_environment(setting_values.find("server.api_url").env)
    return join if named is None or same_hub(str(named.value), join.hub) else None


def _joined_handle() -> Value | None:
    join = joined()
    return Value(join.handle, join.source) if join else None


def _signed_in_handle() -> Value | None:
    from mycelium_cli.sign_in import token_file

    person = token_file.find(str(hub_url().value))
    return Value(person.handle, token_file.path()) if person and person.handle and person.access_token else None


def token(acting: str | None = None, url: str | None = None, refused: str | None = None) -> Value | None:
    """The credential for the hub at `url`: the environment's, the acting agent's own, the folder's, the person's.

    It is asked for before each request: who waits for hours needs a fresh one, and another hub gets none. `refused`
    is one that the hub would not have: another one, where one can be had.
    """
    if acting is None:
        who = handle(None)
        acting = str(who.value) if who else ""
    address = str(hub_url().value) if url is None else url
    if not is_named_by_a_folder_alone(address):
        agents_own = _agents_token(acting, address, refused)
        if agents_own is not None:  # empty: its issuer gave it none, and nobody else's stands in for it
            return agents_own if agents_own.value else None
    return _joined_token(acting, address) or _persons_token(address, refused)


def is_named_by_a_folder_alone(url: str) -> bool:
    """Whether nothing but the file of a folder says that this is a hub.

    The file may have come with somebody's repository: what this machine holds for its own hub is not sent there.
    """
    join = joined()
    if join is None or not same_hub(url, join.hub):
        return False
    setting = setting_values.find("server.api_url")
    known = config.from_environment(setting.env) or config.from_file(setting.key) or _own_hub()
    if known is not None and same_hub(str(known.value), url):
        return False
    from mycelium_cli.sign_in import agents

    if os.environ.get(agents.TOKEN):
        from mycelium_cli import warnings_once

        warnings_once.warn(
            f"{agents.TOKEN} is not sent to {url}, which {join.source} alone names. Next: export {setting.env[0]}={url}"
        )
    return True


def _agents_token(acting: str, url: str, refused: str | None) -> Value | None:
    """One from the environment, or an agent's own, from its issuer."""
    from mycelium_cli.sign_in import agents

    return agents.token(acting, url, refused)


def _joined_token(acting: str, url: str) -> Value | None:
    """The one that the hub gave for this folder, for that handle and no other."""
    join = joined()
    if join is None or not join.token or acting != join.handle or not same_hub(url, join.hub):
        return None
    return Value(setting_values.plain(join.token, join.source), join.source)


def _persons_token(url: str, refused: str | None) -> Value | None:
    """The signed-in person's for that hub, renewed when its time is nearly over."""
    from mycelium_cli.sign_in import token_file

    if token_file.find(url) is None:
        return None
    from mycelium_cli.sign_in import renewal

    return renewal.token(url, refused)


def hub_url() -> Value:
    """The hub's address: as set, else where this machine's own hub runs or would start, else the default."""
    setting = setting_values.find("server.api_url")
    found = config.from_environment(setting.env) or _joined_hub() or config.from_file(setting.key) or _own_hub()
    if found is None:
        return Value(setting_values.find("server.api_url").default, "default")
    return Value(setting_values.checked_url(str(found.value), found.source), found.source)


def same_hub(one: str, other: str) -> bool:
    """Whether two addresses are one hub's: a token goes to the hub that it is for, and to no other."""
    from mycelium_cli.sign_in import token_file

    return token_file.key(one) == token_file.key(other)


def _joined_hub() -> Value | None:
    join = joined()
    return Value(join.hub, join.source) if join else None


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
        return _where_it_would_be()
    return Value(str(url), place)


def _where_it_would_be() -> Value | None:
    """A hub that is down, or is written down right now: where it starts, and not where another home's hub may be."""
    found = config.lookup("runtime.backend_port")
    port = str(found.value).strip() if found else ""
    if found is None or not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > _LAST_PORT:
        return None
    return Value(f"http://localhost:{port}", f"runtime.backend_port, {found.source}")


def _meant(near: str, right: str) -> str:
    """A variable that is set, and looks like the one that counts."""
    return f" ({near} is set, but {right} is the one that counts)" if os.environ.get(near) else ""


class Here:
    """What a command is given: where it is, who acts, the hub to ask, the place to print."""

    def __init__(self, *, json_wanted: bool = False, verbose: bool = False, key: str | None = None) -> None:
        self.verbose = verbose
        self.key = setting_values.plain(key, "--key") if key else None
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

        found = handle(handle_flag)
        who = str(found.value) if found else ""

        def proof(url: str, refused: str | None) -> str:
            secret = token(who, url, refused)
            return str(secret.value) if secret else ""

        caller = Caller(handle=who, session=self.session, token=proof(self.hub_url, None))
        return Hub(self.hub_url, caller, verbose=self.verbose, key=self.key, locate=named_hub_url, token=proof)

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
