"""`room create|ls|show|use|delete`: a room as a whole."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from mycelium_cli import config
from mycelium_cli.api import api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.context import room as current_room
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, age, at, clean_line, fields, table
from mycelium_cli.wording import Document, person


@command("create", example='mycelium room create "CE-Area Team" --title "Release of the CE area"', writes=True)
@click.argument("name")
@click.option("--title", metavar="TEXT", help="What the room is called on screen; the name stays.")
@click.option("--private", is_flag=True, help="List it only for you and the members you add.")
def create(here: Here, name: str, title: str | None, *, private: bool) -> None:
    """Create a room.

    A name is up to 100 characters, with spaces and accents if you like; it can't be changed later.
    """
    body = {"name": name, "private": private, **({"title": title} if title else {})}
    room = here.hub().post(api_path("rooms"), body)
    here.out.answer(room, draw_created)


def draw_created(room: Document, _paint: Paint) -> Iterator[str]:
    """The new room and the next step."""
    kind = "private room" if room.get("private") else "room"
    yield f"created {kind} {clean_line(room['name'])}"
    yield f"make it the one in use: mycelium room use {shell_word(room['name'])}"


@command("ls", example="mycelium room ls --json")
def ls(here: Here) -> None:
    """List rooms."""
    rooms = here.hub().items(api_path("rooms"))
    if here.json:
        here.out.data({"items": rooms, "next": None})
    elif not rooms:
        here.out.lines(["no rooms yet: mycelium room create <name>"])
    else:
        active = current_room(None)
        here.out.lines(draw_rooms(rooms, active.value if active else "", time.time(), here.out.paint))


def draw_rooms(rooms: list[Document], active: str, now_s: float, paint: Paint) -> list[str]:
    """Rooms as a table; a star marks the one in use."""
    rows = [
        [
            "*" if room["name"] == active else "",
            room["name"],
            room.get("title") or "",
            "private" if room.get("private") else "shared",
            str(room.get("members", "")),
            age(room["last_message_at"], now_s) if room.get("last_message_at") else "-",
        ]
        for room in rooms
    ]
    return table(["", "NAME", "TITLE", "KIND", "MEMBERS", "LAST MESSAGE"], rows, paint)


@command("show", example="mycelium room show design-review")
@click.argument("name", required=False)
def show(here: Here, name: str | None) -> None:
    """Show a room and who is in it."""
    room = here.hub().get(api_path("rooms", here.room(name)))
    here.out.answer(room, draw_room)


def draw_room(room: Document, paint: Paint) -> Iterator[str]:
    """A room's fields, then its members."""
    yield paint.bold(clean_line(room["name"]))
    known = [
        ("title", room.get("title") or ""),
        ("kind", "private" if room.get("private") else "shared"),
        ("created", f"{room['created_at']} {'by ' + at(room['created_by']) if room.get('created_by') else ''}"),
        ("last message", room.get("last_message_at") or "none yet"),
    ]
    yield from fields(known, paint)
    members = room.get("members_list") or []
    yield ""
    if not members:
        yield "nobody is in it yet: mycelium agent create <handle>"
        return
    rows = [member_row(member) for member in members]
    yield from table(["MEMBER", "KIND", "OWNER", "TEAM", "NOW", "UNREAD"], rows, paint)


def member_row(member: Document) -> list[str]:
    """One member for a table: who, whose, and whether it listens right now."""
    seen = member.get("last_seen")
    now = "waiting" if member.get("waiting") else (age(seen, time.time()) if seen else "never seen")
    return [
        person(member.get("name"), member["handle"]),
        member.get("kind") or "",
        at(member.get("owner")),
        member.get("team") or "",
        now,
        str(member.get("unread", "")),
    ]


@command("use", example='mycelium room use "CE-Area Team"')
@click.argument("name")
def use(here: Here, name: str) -> None:
    """Make a room the one that commands act in."""
    room = here.hub().get(api_path("rooms", name))
    config.write("rooms.active", room["name"])
    here.out.answer({"room": room["name"], "config": config.path()}, draw_use)
    found = current_room(None)
    if found is not None and found.value != room["name"]:
        here.out.note(f"warning: {found.source} is set to {found.value} in this shell, and wins over it")


def draw_use(answer: Document, _paint: Paint) -> Iterator[str]:
    """Which room commands act in from now on."""
    yield f"using {clean_line(answer['room'])}"


@command("delete", example="mycelium room delete scratch --yes", writes=True)
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
def delete(here: Here, name: str, *, yes: bool) -> None:
    """Delete a room and everything in it.

    On a terminal it asks first. It can't be undone.
    """
    if not yes and sys.stdin.isatty() and not _confirmed(name):
        raise usage("nothing was deleted")
    here.hub().write("DELETE", api_path("rooms", name))
    stored = config.from_file("rooms.active")
    if stored is not None and stored.value == name:
        config.write("rooms.active", None)
    here.out.answer({"deleted": name}, draw_deleted)


def _confirmed(name: str) -> bool:
    sys.stderr.write(f"Delete {clean_line(name)} and everything in it? It can't be undone. [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def draw_deleted(answer: Document, _paint: Paint) -> Iterator[str]:
    """What is gone."""
    yield f"deleted {clean_line(answer['deleted'])}"


def shell_word(text: Any) -> str:
    """A name as it is typed in a shell: quoted when it must be."""
    from shlex import quote

    return quote(clean_line(text))
