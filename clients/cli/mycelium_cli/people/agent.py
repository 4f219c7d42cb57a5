"""`agent create|ls|show|pause|resume|rm`: the agents of a room."""

import os
import time
from collections.abc import Iterator

import click

from mycelium_cli import completing
from mycelium_cli.api import api_path
from mycelium_cli.command import Entry, Group, command, room_option
from mycelium_cli.context import Here
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, at, clean_line, fields, table
from mycelium_cli.wording import Document, member_row, person, presence

group = Group(
    "agent",
    "Agents: the members of a room that are programs.",
    {
        "create": Entry("people.agent:create", "Register an agent in a room, or change it."),
        "ls": Entry("people.agent:ls", "List a room's agents."),
        "show": Entry("people.agent:show", "Show an agent."),
        "pause": Entry("people.agent:pause", "Let an agent's messages wait until it is resumed."),
        "resume": Entry("people.agent:resume", "Let a paused agent have its messages again."),
        "rm": Entry("people.agent:remove", "Take an agent out of a room."),
        "code": Entry("people.join:code", "Make a code by which an agent joins."),
        "credential": Entry("people.credential:group", "What the agents of this machine sign in with."),
    },
    example="mycelium agent create planner --description 'Sprint planner'\nmycelium agent ls --owner avery",
)


# Spelt like the program; the hub's records have the other.
_ADAPTERS = {"claude-code": "claude_code"}


@command(
    "create",
    example="mycelium agent create release-agent --cwd ~/repo --owner avery --team core --allow-from ops-lead",
    writes=True,
)
@room_option
@click.option("--description", metavar="TEXT", help="What it is for, in a sentence.")
@click.option("--cwd", metavar="DIR", help="The folder it works in.")
@click.option("--adapter", metavar="NAME", help="What runs it: claude_code, codex, cursor, …")
@click.option("--owner", metavar="HANDLE", help="The user it belongs to.", shell_complete=completing.people)
@click.option("--team", metavar="NAME", help="The team it works for.")
@click.option(
    "--allow-from", metavar="HANDLE", multiple=True, help="Who else may act as it; may be repeated.",
    shell_complete=completing.anybody,
)  # fmt: skip
@click.option("--notes", metavar="TEXT", help="What it should know or how it should work.")
@click.argument("handle")
def create(
    here: Here,
    *,
    room: str | None,
    description: str | None,
    cwd: str | None,
    adapter: str | None,
    owner: str | None,
    team: str | None,
    allow_from: tuple[str, ...],
    notes: str | None,
    handle: str,
) -> None:
    """Register an agent in a room, or change it.

    If it is there already, what is given here is changed and the rest stays.
    """
    allowed = [handle_of(one, "--allow-from") for item in allow_from for one in item.split(",") if one.strip()]
    body = {
        "handle": handle_of(handle),
        "kind": "agent",
        "description": description,
        "cwd": os.path.abspath(os.path.expanduser(cwd)) if cwd else None,
        "adapter": _ADAPTERS.get(adapter, adapter) if adapter else adapter,
        "owner": handle_of(owner, "--owner") if owner else None,
        "team": team,
        "allow_from": allowed or None,
        "notes": notes,
    }
    place = here.room(room)
    known = {name: value for name, value in body.items() if value is not None}
    answer = here.hub().write("POST", api_path("rooms", place, "members"), known)
    verb = "registered" if answer.status == 201 else "updated"
    here.out.answer(answer.data, lambda data, _: [f"{verb} {at(data['handle'])} in {clean_line(place)}"])


@command("ls", example="mycelium agent ls --owner avery --json")
@room_option
@click.option("--owner", metavar="HANDLE", help="Only agents of this user.", shell_complete=completing.people)
@click.option("--team", metavar="NAME", help="Only agents of this team.")
def ls(here: Here, *, room: str | None, owner: str | None, team: str | None) -> None:
    """List a room's agents."""
    place = here.room(room)
    query = {"kind": "agent", "owner": handle_of(owner, "--owner") if owner else None, "team": team}
    rows = here.hub().items(api_path("rooms", place, "members"), query)
    here.out.answer({"items": rows, "next": None}, lambda data, paint: draw_agents(data, time.time(), paint))


def draw_agents(answer: Document, now_s: float, paint: Paint) -> list[str]:
    """Agents as a table."""
    if not answer["items"]:
        return ["no agents: mycelium agent create <handle>"]
    rows = [
        [*member_row(row, now_s), row.get("adapter") or "", row.get("description") or ""] for row in answer["items"]
    ]
    headers = ["AGENT", "KIND", "OWNER", "TEAM", "NOW", "UNREAD", "ADAPTER", "DESCRIPTION"]
    return table([headers[0], *headers[2:]], [[row[0], *row[2:]] for row in rows], paint)


@command("show", example="mycelium agent show release-agent")
@room_option
@click.argument("handle", shell_complete=completing.members)
def show(here: Here, *, room: str | None, handle: str) -> None:
    """Show an agent."""
    path = api_path("rooms", here.room(room), "members", handle_of(handle))
    here.out.answer(here.hub().get(path), lambda data, paint: draw_agent(data, time.time(), paint))


def draw_agent(agent: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """An agent's fields."""
    yield paint.bold(person(agent.get("name"), agent["handle"]))
    allowed = ", ".join(at(one) for one in agent.get("allow_from") or [])
    known = [
        ("description", agent.get("description") or ""),
        ("owner", at(agent.get("owner"))),
        ("team", agent.get("team") or ""),
        ("adapter", agent.get("adapter") or ""),
        ("cwd", agent.get("cwd") or ""),
        ("allow from", allowed),
        ("notes", agent.get("notes") or ""),
        ("now", presence(agent, now_s)),
        ("unread", str(agent.get("unread", ""))),
        ("registered", str(agent.get("created_at") or "")),
    ]
    yield from fields(known, paint)


@command("rm", example="mycelium agent rm release-agent", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.members)
def remove(here: Here, *, room: str | None, handle: str) -> None:
    """Take an agent out of a room.

    What it posted stays. Whoever mentions it reads that it left.
    """
    place, name = here.room(room), handle_of(handle)
    here.hub().write("DELETE", api_path("rooms", place, "members", name))
    here.out.answer({"removed": name, "room": place}, lambda _data, _paint: [f"removed @{name} from {place}"])


@command("pause", example="mycelium agent pause release-agent", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.members)
def pause(here: Here, *, room: str | None, handle: str) -> None:
    """Let an agent's messages wait until it is resumed.

    Whoever mentions it reads that it is paused. Nothing is lost.
    """
    _set_paused(here, here.room(room), handle_of(handle), paused=True)


@command("resume", example="mycelium agent resume release-agent", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.members)
def resume(here: Here, *, room: str | None, handle: str) -> None:
    """Let a paused agent have its messages again.

    What came meanwhile is given to it now, oldest first.
    """
    _set_paused(here, here.room(room), handle_of(handle), paused=False)


def _set_paused(here: Here, place: str, name: str, *, paused: bool) -> None:
    answer = here.hub().write("PATCH", api_path("rooms", place, "members", name), {"paused": paused})
    here.out.answer(answer.data, draw_paused)


def draw_paused(member: Document, _paint: Paint) -> Iterator[str]:
    """Whether it gets its messages now, and how many wait."""
    waiting = f", {member['unread']} waiting" if member.get("unread") else ""
    yield f"{'paused' if member.get('paused') else 'resumed'} {at(member['handle'])}{waiting}"
