"""`board` itself and `board new`: what is to be done in a room."""

import time
from collections.abc import Iterator

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, age, at, clean_line, short, table
from mycelium_cli.room.send import one_text
from mycelium_cli.wording import Document


def show(here: Here, room: str | None, wanted: str, view: str) -> None:
    """The rows of a room's board."""
    now_s = time.time()
    today = time.localtime(now_s)
    midnight = time.mktime((today.tm_year, today.tm_mon, today.tm_mday, 0, 0, 0, 0, 0, -1))
    query: dict[str, str | int | list[str] | None] = {"filter": wanted, "closed_since_ms": int(midnight * 1000)}
    page = here.hub().get(api_path("rooms", here.room(room), "board"), query)
    here.out.answer(page, lambda data, paint: draw(data, wanted, view, now_s, paint))


def draw(page: Document, wanted: str, view: str, now_s: float, paint: Paint) -> Iterator[str]:
    """The numbers of all filters, then the rows."""
    counts = f"{page['needs_you']} need you · {page['in_flight']} in flight · {page['resolved']} resolved today"
    yield f"{paint.bold(clean_line(page['room']))}   {counts}"
    if view == "table":
        heads = ["KEY", "TITLE", "STATUS", "KIND", "FOR", "HELD BY", "MOVED"]
        yield from table(heads, [_cells(row, now_s) for row in page["items"]], paint)
    else:
        for row in page["items"]:
            yield from _lines(row, now_s, paint)
    if not page["items"]:
        yield paint.dim("nothing here" if wanted == "all" else "nothing here; --filter all shows every row")


def _cells(row: Document, now_s: float) -> list[str]:
    held = at(row["holder"]) if row["holder"] else "-"
    seen = [row["key"], row["title"], row["status"], row["kind"], at(row["assignee"]), held]
    return [*(clean_line(cell or "-") for cell in seen), age(row["updated_at"], now_s)]


def _lines(row: Document, now_s: float, paint: Paint) -> Iterator[str]:
    yield f"  {short(row['thread'])}  {paint.bold(clean_line(row['title']))}"
    parts = [clean_line(row["key"]), clean_line(row["status"])]
    parts += [f"waiting on {clean_line(row['blocked_by'])}"] if row["blocked_by"] else []
    parts += [f"for {at(row['assignee'])}"] if row["assignee"] else []
    parts += [f"held by {at(row['holder'])}" if row["holder"] else "unowned", age(row["updated_at"], now_s)]
    yield "            " + paint.dim(" · ".join(parts))
    options = row["meta"].get("options")
    if isinstance(options, list) and row["status"] not in ("resolved", "dismissed"):
        yield "            " + " ".join(f"[{clean_line(option)}]" for option in options)


@command(
    "new",
    example='mycelium board new "Ship passkey login"\n'
    'mycelium board new "Pick storage" --parent work/ship-passkey-login --assign @sec',
    writes=True,
)
@room_option
@handle_option
@click.option("--assign", metavar="HANDLE", help="Whom it is for.")
@click.option("--parent", metavar="TASK", help="The task that it is a part of.")
@click.option("--kind", metavar="WORD", help="What sort of thing it is, such as decision; default: a task.")
@click.option("--body", metavar="TEXT", help="More about it (markdown).")
@click.argument("title", nargs=-1, metavar="TITLE")
def new(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    title: tuple[str, ...],
    body: str | None,
    **fields: str | None,
) -> None:
    """File a task.

    It becomes a document of the room's memory, with a thread of its own.
    """
    place = here.room(room)
    here.handle(handle)
    if not title:
        raise usage("TITLE is missing: what is to be done?", 'mycelium board new "what is to be done"')
    wanted = {"title": one_text(title, 'mycelium board new "all of it in quotes"'), "value": body, **fields}
    known = {name: value for name, value in wanted.items() if value is not None}
    told = here.hub(handle).post(api_path("rooms", place, "tasks"), known)
    here.out.answer(told, _draw_new)


def _draw_new(row: Document, paint: Paint) -> list[str]:
    thread = short(row["thread"])
    return [
        f"{paint.good('✓')} {clean_line(row['key'])} — {clean_line(row['title'])} · thread {thread}",
        f'  talk about it in there: mycelium board send {thread} "…"',
    ]
