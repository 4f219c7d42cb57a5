"""`respond`: a member's answer to the message that its session was given."""

import os
import time

import click

from mycelium_cli.api import api_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.room.send import one_text, text_of
from mycelium_cli.session import IN_HELP
from mycelium_cli.wording import sent


@command(
    "respond",
    example='mycelium respond --handle sec "keychain, it is there already"\n./answer.sh | mycelium respond -',
    writes=True,
    notes={"Session": IN_HELP},
)
@room_option
@handle_option
@click.option("--task", metavar="TASK", help="Answer in this task's thread.")
@click.option("--reply-to", metavar="ID", help="The message that this answers; default: the one you were given.")
@click.option("--allow-unknown", is_flag=True, help="Post even if it mentions a handle that nobody has.")
@click.argument("text", nargs=-1, metavar="TEXT|-")
def respond(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    task: str | None,
    reply_to: str | None,
    allow_unknown: bool,
    text: tuple[str, ...],
) -> None:
    """Answer the message that you were given.

    It goes where that message was, unless flags say otherwise. The handle must be registered: an agent of
    the room or a user.
    """
    place = here.room(room)
    if not task and not reply_to:
        # Inside `await --exec` the session is another one than the loop's, so the loop says what to answer.
        task, reply_to = os.environ.get("MYCELIUM_THREAD"), os.environ.get("MYCELIUM_REPLY_TO")
    body = {
        "handle": here.handle(handle),
        "content": text_of(one_text(text, 'mycelium respond "all of it in quotes"')),
        "task": task,
        "reply_to": reply_to,
        "allow_unknown": allow_unknown,
    }
    known = {name: value for name, value in body.items() if value or name == "content"}
    message = here.hub(handle).post(api_path("rooms", place, "respond"), known)
    here.out.answer(message, lambda data, paint: sent(data, time.time(), paint))
    if not task and not message.get("reply_to"):
        here.out.note("answers nothing that this session was given: posted to the channel")
