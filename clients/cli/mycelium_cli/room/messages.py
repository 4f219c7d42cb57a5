"""`room messages`: the room's history, newest first, a page at a time; and one message through its edits."""

import re
from collections.abc import Iterator

import click

from mycelium_cli import completing
from mycelium_cli.api import api_path
from mycelium_cli.command import Whole, command
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, clean_line, shell_word, short
from mycelium_cli.periods import zone
from mycelium_cli.wording import Document, message_lines, sender, text_lines

MOST = 500


@command(
    "messages",
    example="mycelium room messages design-review --limit 50\nmycelium room messages --since 1d --before 2h\n"
    "mycelium room messages --kind action --status open\nmycelium room messages --history a1b2c3d4",
)
@click.option("--room", metavar="ROOM", help="The room; the argument wins.", shell_complete=completing.rooms)
@click.option("--limit", type=Whole(1, MOST), default=50, show_default=True, help="How many.")
@click.option(
    "--before", metavar="TIME", help="Only older ones: a timestamp as printed, an age like 2h, today, yesterday."
)
@click.option(
    "--since", metavar="TIME", help="Only newer ones: a timestamp as printed, an age like 1d, today, yesterday."
)
@click.option("--sender", metavar="HANDLE", help="Only what this one posted.", shell_complete=completing.anybody)
@click.option("--kind", metavar="KIND", help="Only events of this kind: action, concern, source_event, your own.")
@click.option("--status", metavar="STATUS", help="Only events that are open, in_progress, resolved or expired.")
@click.option("--thread", metavar="ID", help="One thread instead of the channel.")
@click.option("--search", "--q", "search", metavar="WORDS", help="Only messages with these words.")
@click.option("--all", "everything", is_flag=True, help="The channel and all threads together.")
@click.option("--reverse", is_flag=True, help="Oldest first, as they were said.")
@click.option("--history", metavar="ID", help="One message with every text it has had.")
@click.argument("name", required=False, metavar="[ROOM]", shell_complete=completing.rooms)
def messages(here: Here, *, room: str | None, history: str | None, name: str | None, **filters: object) -> None:
    """Read a room's messages, newest first.

    When there are older ones, the output ends with the --before value of the next page; with --reverse it
    begins with it. Days begin at
    midnight of this machine.
    """
    place = here.room(name or room)
    if history is not None:
        found = here.hub().get(api_path("rooms", place, "messages", history), {"history": "true"})
        here.out.answer(found, draw_history)
        return
    page = here.hub().get(api_path("rooms", place, "messages"), query_of(filters))
    again = command_again(place, filters)
    if filters["reverse"]:
        page["items"].reverse()
        here.out.answer(page, lambda data, paint: draw_reversed(data, again, paint))
        return
    here.out.answer(page, lambda data, paint: draw_page(data, again, paint))


def query_of(filters: dict[str, object]) -> dict[str, str | int | list[str] | None]:
    """The flags as the hub's query; the zone is told only where days can be meant."""
    if filters["everything"] and filters["thread"]:
        raise usage("--all and --thread can't both be meant", "mycelium room messages --thread <id>")
    query: dict[str, str | int | list[str] | None] = {
        "limit": int(str(filters["limit"])),
        "all": "true" if filters["everything"] else None,
        "q": _text(filters["search"]),
        "tz": zone() if any(needs_zone(filters[name]) for name in ("before", "since")) else None,
    }
    sent = {name: _text(filters[name]) for name in ("before", "since", "sender", "kind", "status", "thread")}
    if sent["sender"]:
        sent["sender"] = sent["sender"].removeprefix("@").lower()
    return {**query, **sent}


def needs_zone(moment: object) -> bool:
    """Whether a time means something else in another zone: a day by name, or a clock without a zone."""
    typed = str(moment or "").strip().lower()
    return typed in {"today", "yesterday"} or bool(re.fullmatch(r"\d{4}-\d\d-\d\d([t ][\d:.]+)?", typed))


def _text(value: object) -> str | None:
    return str(value) if value else None


def command_again(place: str, filters: dict[str, object]) -> str:
    """The same command, for the page before this one."""
    words = [f"mycelium room messages {shell_word(place)} --limit {filters['limit']}"]
    for name in ("since", "sender", "kind", "status", "thread", "search"):
        if filters[name]:
            words.append(f"--{name} {shell_word(filters[name])}")
    words += [flag for name, flag in (("everything", "--all"), ("reverse", "--reverse")) if filters[name]]
    return " ".join(words)


def draw_page(page: Document, again: str, paint: Paint) -> Iterator[str]:
    """A page of messages, and how to read the one before."""
    for message in page["items"]:
        yield from message_lines(message, paint)
    if not page["items"]:
        yield "no messages" if not page.get("older_before") else "no messages in this stretch"
    if page.get("older_before"):
        yield paint.dim(f"older: {again} --before {clean_line(page['older_before'])}")


def draw_reversed(page: Document, again: str, paint: Paint) -> Iterator[str]:
    """The same for who reads on downwards: the way to the older ones comes first."""
    *lines, last = draw_page(page, again, paint)
    if page.get("older_before"):
        yield last
        yield from lines
    else:
        yield from [*lines, last]


def draw_history(message: Document, paint: Paint) -> Iterator[str]:
    """Every text that a message has had, the first one first."""
    versions = message.get("history") or [message]
    yield f"{paint.bold(sender(message))} · {short(message['id'])}"
    for number, version in enumerate(versions):
        when = version.get("edited_at") or version.get("created_at") or version.get("at") or ""
        yield paint.dim(f"{'edited' if number else 'posted'} {clean_line(when)}")
        yield from text_lines(version["content"])
