"""`memory ls` and the views of the usual groups: what a room knows, by key."""

import time
from collections.abc import Iterator

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import Command, Whole, command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.memory.keys import prefix_of
from mycelium_cli.output import Paint, age, at, clean_line, shell_word
from mycelium_cli.periods import zone
from mycelium_cli.room.messages import needs_zone
from mycelium_cli.wording import Document

MOST = 5000


@command(
    "ls",
    example="mycelium memory ls decisions/\nmycelium memory ls --tagged storage\nmycelium memory ls --at yesterday\n"
    "mycelium memory ls --problems",
)
@room_option
@click.option("--prefix", metavar="PREFIX", help="Only keys that begin with it; the argument is the same.")
@click.option("--tagged", "tag", metavar="TAG", help="Only those with this tag.")
@click.option("--at", "moment", metavar="TIME", help="As the room was then: a timestamp, an age like 2d, yesterday.")
@click.option("--limit", type=Whole(1, MOST), default=500, show_default=True, help="How many.")
@click.option("--problems", "wrong", is_flag=True, help="Files in the room's folder that are left alone, and why.")
@click.argument("beginning", required=False, metavar="[PREFIX]")
def ls(
    here: Here,
    *,
    room: str | None,
    prefix: str | None,
    tag: str | None,
    moment: str | None,
    limit: int,
    wrong: bool,
    beginning: str | None,
) -> None:
    """List memories, as they are or as they were.

    By key, each with the beginning of its text.
    """
    if wrong:
        if prefix or beginning or tag or moment:
            raise usage("--problems lists all that there are", "mycelium memory ls --problems")
        found = here.hub().get(api_path("rooms", here.room(room), "memory"), {"view": "problems"})
        here.out.answer(found, draw_problems)
        return
    if prefix and beginning and prefix != beginning:
        raise usage("two prefixes are given", f"mycelium memory ls {shell_word(beginning)}")
    if tag and moment:
        raise usage("--tagged and --at can't both be meant", f"mycelium memory ls --at {shell_word(moment)}")
    tz = zone() if needs_zone(moment) else None
    query = {"prefix": prefix_of(beginning or prefix or ""), "tag": tag, "at": moment, "tz": tz}
    show(here, room, query, limit)


def show(here: Here, room: str | None, query: dict[str, str | None], limit: int) -> None:
    """One list."""
    brief = None if here.json else "true"  # a program gets the values too
    page = here.hub().get(api_path("rooms", here.room(room), "memory"), {**query, "limit": limit, "brief": brief})
    here.out.answer(page, lambda data, paint: draw(data, time.time(), paint))


def draw(page: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """Memories, two lines each."""
    for row in page["items"]:
        written = f"version {row['version']} · {at(row['updated_by'])}, {age(row['updated_at'], now_s)}"
        tags = f" · {', '.join(row['tags'])}" if row["tags"] else ""
        yield f"{paint.bold(clean_line(row['key']))} · {paint.dim(clean_line(written + tags))}"
        if row["summary"]:
            yield f"  {clean_line(row['summary'])}"
    if not page["items"]:
        yield "nothing there"
    if page["next"]:
        yield paint.dim("there is more: a longer prefix, or --limit, shows it")


def draw_problems(page: Document, paint: Paint) -> Iterator[str]:
    """Files, two lines each."""
    for row in page["items"]:
        yield paint.bold(clean_line(row["path"] or "the room's folder"))
        yield f"  {clean_line(row['reason'])}"
    if not page["items"]:
        yield "nothing is wrong"


def _category(name: str, summary: str) -> Command:
    @command(name, example=f"mycelium memory {name}")
    @room_option
    @click.option("--limit", type=Whole(1, MOST), default=500, show_default=True, help="How many.")
    def shown(here: Here, *, room: str | None, limit: int) -> None:
        show(here, room, {"prefix": f"{name}/"}, limit)

    shown.help = f"{summary}\n\nEverything under {name}/, by key."
    return shown


decisions = _category("decisions", "Why things are the way they are.")
status = _category("status", "Where things stand.")
work = _category("work", "What has been built.")
context = _category("context", "Background and preferences.")
procedures = _category("procedures", "How to do things again.")
