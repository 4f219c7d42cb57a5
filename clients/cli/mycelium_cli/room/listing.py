"""`room ls|show`: which rooms there are, and who is in one."""

import time
from collections.abc import Iterable, Iterator

import click

from mycelium_cli import completing
from mycelium_cli.api import api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.context import room as current_room
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, age, at, clean_line, fields, table
from mycelium_cli.wording import Document, member_row

_HEADERS = ["", "NAME", "TITLE", "KIND", "MEMBERS", "LAST MESSAGE"]


@command("ls", example="mycelium room ls --private")
@click.option("--private", is_flag=True, help="Only private rooms.")
@click.option("--shared", is_flag=True, help="Only shared rooms.")
def ls(here: Here, *, private: bool, shared: bool) -> None:
    """List rooms.

    Yours in folders first, then shared ones, then private ones. A star marks the one in use.
    """
    if private and shared:
        raise usage("--private and --shared leave nothing", "mycelium room ls")
    rooms = [
        room
        for room in here.hub().items(api_path("rooms"))
        if not (private or shared) or bool(room.get("private")) == private
    ]
    active = current_room(None)
    in_use = str(active.value) if active else ""
    here.out.answer(
        {"items": rooms, "next": None}, lambda data, paint: draw_rooms(data["items"], in_use, time.time(), paint)
    )


def draw_rooms(rooms: list[Document], active: str, now_s: float, paint: Paint) -> Iterable[str]:
    """Rooms as one table; with folders or private rooms in it, parted into groups with a heading each."""
    if not rooms:
        return ["no rooms: mycelium room create <name>"]
    groups = _grouped(rooms)
    ordered = [room for members in groups.values() for room in members]
    head, *lines = table(_HEADERS, [_row(room, active, now_s) for room in ordered], paint)
    if len(groups) == 1 and not ordered[0].get("folder"):
        return [head, *lines]
    return _parted(groups, head, lines, paint)


def _grouped(rooms: list[Document]) -> dict[str, list[Document]]:
    """Rooms by their heading, folders first, in the order in which they are shown."""
    groups: dict[str, list[Document]] = {}
    for room in sorted(rooms, key=_place):
        groups.setdefault(_heading(room), []).append(room)
    return groups


def _place(room: Document) -> tuple[bool, str, bool]:
    folder = room.get("folder") or ""
    return (not folder, folder.casefold(), bool(room.get("private")) and not folder)


def _heading(room: Document) -> str:
    if room.get("folder"):
        return f"{clean_line(room['folder'])}/"
    return "Private" if room.get("private") else "Shared"


def _parted(groups: dict[str, list[Document]], head: str, lines: list[str], paint: Paint) -> Iterator[str]:
    yield head
    rest = iter(lines)
    for heading, rooms in groups.items():
        yield paint.bold(heading)
        yield from (next(rest) for _ in rooms)


def _row(room: Document, active: str, now_s: float) -> list[str]:
    return [
        "*" if room["name"] == active else "",
        room["name"],
        room.get("title") or "",
        "private" if room.get("private") else "shared",
        str(room.get("members", "")),
        age(room["last_message_at"], now_s) if room.get("last_message_at") else "-",
    ]


@command("show", example="mycelium room show design-review")
@click.argument("name", required=False, shell_complete=completing.rooms)
def show(here: Here, name: str | None) -> None:
    """Show a room and who is in it."""
    room = here.hub().get(api_path("rooms", here.room(name)))
    here.out.answer(room, lambda data, paint: draw_room(data, time.time(), paint))


def draw_room(room: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """A room's fields, then its members."""
    yield paint.bold(clean_line(room["name"]))
    known = [
        ("title", room.get("title") or ""),
        ("kind", "private" if room.get("private") else "shared"),
        ("folder", room.get("folder") or ""),
        ("created", f"{room['created_at']} {'by ' + at(room['created_by']) if room.get('created_by') else ''}"),
        ("last message", room.get("last_message_at") or "none yet"),
    ]
    yield from fields(known, paint)
    members = room.get("members_list") or []
    yield ""
    if not members:
        yield "nobody is in it yet: mycelium agent create <handle>"
        return
    rows = [member_row(member, now_s) for member in members]
    yield from table(["MEMBER", "KIND", "OWNER", "TEAM", "NOW", "UNREAD"], rows, paint)
