"""`iam` and `whoami`: saying who one is on this machine, and being told."""

import os
import time
from collections.abc import Iterator

import click

from mycelium_cli import config, config_writing, context
from mycelium_cli.api import api_path
from mycelium_cli.command import command
from mycelium_cli.config import Value
from mycelium_cli.context import Here
from mycelium_cli.errors import FORBIDDEN, UNREACHABLE, Failure
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, clean_line, table
from mycelium_cli.people import signed_in
from mycelium_cli.session import session
from mycelium_cli.wording import Document, person


@command("iam", example='mycelium iam avery --name "Avery Quinn" --team core', writes=True)
@click.option("--name", metavar="NAME", help="What messages show: Avery Quinn.")
@click.option("--team", metavar="NAME", help="The team you work in.")
@click.argument("handle", required=False)
def iam(here: Here, *, name: str | None, team: str | None, handle: str | None) -> None:
    """Say who you are on this machine.

    The hub is asked first, and creates or updates your user record: what it refuses changes nothing here.
    When it can't be reached, you are who you say on this machine, with a warning. Without a handle it is
    `whoami`.
    """
    if handle is None and name is None and team is None:
        _tell(here, sources=False)
        return
    who = handle_of(handle) if handle else here.handle(None)
    proven = signed_in.person(here.hub_url)
    other = proven.handle if proven and proven.handle != who else ""
    saved, reason = _save_user(here, who, {"name": name, "team": team}, may_be_refused=bool(other))
    config_writing.write("identity.name", who)
    acting = here.handle(None)
    answer = {"handle": who, "config": config.path(), "saved": saved is not None, "user": saved}
    here.out.answer(answer, lambda data, _paint: draw_iam(data, acting))
    if (join := context.joined()) and acting == join.handle != who:
        here.out.note(signed_in.outdone(join.source, join.handle, who))
    elif other:
        here.out.note(signed_in.mismatch(other, who))
    elif saved is None:
        here.out.note(f"warning: the user record was not saved: {reason}. Later: mycelium iam {who}")
    shell = os.environ.get("MYCELIUM_AGENT_HANDLE")
    if shell and handle_of(shell, "MYCELIUM_AGENT_HANDLE") != who:
        here.out.note(f"warning: MYCELIUM_AGENT_HANDLE is set to {shell} in this shell, and wins over it")


def _save_user(
    here: Here, who: str, known: dict[str, str | None], *, may_be_refused: bool
) -> tuple[Document | None, str]:
    """The user record as the hub has it now; without a hub the identity of this machine stands alone."""
    body = {field: value for field, value in known.items() if value is not None}
    try:
        user: Document = here.hub(who).write("PUT", api_path("users", who), body).data
    except Failure as failure:
        if failure.exit_status != UNREACHABLE and not (may_be_refused and failure.exit_status == FORBIDDEN):
            raise
        return None, failure.cause
    return user, ""


def draw_iam(answer: Document, acting: str) -> Iterator[str]:
    """Who one is from now on; nobody is told so while commands act as somebody else."""
    who = person((answer["user"] or {}).get("name"), answer["handle"])
    if acting == answer["handle"]:
        yield f"you are {who}"
    else:
        yield f"kept for later: {who}; commands here still act as @{clean_line(acting)}"


@command("whoami", example="mycelium whoami --sources")
@click.option("--sources", is_flag=True, help="Also where each of it was found.")
def whoami(here: Here, *, sources: bool) -> None:
    """Who you act as, where, and why."""
    _tell(here, sources=sources)


def _tell(here: Here, *, sources: bool) -> None:
    known = found()
    registered: Document = {}
    trouble = ""
    try:
        registered = here.hub().get(api_path("whoami"))
    except Failure as failure:
        trouble = failure.cause
    answer = {name: value.value for name, value in known.items()} | {
        "name": registered.get("name") or "",
        "registered": registered.get("registered"),
        "kind": registered.get("kind"),
        "signed_in": signed_in.told(here.hub_url, known["credential"]),
    }
    if registered.get("handle"):
        answer["handle"] = registered["handle"]
    if sources:
        answer["sources"] = {name: value.source for name, value in known.items()}
    here.out.answer(answer, lambda data, paint: draw_whoami(data, known, paint))
    if trouble:
        here.out.note(f"warning: {trouble}")


def found() -> dict[str, Value]:
    """All that a command would act with. The credential is shown by its last four characters."""
    unset = Value("", "not set")
    secret = context.token()
    return {
        "hub": context.hub_url(),
        "handle": context.handle(None) or unset,
        "room": context.room(None) or unset,
        "credential": Value(f"…{secret.value[-4:]}", secret.source) if secret else Value("", "none needed or set"),
        "session": session(),
    }


def draw_whoami(answer: Document, known: dict[str, Value], paint: Paint) -> Iterator[str]:
    """Who one acts as; with sources, a line for each part."""
    proven = answer["signed_in"]
    if proven and answer["handle"]:
        seat = signed_in.seat(answer["handle"], answer["session"])
        yield f"acting as {paint.bold('@' + clean_line(answer['handle']))}  ({seat})"
    elif answer["handle"]:
        yield f"acting as {paint.bold(person(answer['name'], answer['handle']))}"
    else:
        yield "acting as nobody yet: mycelium iam <handle>"
    if answer["handle"] and answer["registered"] is False:
        who = clean_line(answer["handle"])
        yield f"  @{who} is no registered agent or user: mycelium agent create {who}, or mycelium iam {who}"
    if proven:
        yield f"  {signed_in.line(proven, answer['handle'], time.time())}"
    if "sources" in answer:
        rows = [[name, str(value.value) or "-", value.source] for name, value in known.items()]
        yield from table(["", "VALUE", "FROM"], rows, paint)
        return
    yield f"  room {clean_line(answer['room']) or 'none in use'} · hub {clean_line(answer['hub'])}"
