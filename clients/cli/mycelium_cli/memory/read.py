"""`memory get` and `memory history`: one memory, as it is or as it was."""

import sys
import time
from collections.abc import Iterator

import click

from mycelium_cli.api import ANSWER_TIMEOUT_S, Hub, Query
from mycelium_cli.command import Whole, command, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.memory.keys import checked, path_of
from mycelium_cli.memory.links import matter
from mycelium_cli.output import Paint, age, as_json, at, clean, clean_line, shell_word, table
from mycelium_cli.periods import zone
from mycelium_cli.problems import unreached
from mycelium_cli.room.messages import needs_zone
from mycelium_cli.transport import Cut, Unreached
from mycelium_cli.wording import Document


@command(
    "get",
    example="mycelium memory get decisions/storage\nmycelium memory get decisions/storage --version 2\n"
    "mycelium memory get decisions/storage --at 2d --json\nmycelium memory get decisions/db --expand",
)
@room_option
@click.option("--version", metavar="N", type=Whole(1), help="As it was at this version.")
@click.option("--at", "moment", metavar="TIME", help="As it was then: a timestamp, an age like 2d, today, yesterday.")
@click.option("--raw", is_flag=True, help="As it is stored: the text of its file, fields and all.")
@click.option("--expand", is_flag=True, help="With the texts that it embeds, as they are now, in place of ![[KEY]].")
@click.argument("memory", metavar="KEY")
def get(
    here: Here, *, room: str | None, version: int | None, moment: str | None, raw: bool, expand: bool, memory: str
) -> None:
    """Read a memory, as it is or as it was.

    Its text alone goes to stdout; who wrote it, and which version it is, to stderr, as what could not be expanded.
    """
    if version is not None and moment is not None:
        raise usage("--version and --at can't both be meant", "mycelium memory history KEY")
    if expand and (raw or version is not None or moment is not None):
        raise usage("--expand goes alone: it shows what there is now", "mycelium memory get KEY --expand")
    tz = zone() if needs_zone(moment) else None
    query: Query = {"version": version, "at": moment, "tz": tz, "expand": "true" if expand else None}
    path = path_of(here.room(room), checked(memory))
    if raw:
        text = file_of(here.hub(), path, {**query, "view": "raw"})
        here.out.answer({"key": checked(memory), "raw": text}, lambda data, _paint: [data["raw"].removesuffix("\n")])
        return
    found = here.hub().get(path, query)
    if here.json:
        here.out.data(found)
        return
    here.out.note(heading(found, time.time()))
    for link in found.get("unexpanded", []):
        here.out.note(f"left as it is written: {embed(link)}")
    here.out.lines(text_of(found))
    sys.stdout.flush()


def embed(link: Document) -> str:
    """An embed that was not expanded, and why."""
    key = f"myc://rooms/{link['room']}/{link['written']}" if link["room"] else link["written"]
    section = f"#{link['section']}" if link["section"] else ""
    return f"![[{key}{section}]]: {matter(link['state'])}"


def file_of(hub: Hub, path: str, query: Query) -> str:
    """The text of a memory's file, to the letter."""
    try:
        line, response = hub.open_stream(path, query, {}, ANSWER_TIMEOUT_S)
    except (Unreached, Cut) as error:
        raise unreached(hub.url, str(error)) from None
    try:
        return str(response.read().decode("utf-8"))
    finally:
        line.close()


def heading(memory: Document, now_s: float) -> str:
    """Which memory, which version, by whom."""
    parts = [
        memory["key"],
        f"version {memory['version']}",
        f"{at(memory['updated_by'])}, {age(memory['updated_at'], now_s)}",
    ]
    if memory["tags"]:
        parts.append(", ".join(memory["tags"]))
    parts += [f"{name}={value}" for name, value in memory["meta"].items()]
    return " · ".join(clean_line(part) for part in parts)


def text_of(memory: Document) -> list[str]:
    """The text, or the value as JSON."""
    value = memory["value"]
    return [clean(value).removesuffix("\n")] if isinstance(value, str) else [as_json(value)]


@command(
    "history", example="mycelium memory history decisions/storage\nmycelium memory get decisions/storage --version 2"
)
@room_option
@click.option("--limit", type=Whole(1, 1000), default=100, show_default=True, help="How many.")
@click.option("--before", metavar="N", type=Whole(1), help="Only versions before this one.")
@click.argument("memory", metavar="KEY")
def history(here: Here, *, room: str | None, limit: int, before: int | None, memory: str) -> None:
    """The versions of a memory.

    The newest first; those of one that was removed, too.
    """
    query: Query = {"view": "versions", "limit": limit, "cursor": before}
    page = here.hub().get(path_of(here.room(room), checked(memory)), query)
    here.out.answer(page, lambda data, paint: draw_history(data, time.time(), paint))


def draw_history(page: Document, now_s: float, paint: Paint) -> Iterator[str]:
    """Versions as a table."""
    rows = [
        [str(row["version"]), at(row["updated_by"]), age(row["updated_at"], now_s), _said(row)] for row in page["items"]
    ]
    yield from table(["VERSION", "BY", "WHEN", "TEXT"], rows, paint)
    if page["next"]:
        yield paint.dim(f"older: mycelium memory history {shell_word(page['key'])} --before {clean_line(page['next'])}")


def _said(version: Document) -> str:
    remarks = ["removed"] if version["removed"] else []
    remarks += [f"was {version['moved_from']}"] if version["moved_from"] else []
    remarks += (
        [{"file": "edited as a file", "import": "imported"}[version["origin"]]] if version["origin"] != "call" else []
    )
    remarks += ["met another write"] if version["conflicted"] else []
    said = [clean_line(version["summary"])] if version["summary"] else []
    return " ".join([*said, f"({', '.join(map(clean_line, remarks))})"] if remarks else said)
