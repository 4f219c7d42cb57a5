"""`board send` and `board messages`: what is said about one memory, in the thread that it has."""

import time

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import Whole, command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.room.messages import MOST, command_again, draw_page, draw_reversed, query_of
from mycelium_cli.room.send import one_text, text_of
from mycelium_cli.wording import sent


@command(
    "send",
    example='mycelium board send context/api-shape "@sec this predates the v2 routes, still true?"\n'
    'mycelium board send 1a2b3c4d "done"',
    writes=True,
)
@room_option
@handle_option
@click.option("--reply-to", metavar="ID", help="The message that this one answers.")
@click.option("--allow-unknown", is_flag=True, help="Post even if it mentions a handle that nobody has.")
@click.argument("thread", metavar="KEY|THREAD")
@click.argument("text", nargs=-1, metavar="TEXT|-")
def send(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    reply_to: str | None,
    allow_unknown: bool,
    thread: str,
    text: tuple[str, ...],
) -> None:
    """Post in the thread of a task or memory.

    By its key, or by the id of any thread. The room's channel does not show the text; mentions wake as
    anywhere.
    """
    place = here.room(room)
    here.handle(handle)
    typed = text_of(one_text(text, 'mycelium board send KEY "all of it in quotes"'))
    body = {"content": typed, "thread": thread, "reply_to": reply_to, "allow_unknown": allow_unknown}
    known = {name: value for name, value in body.items() if value not in (None, False)}
    message = here.hub(handle).post(api_path("rooms", place, "messages"), known)
    here.out.answer(message, lambda data, paint: sent(data, time.time(), paint))


@command(
    "messages",
    example="mycelium board messages context/api-shape\nmycelium board messages context/api-shape --limit 5 --reverse",
)
@room_option
@click.option("--limit", type=Whole(1, MOST), default=50, show_default=True, help="How many.")
@click.option("--before", metavar="TIME", help="Only older ones, written as for `room messages`.")
@click.option("--since", metavar="TIME", help="Only newer ones.")
@click.option("--reverse", is_flag=True, help="Oldest first, as they were said.")
@click.argument("thread", metavar="KEY|THREAD")
def messages(here: Here, *, room: str | None, thread: str, **filters: object) -> None:
    """Read the thread of a task or memory, newest first.

    By its key, or by the id of any thread. Pages go on as those of `room messages` do.
    """
    place = here.room(room)
    wanted: dict[str, object] = dict.fromkeys(("everything", "search", "sender", "kind", "status"))
    wanted |= {"thread": thread, **filters}
    page = here.hub().get(api_path("rooms", place, "messages"), query_of(wanted))
    again = command_again(place, wanted)
    if filters["reverse"]:
        page["items"].reverse()
        here.out.answer(page, lambda data, paint: draw_reversed(data, again, paint))
        return
    here.out.answer(page, lambda data, paint: draw_page(data, again, paint))
