"""`memory subscribe`: hear of every change of the documents whose key matches, live or as a delivery."""

import time
from collections.abc import Iterator

import click

from mycelium_cli.api import api_path, target
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, age, at, clean_line, shell_word
from mycelium_cli.stream import Event, follow
from mycelium_cli.wording import Document


@command(
    "subscribe",
    example='mycelium memory subscribe "decision/*" --handle my-agent\nmycelium memory subscribe work/ --json\n'
    'mycelium memory subscribe "decision/*" --wake --handle my-agent\nmycelium memory subscribe --ls',
)
@room_option
@handle_option
@click.option("--wake", is_flag=True, help="Keep it on the hub: each change is delivered like a mention, by await.")
@click.option("--off", is_flag=True, help="End what --wake has begun.")
@click.option("--ls", "listed", is_flag=True, help="List what wakes you.")
@click.argument("pattern", required=False, metavar="[PATTERN]")
def subscribe(
    here: Here, *, room: str | None, handle: str | None, wake: bool, off: bool, listed: bool, pattern: str | None
) -> None:
    """Hear of changes of memories.

    PATTERN is matched with keys as a shell would: decisions/* is everything under it, work/ too. One line a
    change: when, which key and version, who, and what; never the text. With --json each event is one line.
    Cut lines and restarts of the hub lose nothing. Ctrl-C ends it.

    With --wake it is kept instead, until --off: await gives you each change that somebody else makes, also
    those made while you were away.
    """
    if listed:
        if pattern or wake or off:
            raise usage("--ls lists all that wakes you", "mycelium memory subscribe --ls")
        _list(here, room, handle)
    elif not pattern:
        raise usage("which memories? no pattern was given", 'mycelium memory subscribe "decisions/*"')
    elif off:
        _end(here, room, handle, pattern)
    elif wake:
        _keep(here, room, handle, pattern)
    else:
        _follow(here, room, handle, pattern)


def _list(here: Here, room: str | None, handle: str | None) -> None:
    path = api_path("rooms", here.room(room), "subscriptions")
    here.out.answer(here.hub(handle).get(path, {"handle": here.handle(handle) or None}), draw)


def draw(page: Document, paint: Paint) -> Iterator[str]:
    """What wakes a handle, a line each."""
    for row in page["items"]:
        since = f"{at(row['handle'])}, {age(row['created_at'], time.time())}"
        yield f"{paint.bold(clean_line(row['pattern']))} · {paint.dim(since)}"
    if not page["items"]:
        yield "nothing there"


def _keep(here: Here, room: str | None, handle: str | None, pattern: str) -> None:
    place, who = here.room(room), here.handle(handle)
    answer = here.hub(handle).write("PUT", api_path("rooms", place, "subscriptions"), {"pattern": pattern})

    def told(row: Document, paint: Paint) -> Iterator[str]:
        again = "" if answer.status == 201 else ", as before"
        yield f"kept: changes of {paint.bold(clean_line(row['pattern']))} in {clean_line(place)} wake {at(who)}{again}"
        yield paint.dim(f"hear of them: mycelium await --room {shell_word(place)} --handle {clean_line(row['handle'])}")

    here.out.answer(answer.data, told)


def _end(here: Here, room: str | None, handle: str | None, pattern: str) -> None:
    place, who = here.room(room), here.handle(handle)
    here.hub(handle).write("DELETE", target(api_path("rooms", place, "subscriptions"), {"pattern": pattern}))
    said = f"ended: changes of {clean_line(pattern)} in {clean_line(place)} wake {at(who)} no more"
    here.out.answer({"ended": pattern, "room": place}, lambda _data, _paint: [said])


def _follow(here: Here, room: str | None, handle: str | None, pattern: str) -> None:
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
