"""`memory search` and `memory reindex`: finding what the room knows, by words and by meaning."""

import time
from collections.abc import Iterator

import click

from mycelium_cli.api import Query, api_path
from mycelium_cli.command import Whole, command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, age, at, clean, clean_line
from mycelium_cli.periods import zone
from mycelium_cli.room.messages import needs_zone
from mycelium_cli.room.send import one_text
from mycelium_cli.wording import Document

LINES = 12  # of a section that are shown


@command(
    "search",
    example='mycelium memory search "what storage decisions were made"\n'
    'mycelium memory search "what failed and why" --prefix failed/ --since 14d\n'
    "mycelium memory search '\"single writer\" stalled' --json",
)
@room_option
@click.option("--limit", type=Whole(1, 50), default=10, show_default=True, help="How many sections.")
@click.option("--prefix", metavar="PREFIX", help="Only under keys that begin with it.")
@click.option("--tagged", "tags", metavar="TAG", multiple=True, help="Only with this tag; repeated, with all of them.")
@click.option("--author", metavar="HANDLE", help="Only what this one wrote last.")
@click.option("--since", metavar="TIME", help="Only what was written since: a timestamp, an age like 2d, today.")
@click.option("--until", metavar="TIME", help="Only what was written before that.")
@click.argument("query", nargs=-1, required=True, metavar="QUERY")
def search(
    here: Here,
    *,
    room: str | None,
    limit: int,
    prefix: str | None,
    tags: tuple[str, ...],
    author: str | None,
    since: str | None,
    until: str | None,
    query: tuple[str, ...],
) -> None:
    """Find memories by what they mean, and by their words.

    The sections that match best, with their text. What stands in quotes within the query has to be there as it is.
    By which model it was searched goes to stderr.
    """
    asked: Query = {
        "q": _wanted(query),
        "prefix": prefix,
        "tag": list(tags) or None,
        "author": author,
        "since": since,
        "until": until,
        "tz": zone() if needs_zone(since) or needs_zone(until) else None,
        "limit": limit,
    }
    found = here.hub().get(api_path("rooms", here.room(room), "search"), asked)
    here.out.answer(found, lambda data, paint: draw(data, time.time(), paint))
    if not here.json:
        here.out.note(remark(found["meaning"]))


def _wanted(typed: tuple[str, ...]) -> str:
    text = one_text(typed, 'mycelium memory search "all of it in quotes"') or ""
    if not text.strip():
        raise usage("nothing to look for: the query is empty", "mycelium memory ls")
    return text


def draw(found: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """Sections, each with its text."""
    for row in found["items"]:
        place = f"{row['key']}#{row['section']}" if row["section"] else row["key"]
        said = f"version {row['version']} · {at(row['updated_by'])}, {age(row['updated_at'], now_s)}"
        tags = f" · {', '.join(row['tags'])}" if row["tags"] else ""
        yield f"{paint.bold(clean_line(place))} · {paint.dim(clean_line(said + tags))}"
        lines = [line for line in clean(row["text"]).splitlines() if line.strip()]
        yield from (f"  {line}" for line in lines[:LINES])
        if row["cut"] or len(lines) > LINES:
            yield paint.dim(f"  … mycelium memory get {clean_line(row['key'])}")
    if not found["items"]:
        yield "nothing found"


def remark(meaning: Document) -> str:
    """By which model it was searched, and what it does not know yet."""
    if meaning["why_not"]:
        return f"by words only: {clean_line(meaning['why_not'])}"
    waiting = meaning["waiting"]
    late = (
        f"; {waiting} {'memory waits' if waiting == 1 else 'memories wait'} to be found by meaning" if waiting else ""
    )
    return f"by words, and by meaning with {clean_line(meaning['model'])}{late}"


@command("reindex", example="mycelium memory reindex", writes=True)
@room_option
def reindex(here: Here, *, room: str | None) -> None:
    """Make the search index anew.

    It follows every change by itself, also of files, so this is seldom needed. Search goes on meanwhile.
    """
    answer = here.hub().write("POST", api_path("rooms", here.room(room), "search", "reindex"))
    here.out.answer(answer.data, lambda data, _paint: [was_renewed(data)])


def was_renewed(renewed: Document) -> str:
    """What there is to do."""
    if renewed["meaning"]["why_not"]:
        return f"nothing to make anew: {clean_line(renewed['meaning']['why_not'])}"
    memories = "1 memory" if renewed["documents"] == 1 else f"{renewed['documents']} memories"
    return f"indexing {memories} anew with {clean_line(renewed['meaning']['model'])}"
