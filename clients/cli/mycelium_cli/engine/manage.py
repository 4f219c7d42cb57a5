"""`engine create|ls|show|rm`: the engines of a room."""

import time
from collections.abc import Iterator

import click

from mycelium_cli import completing
from mycelium_cli.api import Hub, api_path
from mycelium_cli.command import Entry, Group, command, room_option
from mycelium_cli.context import Here
from mycelium_cli.engine.budget import one_line
from mycelium_cli.errors import Failure
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, at, clean_line, fields, table
from mycelium_cli.wording import Document, engine_state

KINDS = ("hello",)

group = Group(
    "engine",
    "Engines: helpers that run on the hub, and answer when they are mentioned.",
    {
        "create": Entry("engine.manage:create", "Add an engine to a room, or change it."),
        "ls": Entry("engine.manage:ls", "List a room's engines."),
        "show": Entry("engine.manage:show", "Show an engine."),
        "invoke": Entry("engine.invoke:invoke", "Ask an engine something, and wait for its answer."),
        "budget": Entry("engine.budget:budget", "Show or set what engines may spend on models."),
        "rm": Entry("engine.manage:remove", "Take an engine out of a room."),
    },
    example='mycelium engine create greeter --kind hello\nmycelium engine invoke greeter "say hello"',
)


@command("create", example="mycelium engine create greeter --kind hello --room sprint-plan", writes=True)
@room_option
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Which engine it is.")
@click.option("--description", metavar="TEXT", help="What it is for, in a sentence.")
@click.argument("handle")
def create(here: Here, *, room: str | None, kind: str, description: str | None, handle: str) -> None:
    """Add an engine to a room, or change it.

    It is a member like any other: mention it with @, and its replies show up under its handle. hello
    replies to a message and does nothing else.
    """
    place = here.room(room)
    known = {"handle": handle_of(handle), "kind": kind, "description": description}
    body = {name: value for name, value in known.items() if value is not None}
    answer = here.hub().write("POST", api_path("rooms", place, "engines"), body)
    verb = "added" if answer.status == 201 else "updated"
    here.out.answer(
        answer.data, lambda data, _: [f"{verb} {at(data['handle'])} ({data['kind']}) in {clean_line(place)}"]
    )


@command("ls", example="mycelium engine ls --room sprint-plan --json")
@room_option
def ls(here: Here, *, room: str | None) -> None:
    """List a room's engines."""
    rows = here.hub().items(api_path("rooms", here.room(room), "engines"))
    here.out.answer({"items": rows, "next": None}, lambda data, paint: draw_engines(data, time.time(), paint))


def draw_engines(answer: Document, now_s: float, paint: Paint) -> list[str]:
    """Engines as a table."""
    if not answer["items"]:
        return ["no engines: mycelium engine create <handle> --kind hello"]
    rows = [
        [
            at(row["handle"]),
            row["kind"] or "-",
            engine_state(row, now_s),
            str(row["unread"]),
            clean_line(row["description"]),
        ]
        for row in answer["items"]
    ]
    return table(["ENGINE", "KIND", "NOW", "UNREAD", "DESCRIPTION"], rows, paint)


@command("show", example="mycelium engine show greeter")
@room_option
@click.argument("handle", shell_complete=completing.members)
def show(here: Here, *, room: str | None, handle: str) -> None:
    """Show an engine."""
    hub, place = here.hub(), here.room(room)
    engine = hub.get(api_path("rooms", place, "engines", handle_of(handle)))
    spent = "" if here.out.json else _spent(hub, place)
    here.out.answer(engine, lambda data, paint: draw_engine(data, spent, time.time(), paint))


def _spent(hub: Hub, place: str) -> str:
    """The room's budget in a line, also when the service that keeps it is away."""
    try:
        return one_line(hub.look(api_path("rooms", place, "budget")))
    except Failure as failure:
        return f"not known: {failure.cause}"


def draw_engine(engine: Document, spent: str, now_s: float, paint: Paint) -> Iterator[str]:
    """An engine's fields."""
    yield paint.bold(at(engine["handle"]))
    known = [
        ("kind", engine["kind"] or "none that this hub runs"),
        ("description", engine["description"]),
        ("now", engine_state(engine, now_s)),
        ("unread", str(engine["unread"])),
        ("budget", spent),
        ("added", engine["created_at"]),
    ]
    yield from fields(known, paint)


@command("rm", example="mycelium engine rm greeter", writes=True)
@room_option
@click.argument("handle", shell_complete=completing.members)
def remove(here: Here, *, room: str | None, handle: str) -> None:
    """Take an engine out of a room.

    What it posted stays. Whoever mentions it reads that it left.
    """
    place, name = here.room(room), handle_of(handle)
    here.hub().write("DELETE", api_path("rooms", place, "engines", name))
    here.out.answer({"removed": name, "room": place}, lambda _data, _paint: [f"removed @{name} from {place}"])
