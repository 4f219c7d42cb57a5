"""`room create|set|use|delete`: making a room, changing it, choosing it, ending it."""

import sys
from collections.abc import Iterator

import click

from mycelium_cli import completing, config, config_writing
from mycelium_cli.api import api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.context import room as current_room
from mycelium_cli.errors import Failure, usage
from mycelium_cli.output import Paint, clean_line, shell_word
from mycelium_cli.wording import Document


@command("create", example='mycelium room create "CE-Area Team" --title "Release of the CE area"', writes=True)
@click.argument("name")
@click.option("--title", metavar="TEXT", help="What the room is called on screen; the name stays.")
@click.option("--private", is_flag=True, help="Only for you and the members you add.")
@click.option("--trigger", metavar="WHEN", hidden=True, help="When a synthesis is written; not available yet.")
def create(here: Here, name: str, title: str | None, *, private: bool, trigger: str | None) -> None:
    """Create a room.

    A name is up to 100 characters, with spaces and accents if you like; it can't be changed later.
    """
    if trigger is not None:
        cause = "--trigger is for a synthesizer, and engines of that kind are not available yet; no room was created"
        raise usage(cause, f"mycelium room create {shell_word(name)}")
    body = {"name": name, "private": private, **({"title": title} if title else {})}
    room = here.hub().post(api_path("rooms"), body)
    here.out.answer(room, draw_created)


def draw_created(room: Document, _paint: Paint) -> Iterator[str]:
    """The new room and the next step."""
    kind = "private room" if room.get("private") else "room"
    yield f"created {kind} {clean_line(room['name'])}"
    if room.get("private"):
        yield f"let somebody in: mycelium room add <handle> --room {shell_word(room['name'])}"
    yield f"make it the one in use: mycelium room use {shell_word(room['name'])}"


@command(
    "set",
    example='mycelium room set design-review --title "Review of the design"\n'
    "mycelium room set design-review --private --folder clients",
    writes=True,
)
@click.argument("name", required=False, metavar="[ROOM]", shell_complete=completing.rooms)
@click.option("--room", metavar="ROOM", help="The room; the argument wins.", shell_complete=completing.rooms)
@click.option("--title", metavar="TEXT", help="What the room is called on screen.")
@click.option("--private/--shared", default=None, help="For its members alone, or for everybody on the hub.")
@click.option("--folder", metavar="NAME", help='The folder of your own rooms list that shows it; "" takes it out.')
def change(
    here: Here, *, name: str | None, room: str | None, title: str | None, private: bool | None, folder: str | None
) -> None:
    """Change a room's title, whom it is for, or your folder for it.

    Folders are yours alone: other people's lists don't change.
    """
    wanted = {"title": title, "private": private, "folder": folder}
    body = {field: value for field, value in wanted.items() if value is not None}
    if not body:
        raise usage("nothing to change was named: --title, --private, --shared or --folder", "mycelium room set --help")
    if folder is not None:
        here.handle(None)  # whose folder it is
    answer = here.hub().write("PATCH", api_path("rooms", here.room(name or room)), body)
    here.out.answer(answer.data, draw_changed)


def draw_changed(room: Document, _paint: Paint) -> Iterator[str]:
    """The room as it is now."""
    parts = [clean_line(room["name"])]
    if room.get("title"):
        parts.append(f'titled "{clean_line(room["title"])}"')
    parts.append("private: for its members alone" if room.get("private") else "shared with everybody on the hub")
    if room.get("folder"):
        parts.append(f"in your folder {clean_line(room['folder'])}")
    yield " · ".join(parts)


@command("use", example='mycelium room use "CE-Area Team"')
@click.argument("name", required=False, shell_complete=completing.rooms)
def use(here: Here, name: str | None) -> None:
    """Make a room the one that commands act in.

    Without a name it tells which one that is.
    """
    if name is None:
        _tell_active(here)
        return
    room = here.hub().get(api_path("rooms", name))
    config_writing.write("rooms.active", room["name"])
    here.out.answer({"room": room["name"], "config": config.path()}, draw_use)
    found = current_room(None)
    if found is not None and found.value != room["name"]:
        here.out.note(f"warning: {found.source} is set to {found.value} in this shell, and wins over it")


def _tell_active(here: Here) -> None:
    found = current_room(None)
    if found is None:
        raise usage("No active room set.", "mycelium room ls, then mycelium room use <name>")
    document = {"room": found.value, "source": found.source}
    here.out.answer(document, lambda data, _: [f"using {clean_line(data['room'])} (from {clean_line(data['source'])})"])


def draw_use(answer: Document, _paint: Paint) -> Iterator[str]:
    """Which room commands act in from now on."""
    yield f"using {clean_line(answer['room'])}"


@command("delete", example="mycelium room delete scratch --yes", writes=True)
@click.argument("name", shell_complete=completing.rooms)
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
def delete(here: Here, name: str, *, yes: bool) -> None:
    """Delete a room and everything in it.

    On a terminal it asks first. It can't be undone.
    """
    if not yes and sys.stdin.isatty() and not _confirmed(name):
        raise Failure("nothing was deleted", hint="the same with y, to delete it after all")
    here.hub().write("DELETE", api_path("rooms", name))
    stored = config.from_file("rooms.active")
    if stored is not None and stored.value == name:
        config_writing.write("rooms.active", None)
    here.out.answer({"deleted": name}, draw_deleted)


def _confirmed(name: str) -> bool:
    sys.stderr.write(f"Delete {clean_line(name)} and everything in it? It can't be undone. [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def draw_deleted(answer: Document, _paint: Paint) -> Iterator[str]:
    """What is gone."""
    yield f"deleted {clean_line(answer['deleted'])}"
