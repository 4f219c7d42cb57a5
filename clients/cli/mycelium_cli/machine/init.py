"""`init`: this machine's settings, for a hub of its own or for one elsewhere."""

import os
from collections.abc import Iterator
from typing import Any

import click

from mycelium_cli import config, config_writing, context, setting_values
from mycelium_cli.api import Caller, Hub
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.errors import Failure
from mycelium_cli.health import SignIn, sign_in_of
from mycelium_cli.output import Paint, clean_line
from mycelium_cli.wording import Document


@command("init", example="mycelium init\nmycelium init --api-url http://192.168.1.20:8000")
@click.option("--api-url", metavar="URL", help="A hub elsewhere, as http://its-address:8000.")
def init(here: Here, *, api_url: str | None) -> None:
    """Set up this machine, for a hub of its own or for one elsewhere.

    What is set already stays. With an address it is written, and the hub there is looked at: one that is away now
    changes nothing of that.
    """
    if api_url:
        config_writing.write("server.api_url", setting_values.checked_url(api_url, "--api-url"))
    elif not os.path.exists(config.path()):
        config_writing.touch()
    hub = context.hub_url()
    named = hub.source == config.path()
    health = _health(here, str(hub.value)) if named else None
    told: dict[str, Any] = {
        "config": config.path(),
        "hub": str(hub.value),
        "elsewhere": named,
        "reached": health is not None if named else None,
        "sign_in": (sign_in_of(health) or SignIn()).enabled if health is not None else None,
    }
    here.out.answer(told, draw_init)
    if api_url and not named:
        here.out.note(f"warning: {hub.source} is set, and wins over it: commands go to {hub.value}")
    elif named and health is None:
        here.out.note(f"warning: no hub answers at {hub.value} now. To look closer: mycelium doctor")


def _health(here: Here, url: str) -> Document | None:
    try:
        found: Document = Hub(url, Caller("", here.session, ""), verbose=here.verbose).look("/health")
    except Failure:
        return None
    return found


def draw_init(told: Document, _paint: Paint) -> Iterator[str]:
    """Where the settings are, and the next command."""
    yield f"settings in {clean_line(told['config'])}"
    if not told["elsewhere"]:
        yield "next: mycelium up, which starts a hub here (one elsewhere: mycelium init --api-url <url>)"
        return
    yield f"commands go to the hub at {clean_line(told['hub'])}"
    if told["reached"]:
        yield f"next: {'mycelium login' if told['sign_in'] else 'mycelium iam <handle>'}"
