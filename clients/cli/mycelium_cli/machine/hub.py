"""`up|down|status|logs`: the hub of this machine, which is a program of its own (`mycelium-hub`).

`status` asks whatever hub is in use over HTTP, so it works for one on another machine too.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import NoReturn

import click

from mycelium_cli import completing
from mycelium_cli.command import Whole, command
from mycelium_cli.context import Here
from mycelium_cli.errors import REFUSED, UNREACHABLE, Failure
from mycelium_cli.health import SignIn, sign_in_of
from mycelium_cli.output import Paint, clean_line, table
from mycelium_cli.wording import Document

_PROGRAM = "mycelium-hub"


def program() -> str:
    """The hub's program, beside this Python or on the PATH."""
    from shutil import which

    beside = os.path.join(os.path.dirname(sys.executable), _PROGRAM)
    found = beside if os.access(beside, os.X_OK) else which(_PROGRAM)
    if found is None:
        cause = f"{_PROGRAM} is not installed here: this is the client alone, which uses a hub elsewhere"
        hint = "mycelium config set server.api_url http://<hub>:8000 (or install mycelium-hub)"
        raise Failure(cause, exit_status=UNREACHABLE, hint=hint)
    return found


def _become(verb: str, *words: str) -> NoReturn:
    """Become the hub's program: its signals, its output and its exit status are then this command's."""
    path = program()
    sys.stdout.flush()
    os.execv(path, [path, verb, *words])  # noqa: S606 - no shell is wanted


def _words(here: Here, options: Mapping[str, bool | int | str | None]) -> list[str]:
    """Options as they are typed; those that are not set are left out."""
    words = ["--json"] if here.json else []
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


@command("up", example="mycelium up --detach --port 8000")
@click.option("--detach", "-d", is_flag=True, help="Return once it answers, and leave it running.")
@click.option("--port", type=Whole(0, 65535), metavar="N", help="The port; 0 for any free one.")
@click.option("--split", is_flag=True, help="Run every service as a process of its own, as a cluster does.")
@click.option("--replicas", type=Whole(1, 16), metavar="N", help="Processes of each service, with --split.")
@click.option(
    "--nats-servers", type=click.Choice(["1", "3"]), help="Servers that keep each message; the first start decides."
)
def up(
    here: Here, *, detach: bool, port: int | None, split: bool, replicas: int | None, nats_servers: str | None
) -> None:
    """Start the hub.

    It prints its address once it answers.
    """
    options = {"detach": detach, "port": port, "split": split, "replicas": replicas, "nats-servers": nats_servers}
    _become("up", *_words(here, options))


@command("down", example="mycelium down")
@click.option("--volumes", is_flag=True, help="Also delete every room and message.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask before deleting.")
def down(here: Here, *, volumes: bool, yes: bool) -> None:
    """Stop the hub.

    What was acknowledged is on disk and stays there, unless --volumes deletes it.
    """
    _become("down", *_words(here, {"volumes": volumes, "yes": yes}))


@command("logs", example="mycelium logs rooms --tail 50 --follow")
@click.option("--tail", type=Whole(0), metavar="N", help="Only the last N lines.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines as they come.")
@click.argument("service", required=False, shell_complete=completing.services)
def logs(here: Here, *, tail: int | None, follow: bool, service: str | None) -> None:
    """Read the hub's logs."""
    _become("logs", *([service] if service else []), *_words(here, {"tail": tail, "follow": follow}))


@command("status", example="mycelium status --json")
def status(here: Here) -> None:
    """How the hub is, here or elsewhere.

    Exit status 0: all is well; 1: something is not; 5: it can't be reached.
    """
    health = here.hub().get("/health")
    here.out.answer({"url": here.hub_url, **health}, draw_health)
    if health.get("status") != "ok":
        raise click.exceptions.Exit(REFUSED)


def draw_health(health: Document, paint: Paint) -> Iterator[str]:
    """The hub as a whole, each service, and what it warns of."""
    word = clean_line(health.get("status", "unknown"))
    colour = paint.good if word == "ok" else paint.bad
    yield f"hub {clean_line(health['url'])}: {colour(word)}, version {clean_line(health.get('version', '?'))}"
    services = health.get("services") or {}
    rows = [[name, str(state.get("status", "")), str(state.get("detail") or "")] for name, state in services.items()]
    if rows:
        yield from table(["SERVICE", "STATUS", "DETAIL"], rows, paint)
    yield f"sign-in: {_sign_in(sign_in_of(health) or SignIn())}"
    for warning in health.get("warnings") or []:
        yield paint.warn(f"warning: {clean_line(warning)}")


def _sign_in(auth: SignIn) -> str:
    """Whether callers sign in, where, and what else lets them in."""
    if not auth.enabled:
        return "off"
    ways = [f"on, at {auth.listed or 'no issuer'}"]
    if auth.localhost_bypass:
        ways.append("the hub's own machine needs none")
    if auth.web:
        ways.append("people of the web app sign in by browser")
    return "; ".join(ways)
