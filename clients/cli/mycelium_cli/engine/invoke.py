"""`engine invoke`: mention an engine, and wait for what it says."""

import threading
import time
from collections.abc import Iterator

import click

from mycelium_cli import completing
from mycelium_cli.api import Hub, api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import NOTHING_CAME, Failure
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, shell_word
from mycelium_cli.periods import duration_s
from mycelium_cli.room.send import one_text, text_of
from mycelium_cli.wording import Document, message_lines, sent

_DEFAULT_TIMEOUT_S = 120.0
_LOOK_S = (0.2, 2.0)  # between looks: first, longest
_PAGE = 100


@command(
    "invoke",
    example='mycelium engine invoke greeter "say hello and name the model you are" -r sprint-plan',
    writes=True,
)
@room_option
@handle_option
@click.option("--thread", metavar="ID", help="Ask in a thread (id or its last eight digits).")
@click.option("--timeout", metavar="TIME", help="How long to wait: seconds, 90s, 5m. Default 120; 0 does not wait.")
@click.argument("engine", shell_complete=completing.members)
@click.argument("text", nargs=-1, metavar="TEXT|-")
def invoke(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    thread: str | None,
    timeout: str | None,
    engine: str,
    text: tuple[str, ...],
) -> None:
    """Ask an engine something, and wait for its answer.

    The same as mentioning it in the room, where everybody sees both. Exit status 1: it says that it can't
    answer. 6: nothing came in time; an answer may still come, in the room.
    """
    place, name = here.room(room), handle_of(engine)
    here.handle(handle)
    limit_s = duration_s(timeout, "--timeout") if timeout else _DEFAULT_TIMEOUT_S
    hub = here.hub(handle)
    hub.get(api_path("rooms", place, "engines", name))
    said = text_of(one_text(text, f'mycelium engine invoke {name} "all of it in quotes"'))
    body = {"content": f"@{name} {said}", **({"thread": thread} if thread else {})}
    asked = hub.post(api_path("rooms", place, "messages"), body)
    if limit_s <= 0:
        here.out.answer(asked, lambda data, paint: sent(data, time.time(), paint))
        return
    found = _answer(hub, place, name, asked, limit_s)
    if found is None:
        hint = f"mycelium room messages {shell_word(place)}"
        raise Failure(f"@{name} said nothing within {limit_s:g} s", exit_status=NOTHING_CAME, hint=hint)
    here.out.answer(found, draw_answer)
    if (found.get("metadata") or {}).get("engine", {}).get("error"):
        raise click.exceptions.Exit(1)


def _answer(hub: Hub, place: str, name: str, asked: Document, limit_s: float) -> Document | None:
    """The first reply of the engine to the message; None when none came in time."""
    query = {"sender": name, "limit": _PAGE, "thread": asked["thread"] or None, "since": asked["created_at"]}
    until, pause_s = time.monotonic() + limit_s, _LOOK_S[0]
    waiting = threading.Event()
    while True:
        page = hub.get(api_path("rooms", place, "messages"), query)
        for message in page["items"]:
            if message["reply_to"] == asked["id"]:
                found: Document = message
                return found
        left_s = until - time.monotonic()
        if left_s <= 0:
            return None
        waiting.wait(min(pause_s, left_s))
        pause_s = min(pause_s * 1.5, _LOOK_S[1])


def draw_answer(message: Document, paint: Paint) -> Iterator[str]:
    """Who says what."""
    yield from message_lines(message, paint)
