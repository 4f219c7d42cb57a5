"""`board` itself, `board ready` and `board new`: what is to be done in a room."""

import time
from typing import Any

import click

from mycelium_cli.api import Hub, Query, api_path
from mycelium_cli.board import GROUP_HELP, TZ_HELP, VIEW_HELP, VIEWS, WATCH_HELP
from mycelium_cli.board.drawing import Look, draw
from mycelium_cli.board.screen import fitted, size
from mycelium_cli.board.zones import midnight, reader_zone
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import Failure, unnumbered, usage
from mycelium_cli.output import Paint, clean_line, short
from mycelium_cli.room.send import one_text
from mycelium_cli.wording import Document


def show(here: Here, params: dict[str, Any]) -> None:
    """The rows of a room's board, once or until Ctrl-C."""
    place, wanted, group = here.room(params["room"]), params["filter"], (params["group"] or "").strip()
    zone, hub = reader_zone(params["tz"], here.out.note), here.hub()
    if params["group"] is not None and not group:
        raise usage("--group is empty: name a field", "mycelium board --group status")

    def ask() -> Document:
        query = {"filter": wanted, "closed_since": midnight(zone, time.time()), "group": group or None}
        return whole(hub, api_path("rooms", place, "board"), query)

    def tell(page: Document) -> None:
        if here.json:
            here.out.data(page, one_line=params["watch"])
            return
        look = Look(wanted, params["view"], group, zone, time.time())
        if screen := size() if params["watch"] else None:
            paint = Paint(on=here.out.paint.on, columns=screen.columns)
            here.out.lines(fitted(draw(page, look, paint), screen, paint))
        else:
            here.out.lines(draw(page, look, here.out.paint))

    if params["watch"]:
        from mycelium_cli.board.watching import watch

        watch(here, place, ask, tell)
    else:
        tell(ask())


def whole(hub: Hub, path: str, query: Query) -> Document:
    """All pages of a board as one."""
    page: Document = hub.get(path, query)
    items, seen = page["items"], set()
    while page["next"] and page["next"] not in seen:
        seen.add(page["next"])
        page = hub.get(path, {**query, "cursor": page["next"]})
        items += page["items"]
    return {**page, "items": items, "next": None}


@command(
    "ready",
    example="mycelium board ready\nmycelium board ready --group assignee\nmycelium board ready --json",
)
@room_option
@click.option("--view", type=click.Choice(VIEWS), default=VIEWS[0], show_default=True, help=VIEW_HELP)
@click.option("--group", metavar="FIELD", help=GROUP_HELP)
@click.option("--watch", is_flag=True, help=WATCH_HELP)
@click.option("--tz", metavar="ZONE", help=TZ_HELP)
def ready(here: Here, **params: Any) -> None:
    """Show what somebody can begin with now.

    Nothing that is blocked, waits for another task or is held. The other rows say why they are not here:
    mycelium board --filter all.
    """
    show(here, {**params, "filter": "ready"})


@command(
    "new",
    example='mycelium board new "Ship passkey login"\n'
    'mycelium board new "Pick storage" --parent work/ship-passkey-login --assign @sec\n'
    'mycelium board new "Run the migration" --depends-on work/write-the-migration --priority high\n'
    'mycelium board new "How long do tokens live?" --kind decision --option 15m --option 60m',
    writes=True,
)
@room_option
@handle_option
@click.option("--assign", metavar="HANDLE", help="Whom it is for.")
@click.option("--parent", metavar="TASK", help="The task that it is a part of.")
@click.option("--depends-on", metavar="TASK", multiple=True, help="A task that it comes after; repeat it.")
@click.option("--priority", metavar="WORD", help="How urgent it is, such as urgent, high or low.")
@click.option("--kind", metavar="WORD", help="What sort of thing it is, such as decision; default: a task.")
@click.option("--option", "options", metavar="TEXT", multiple=True, help="An answer that a decision offers; repeat it.")
@click.option("--body", metavar="TEXT", help="More about it (markdown).")
@click.argument("title", nargs=-1, metavar="TITLE")
def new(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    title: tuple[str, ...],
    body: str | None,
    options: tuple[str, ...],
    depends_on: tuple[str, ...],
    **fields: str | None,
) -> None:
    """File a task.

    It becomes a document of the room's memory, with a thread of its own.
    """
    place = here.room(room)
    here.handle(handle)
    if not title:
        raise usage("TITLE is missing: what is to be done?", 'mycelium board new "what is to be done"')
    wanted = {
        "title": one_text(title, 'mycelium board new "all of it in quotes"'),
        "value": body,
        **fields,
        "options": options or None,
        "depends_on": depends_on or None,
    }
    known = {name: value for name, value in wanted.items() if value is not None}
    try:
        told = here.hub(handle).post(api_path("rooms", place, "tasks"), known)
    except Failure as refused:  # who asks or whom it is for: the line names the handle
        raise unnumbered(refused) from None
    here.out.answer(told, _draw_new)


def _draw_new(row: Document, paint: Paint) -> list[str]:
    thread = short(row["thread"])
    return [
        f"{paint.good('✓')} {clean_line(row['key'])} — {clean_line(row['title'])} · thread {thread}",
        f'  talk about it in there: mycelium board send {thread} "…"',
    ]
