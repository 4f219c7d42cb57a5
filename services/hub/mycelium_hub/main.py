"""The program `mycelium-hub`, which `mycelium up`, `down`, `logs` and `doctor` run.

Exit status: 0 done, 1 refused, 2 usage, 3 nothing there, 130 interrupted. Each command imports what it needs by
itself: who asks for help, or stops a hub, does not wait for what reads stores or talks HTTP.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mycelium_hub import __version__, settings
from mycelium_hub.errors import Refused
from mycelium_hub.home import Home, locate
from mycelium_kernel.settings import Value

F = TypeVar("F", bound=Callable[..., Any])
NOT_RUNNING = 3
INTERRUPTED = 130


def run() -> None:
    """Run the program; whatever goes wrong is one line and an exit status."""
    try:
        group(prog_name="mycelium-hub")
    except Refused as refused:
        print(json.dumps(refused.document()) if "--json" in sys.argv else refused.line(), file=sys.stderr)
        sys.exit(refused.status)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of `logs | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(version)s")
def group() -> None:
    """Run the hub of this machine."""


def _home_option(function: F) -> F:
    text = "The folder of everything this hub keeps.  [default: $MYCELIUM_HOME, else ~/.mycelium]"
    return click.option("--home", "folder", metavar="DIR", help=text)(function)


def _json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)


def _start_options(function: F) -> F:
    """The flags that win over settings."""
    port = "The port to answer on, 0 for any free one.  [default: runtime.backend_port, else 8000]"
    split = "Run every service as a process of its own, as a cluster does."
    replicas = "Processes of each service, with --split.  [default: runtime.replicas, else 1]"
    servers = "NATS servers that keep each fact, 1 or 3; fixed by the first start.  [default: 1]"
    for option in (
        click.option("--nats-servers", type=click.Choice(["1", "3"]), metavar="N", help=servers),
        click.option("--replicas", type=click.IntRange(1, settings.MOST_REPLICAS), metavar="N", help=replicas),
        click.option("--split", is_flag=True, default=None, help=split),
        click.option("--port", type=click.IntRange(0, settings.LAST_PORT), metavar="N", help=port),
    ):
        function = option(function)
    return function


def _flags(port: int | None, replicas: int | None, nats_servers: str | None, *, split: bool | None) -> dict[str, Value]:
    """What the command line says, by the key of its setting."""
    said = {
        "runtime.backend_port": port,
        "runtime.split": split,
        "runtime.replicas": replicas,
        "runtime.nats_servers": int(nats_servers) if nats_servers else None,
    }
    return {key: value for key, value in said.items() if value is not None}


@group.command(epilog="Example: mycelium up --detach --port 0")
@click.option("--detach", "-d", is_flag=True, help="Start it in the background, and return once it answers.")
@_start_options
@_home_option
@_json_option
def up(*, detach: bool, folder: str | None, as_json: bool, **said: Any) -> None:
    """Start the hub: its NATS server and its services. Stays in the foreground until Ctrl-C, unless --detach."""
    from mycelium_hub import daemon, drift

    home, flags = locate(folder, os.environ), _flags(**said)
    wanted = settings.load(home.path, os.environ, flags)
    if not detach:
        if home.running():
            others = drift.told(home, wanted)  # its lines end in what to do
            raise Refused("\n".join((home.occupied(), *others)), next="" if others else "mycelium status")
        daemon.become(daemon.command(home, flags))
    running, started = daemon.start(home, flags)
    others = [] if started else drift.told(home, wanted)
    if as_json:
        answer = {"url": running.url, "pid": running.pid, "home": str(home.path), "started": started}
        print(json.dumps({**answer, "drift": others}, ensure_ascii=False))
    elif started:
        print(f"The hub answers at {running.url}")
    else:
        print("\n".join((f"The hub is already running at {running.url} (pid {running.pid})", *others)))


@group.command(hidden=True)
@click.option("--background", is_flag=True)
@click.option("--kept", type=int)
@_start_options
@_home_option
def serve(*, background: bool, kept: int | None, folder: str | None, **said: Any) -> None:
    """Be the hub; `up` runs this, and so does a hub that starts itself again, which keeps something."""
    from mycelium_hub import again, daemon
    from mycelium_hub.serve import serve as serve_hub

    home, flags = locate(folder, os.environ), _flags(**said)
    serve_hub(
        home,
        lambda: settings.load(home.path, os.environ, flags),
        echo=not background,
        command=daemon.command(home, flags, *(["--background"] if background else [])),
        kept=None if kept is None else again.take(kept),
    )


@group.command(hidden=True)
@click.option("--check", is_flag=True, help="Look at the file alone.")
@click.option("--restart", is_flag=True, help="Also when nothing differs.")
@_home_option
def apply(*, check: bool, restart: bool, folder: str | None) -> None:
    """Make a running hub take its settings as they are now; `mycelium config apply` runs this and shows what it says.

    Always JSON. Exit status 1: it could not be done; 2: a setting is wrong, and nothing was touched.
    """
    from mycelium_hub import applying

    told = applying.apply(locate(folder, os.environ), check=check, restart=restart)
    print(json.dumps(told.document(), ensure_ascii=False))
    sys.exit(told.status)


@group.command(epilog="Example: mycelium down")
@click.option("--volumes", is_flag=True, help="Delete every room and message too; settings stay.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before deleting.")
@_home_option
@_json_option
def down(*, volumes: bool, yes: bool, folder: str | None, as_json: bool) -> None:
    """Stop the hub."""
    from mycelium_hub import daemon

    home = locate(folder, os.environ)
    if volumes and not yes:
        _ask_to_delete(home)
    stopped = daemon.stop(home)
    if volumes:
        daemon.delete_data(home)
    if as_json:
        print(json.dumps({"stopped": stopped is not None, "pid": stopped, "deleted": volumes}))
        return
    print(f"The hub is stopped (pid {stopped})" if stopped else f"No hub was running on {home.path}")
    if volumes:
        print(f"Its data in {home.path} is deleted")


def _ask_to_delete(home: Home) -> None:
    if not sys.stdin.isatty():
        raise Refused(
            "deleting every room and message needs --yes when nobody can be asked", 2, "mycelium down --volumes --yes"
        )
    print(f"This deletes every room and message of the hub in {home.path}, for good.", file=sys.stderr)
    if input("Type yes to go on: ").strip().lower() != "yes":
        raise Refused("nothing was stopped or deleted", next="the same with yes, to delete it after all")


@group.command("status", epilog="Example: mycelium status --json")
@_home_option
@_json_option
def show_status(*, folder: str | None, as_json: bool) -> None:
    """Show the hub's processes, address and health. Exit status 3 when none is running."""
    from mycelium_hub import status

    found = status.look(locate(folder, os.environ))
    print(found.as_json() if as_json else found.as_text())
    if not found.running:
        sys.exit(NOT_RUNNING)


@group.command(epilog="Example: mycelium-hub doctor --fix")
@click.option("--fix", is_flag=True, help="Mend what can be mended without asking.")
@click.option("--deep", is_flag=True, help="Read every byte of the log and compare the tables with it, too.")
@_home_option
@_json_option
def doctor(*, fix: bool, deep: bool, folder: str | None, as_json: bool) -> None:
    """Find what is wrong with the hub of this machine, and say what to do. Exit status 1: something is."""
    from mycelium_hub import doctor as examining
    from mycelium_hub.finding import WRONG, lines

    found = examining.examine(locate(folder, os.environ), os.environ, fix=fix, deep=deep)
    if as_json:
        print(json.dumps({"items": [finding.document() for finding in found], "next": None}, indent=2))
    else:
        print("\n".join(lines(found)))
    if any(finding.state == WRONG for finding in found):
        sys.exit(1)


@group.command("logs", epilog="Example: mycelium logs rooms --tail 20 --follow")
@click.argument("service", required=False)
@click.option(
    "--tail", type=click.IntRange(min=0), default=100, show_default=True, metavar="N", help="Records to show."
)
@click.option("--follow", "-f", is_flag=True, help="Go on with new records as they come.")
@_home_option
@_json_option
def show_logs(*, service: str | None, tail: int, follow: bool, folder: str | None, as_json: bool) -> None:
    """Show the newest records of all services, or of one: hub, nats, rooms, gateway."""
    from mycelium_hub import logs

    home = locate(folder, os.environ)

    def show(name: str, raw: str) -> None:
        shown = logs.readable(name, raw)
        print(_record(name, raw, shown.at) if as_json else shown.text, flush=follow)

    ends = logs.marks(home, service)
    for name, raw in logs.last(home, ends, tail):
        show(name, raw)
    for name, raw in logs.follow(home, service, ends) if follow else ():
        show(name, raw)


def _record(name: str, raw: str, at: str) -> str:
    try:
        record = json.loads(raw)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        record = {"timestamp": at, "event": raw}
    return json.dumps({"service": name, **record}, ensure_ascii=False)
