"""`room event` and `room resolve`: things to be looked up later, and closing them."""

import json
import time

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, clean_line, short
from mycelium_cli.periods import duration_s
from mycelium_cli.room.send import one_text, text_of
from mycelium_cli.wording import Document, sent

STATUSES = ("open", "in_progress", "resolved")


def provenance_of(typed: str) -> dict[str, str]:
    """`pr:org/repo#48` as the hub takes it."""
    kind, colon, ref = typed.partition(":")
    if not colon or not kind.strip() or not ref.strip():
        raise usage(f'--provenance is type:ref, such as pr:org/repo#48, not "{typed}"')
    return {"type": kind.strip(), "ref": ref.strip()}


def payload_of(typed: str) -> object:
    """The JSON of `--payload`."""
    try:
        return json.loads(typed)
    except ValueError as error:
        raise usage(f"--payload is not JSON: {error}") from None


def lifetime_s(typed: str) -> int:
    """The seconds of `--ttl`."""
    seconds = round(duration_s(typed, "--ttl"))
    if seconds < 1:
        raise usage("--ttl is at least a second")
    return seconds


@command(
    "event",
    example='mycelium room event source_event "New PR: fix recordings (#48)" --ttl 14d --provenance pr:org/repo#48\n'
    'mycelium room event concern "the backup was never restored"',
    writes=True,
)
@room_option
@handle_option
@click.option("--ttl", metavar="TIME", help="When it expires: 90s, 30m, 2h, 14d. Default: never.")
@click.option("--status", type=click.Choice(STATUSES), help="Default for an action or a concern: open.")
@click.option("--payload", metavar="JSON", help="The details.")
@click.option("--provenance", metavar="TYPE:REF", multiple=True, help="Where it came from; may be repeated.")
@click.option("--thread", metavar="ID", help="Post in a thread (id or its last eight digits).")
@click.option("--allow-unknown", is_flag=True, help="Post even if it mentions a handle that nobody has.")
@click.argument("kind")
@click.argument("text", nargs=-1, metavar="TEXT|-")
def event(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    ttl: str | None,
    status: str | None,
    payload: str | None,
    provenance: tuple[str, ...],
    thread: str | None,
    allow_unknown: bool,
    kind: str,
    text: tuple[str, ...],
) -> None:
    """Post an event, to be looked up later.

    KIND is source_event (something changed outside), action (something to do), concern (a risk), or one of
    your own. Look them up with: mycelium room messages --kind KIND --status open
    """
    place = here.room(room)
    here.handle(handle)
    metadata = {
        "kind": kind,
        "ttl_seconds": lifetime_s(ttl) if ttl else None,
        "status": status,
        "payload": payload_of(payload) if payload else None,
        "provenance": [provenance_of(one) for one in provenance] or None,
    }
    body = {
        "content": text_of(one_text(text, f'mycelium room event {clean_line(kind)} "all of it in quotes"')),
        "message_type": "event",
        "metadata": {name: value for name, value in metadata.items() if value is not None},
        **({"thread": thread} if thread else {}),
        **({"allow_unknown": True} if allow_unknown else {}),
    }
    message = here.hub(handle).post(api_path("rooms", place, "messages"), body)
    here.out.answer(message, lambda data, paint: sent(data, time.time(), paint, verb="posted"))


@command("resolve", example="mycelium room resolve a1b2c3d4\nmycelium room resolve a1b2c3d4 --status in_progress",
         writes=True)  # fmt: skip
@room_option
@handle_option
@click.option("--status", type=click.Choice(STATUSES), default="resolved", show_default=True, help="What it is now.")
@click.argument("message")
def resolve(here: Here, *, room: str | None, handle: str | None, status: str, message: str) -> None:
    """Close an event, or say how far it is."""
    place = here.room(room)
    answer = here.hub(handle).write("PATCH", api_path("rooms", place, "messages", message), {"status": status})
    here.out.answer(answer.data, draw_status)


def draw_status(event: Document, paint: Paint) -> list[str]:
    """An event and its status."""
    return [f"{short(event['id'])} is {paint.good(clean_line(event.get('status') or 'changed'))}"]
