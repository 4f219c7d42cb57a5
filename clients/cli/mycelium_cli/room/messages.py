"""`room messages`: the room's history, newest first, a page at a time."""

from collections.abc import Iterator

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command
from mycelium_cli.context import Here
from mycelium_cli.output import Paint, clean_line
from mycelium_cli.room.manage import shell_word
from mycelium_cli.wording import Document, message_lines

_MOST = 500


@command(
    "messages",
    example="mycelium room messages design-review --limit 50\nmycelium room messages --since 1d --before 2h",
)
@click.option("--room", metavar="ROOM", help="The room; the argument wins.")
@click.option("--limit", type=click.IntRange(1, _MOST), default=50, show_default=True, help="How many.")
@click.option("--before", metavar="TIME", help="Only older ones: a timestamp as printed, or an age like 2h.")
@click.option("--since", metavar="TIME", help="Only newer ones: a timestamp as printed, or an age like 1d.")
@click.option("--thread", metavar="ID", help="One thread instead of the channel.")
@click.argument("name", required=False, metavar="[ROOM]")
def messages(
    here: Here,
    *,
    room: str | None,
    limit: int,
    before: str | None,
    since: str | None,
    thread: str | None,
    name: str | None,
) -> None:
    """Read a room's messages, newest first.

    When there are older ones, the output ends with the --before value of the next page.
    """
    place = here.room(name or room)
    query = {"limit": limit, "before": before, "since": since, "thread": thread}
    page = here.hub().get(api_path("rooms", place, "messages"), query)
    again = f"mycelium room messages {shell_word(place)} --limit {limit}"
    again += f" --since {shell_word(since)}" if since else ""
    again += f" --thread {shell_word(thread)}" if thread else ""
    here.out.answer(page, lambda data, paint: draw_page(data, again, paint))


def draw_page(page: Document, again: str, paint: Paint) -> Iterator[str]:
    """A page of messages, and how to read the one before."""
    for message in page["items"]:
        yield from message_lines(message, paint)
    if not page["items"]:
        yield "no messages"
    if page.get("older_before"):
        yield paint.dim(f"older: {again} --before {clean_line(page['older_before'])}")
