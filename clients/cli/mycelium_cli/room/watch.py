"""`room watch`: a room live, through cut lines and restarts of the hub."""

from collections.abc import Iterator

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.output import Paint, clean_line, short
from mycelium_cli.stream import Event, follow
from mycelium_cli.wording import Document, message_lines, person, text_lines


@command("watch", example="mycelium room watch design-review\nmycelium room watch design-review ops --json")
@click.option("--room", metavar="ROOM", help="The room; arguments win.")
@click.argument("names", nargs=-1, metavar="[ROOM]...")
def watch(here: Here, *, room: str | None, names: tuple[str, ...]) -> None:
    """Follow what is happening, live.

    With --json each event is one line. Ctrl-C ends it.
    """
    places = list(names) or [here.room(room)]
    hub = here.hub()
    if len(places) == 1:
        path, query = api_path("rooms", places[0], "stream"), {}
    else:
        path, query = api_path("stream"), {"room": places}

    def opened(again: bool) -> None:
        here.out.note("back on the line" if again else f"watching {', '.join(places)}; Ctrl-C ends it")

    for event in follow(hub, path, query, on_open=opened, on_lost=here.out.note):
        _show(here, event, several=len(places) > 1)


def _show(here: Here, event: Event, *, several: bool) -> None:
    document = event.document()
    if here.json:
        here.out.data({"event": event.type, "id": event.id or None, "data": document}, one_line=True)
    else:
        here.out.lines(draw_event(event.type, document, here.out.paint, several=several))


def draw_event(kind: str, data: Document, paint: Paint, *, several: bool = False) -> Iterator[str]:
    """An event as lines; kinds that this version doesn't know are left to `--json`."""
    where = f"{paint.dim(clean_line(data.get('room', '')))} " if several else ""
    if kind == "message":
        first, *rest = message_lines(data, paint)
        yield where + first
        yield from rest
    elif kind == "message_amended":
        yield f"{where}{short(data['id'])} · {paint.dim(clean_line(data['edited_at']))} {paint.dim('(edited)')}"
        yield from text_lines(data["content"])
    elif kind in _SMALL_PRINT:
        yield where + paint.dim(f"-- {_SMALL_PRINT[kind](data)}")


_SMALL_PRINT = {
    "member_joined": lambda data: f"{person(data.get('name'), data['handle'])} is in the room",
    "member_left": lambda data: f"{person('', data['handle'])} left the room",
    "room_changed": lambda data: f"the room is now called {clean_line(data.get('title') or data.get('name'))}",
    "room_deleted": lambda data: f"the room {clean_line(data.get('room', ''))} was deleted",
    "reset": lambda data: (
        f"some messages may be missing here ({clean_line(data.get('reason', ''))}): mycelium room messages"
    ),
}
