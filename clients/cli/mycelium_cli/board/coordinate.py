"""`board coordinate`: an engine is brought into a task's thread."""

import time

import click

from mycelium_cli import completing
from mycelium_cli.board.naming import task_path
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.handles import handle_of
from mycelium_cli.output import Paint, shell_word, short
from mycelium_cli.room.send import one_text, text_of
from mycelium_cli.wording import Document, sent


@command(
    "coordinate",
    example='mycelium board coordinate work/pick-token-storage greeter "agree on token storage"',
    writes=True,
)
@room_option
@handle_option
@click.argument("task", metavar="TASK")
@click.argument("engine", shell_complete=completing.members)
@click.argument("text", nargs=-1, metavar="TEXT|-")
def coordinate(
    here: Here, *, room: str | None, handle: str | None, task: str, engine: str, text: tuple[str, ...]
) -> None:
    """Have an engine settle something in a task's thread.

    The same as mentioning it there: it answers in the thread. It changes neither the task nor who holds it.
    """
    place, name = here.room(room), handle_of(engine)
    here.handle(handle)
    said = text_of(one_text(text, f'mycelium board coordinate TASK {name} "all of it in quotes"'))
    message = here.hub(handle).post(task_path(place, task, "coordinate"), {"engine": name, "text": said})
    here.out.answer(message, lambda data, paint: _draw(data, place, paint))


def _draw(message: Document, place: str, paint: Paint) -> list[str]:
    """What became of the mention, and where the answer will be."""
    thread = short(message["thread"])
    follow = f"read along: mycelium board messages {thread} --room {shell_word(place)}"
    return [*sent(message, time.time(), paint), f"  {paint.dim(follow)}"]
