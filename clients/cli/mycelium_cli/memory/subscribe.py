"""`memory subscribe`: hear of every change of the documents whose key matches, live."""

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.output import Paint, at, clean_line
from mycelium_cli.stream import Event, follow
from mycelium_cli.wording import Document


@command(
    "subscribe",
    example='mycelium memory subscribe "decision/*" --handle my-agent\nmycelium memory subscribe work/ --json',
)
@room_option
@handle_option
@click.argument("pattern", metavar="PATTERN")
def subscribe(here: Here, *, room: str | None, handle: str | None, pattern: str) -> None:
    """Hear of changes of memories.

    PATTERN is matched with keys as a shell would: decisions/* is everything under it, work/ too. One line a
    change: when, which key and version, who, and what; never the text. With --json each event is one line.
    Cut lines and restarts of the hub lose nothing. Ctrl-C ends it.
    """
    place = here.room(room)

    def opened(again: bool) -> None:
        here.out.note("back on the line" if again else f"following {pattern} in {place}; Ctrl-C ends it")

    stream = follow(
        here.hub(handle),
        api_path("rooms", place, "stream"),
        {"memory": pattern},
        on_open=opened,
        on_lost=here.out.note,
    )
    for event in stream:
        _show(here, event)


def _show(here: Here, event: Event) -> None:
    document = event.document()
    if here.json:
        here.out.data({"event": event.type, "id": event.id or None, "data": document}, one_line=True)
    elif event.type in {"memory_written", "memory_removed"}:
        here.out.lines([change_line(document, here.out.paint)])
    elif event.type == "reset":
        here.out.note(f"some changes may be missing here ({document.get('reason', '')}): mycelium memory ls")
    elif event.type == "room_deleted":
        here.out.note(f"the room {document.get('room', '')} was deleted")


def change_line(change: Document, paint: Paint) -> str:
    """One change: when, which key and version, who, what."""
    what = "removed" if change["removed"] else "written"
    if change.get("moved_from"):
        what = f"renamed from {clean_line(change['moved_from'])}"
    parts = [
        paint.dim(clean_line(change["updated_at"])),
        paint.bold(clean_line(change["key"])),
        f"version {change['version']}",
        at(change["updated_by"]),
        what,
    ]
    return " · ".join(parts)
