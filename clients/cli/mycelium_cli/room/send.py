"""`room send` and `room amend`: posting, and correcting what one posted."""

import json
import sys
import time
from typing import Any

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.wording import sent

_LARGEST_TEXT = 8 * 1024 * 1024


def text_of(typed: str | None) -> str:
    """The text of a message: as typed, or from a pipe for `-` or nothing."""
    if typed not in (None, "-"):
        assert typed is not None
        return typed
    if typed is None and sys.stdin.isatty():
        raise usage("no text was given", 'put it in quotes, or pipe it in: echo "done" | mycelium room send -')
    content = sys.stdin.buffer.read(_LARGEST_TEXT + 1)
    if len(content) > _LARGEST_TEXT:
        raise usage(f"the text on stdin is larger than {_LARGEST_TEXT // 1024 // 1024} MB")
    try:
        return content.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise usage(f"the text on stdin is not UTF-8 (byte {error.start})") from None


def one_text(words: tuple[str, ...], example: str) -> str | None:
    """The one text argument. Several words are a missing quote, not a text to be guessed together."""
    if len(words) > 1:
        raise usage(f'the text is one argument, but {len(words)} came: "{words[0]}", "{words[1]}"…', example)
    return words[0] if words else None


def metadata_of(typed: str | None) -> dict[str, Any] | None:
    """The JSON object of `--metadata`."""
    if typed is None:
        return None
    try:
        found = json.loads(typed)
    except ValueError as error:
        raise usage(f"--metadata is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise usage('--metadata must be a JSON object, such as {"kind": "concern"}')
    return found


@command(
    "send",
    example='mycelium room send "@sec keychain, or WebCrypto?"\ngit log -1 | mycelium room send --room ci -',
    writes=True,
)
@room_option
@handle_option
@click.option("--thread", metavar="ID", help="Post in a thread (id or its last eight digits).")
@click.option("--reply-to", metavar="ID", help="The message that this one answers.")
@click.option("--allow-unknown", is_flag=True, help="Post even if it mentions a handle that nobody has.")
@click.option(
    "--type", "message_type", type=click.Choice(["message", "event"]), default="message",
    help="An event is something to be looked up later.",
)  # fmt: skip
@click.option("--metadata", metavar="JSON", help="Fields of an event: kind, status, payload, ttl_seconds.")
@click.argument("text", nargs=-1, metavar="TEXT|-")
def send(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    thread: str | None,
    reply_to: str | None,
    allow_unknown: bool,
    message_type: str,
    metadata: str | None,
    text: tuple[str, ...],
) -> None:
    """Post a message.

    Mention with @handle to wake somebody, @~handle to name without waking. The answer says for each
    mention what became of it.
    """
    place = here.room(room)
    here.handle(handle)
    body = {
        "content": text_of(one_text(text, 'mycelium room send "all of it in quotes"')),
        "message_type": message_type,
        "thread": thread,
        "reply_to": reply_to,
        "metadata": metadata_of(metadata),
        "allow_unknown": allow_unknown,
    }
    known = {name: value for name, value in body.items() if value not in (None, False)}
    message = here.hub(handle).post(api_path("rooms", place, "messages"), known)
    here.out.answer(message, lambda data, paint: sent(data, time.time(), paint))


@command("amend", example='mycelium room amend a1b2c3d4 "the cache TTL is 300s, not 30s"', writes=True)
@room_option
@handle_option
@click.argument("message")
@click.argument("text", nargs=-1, metavar="TEXT|-")
def amend(here: Here, *, room: str | None, handle: str | None, message: str, text: tuple[str, ...]) -> None:
    """Replace the text of a message of your own.

    Readers see the new text, marked as edited; the original is kept in the history.
    """
    place = here.room(room)
    here.handle(handle)
    body = {"content": text_of(one_text(text, 'mycelium room amend <id> "all of it in quotes"'))}
    answer = here.hub(handle).write("PATCH", api_path("rooms", place, "messages", message), body)
    here.out.answer(answer.data, lambda data, paint: sent(data, time.time(), paint, verb="amended"))
