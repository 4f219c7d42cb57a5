"""`board resolve`, `block`, `promote`, `dismiss`, `answer`: what becomes of a task."""

import click

from mycelium_cli.board import tokens
from mycelium_cli.board.naming import task_path
from mycelium_cli.command import Command, command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import usage
from mycelium_cli.output import Paint, at, clean_line
from mycelium_cli.wording import Document


def _moved(here: Here, room: str | None, handle: str | None, task: str, verb: str, **body: object) -> Document:
    """Do it, under the claim that is kept here."""
    place = here.room(room)
    kept = tokens.find(tokens.folder(here.hub_url, place, here.handle(handle)), task)
    known = {name: value for name, value in {"token": kept.token if kept else None, **body}.items() if value}
    told: Document = here.hub(handle).post(task_path(place, task, verb), known)
    if verb != "block":
        tokens.forget(kept)
    return told


def _draw(words: str, told: Document, paint: Paint, by: str, held: str = "was held by") -> list[str]:
    """What was done, and who holds it or held it, should that be somebody else than who did it."""
    line = f"{paint.good('✓')} {words} {clean_line(told['task'])}"
    return [line + (f" · {held} {at(told['held_by'])}" if told["held_by"] not in {None, by} else "")]


def _closing(verb: str, words: str, summary: str, example: str) -> Command:
    @command(verb, example=example, writes=True)
    @room_option
    @handle_option
    @click.option("--note", metavar="TEXT", help="What others should know.")
    @click.argument("task", metavar="TASK")
    def closing(here: Here, *, room: str | None, handle: str | None, note: str | None, task: str) -> None:
        told = _moved(here, room, handle, task, verb, note=note)
        here.out.answer(told, lambda data, paint: _draw(words, data, paint, here.handle(handle)))

    closing.help = f"{summary}\n\nIts claim ends with it."
    return closing


resolve = _closing("resolve", "resolved", "Finish a task.", "mycelium board resolve work/auth-spike")
promote = _closing(
    "promote",
    "promoted",
    "Say that a task goes on somewhere that lasts longer.",
    'mycelium board promote work/auth-spike --note "coffee-shop/web#504"',
)
dismiss = _closing("dismiss", "dismissed", "Close a task without doing it.", "mycelium board dismiss work/auth-spike")


@command(
    "block",
    example='mycelium board block work/auth-spike --on "#502"\nmycelium board block work/auth-spike --clear',
    writes=True,
)
@room_option
@handle_option
@click.option("--on", metavar="TEXT", help="What it is waiting for.")
@click.option("--clear", is_flag=True, help="It waits no longer.")
@click.option("--note", metavar="TEXT", help="What others should know.")
@click.argument("task", metavar="TASK")
def block(
    here: Here, *, room: str | None, handle: str | None, on: str | None, clear: bool, note: str | None, task: str
) -> None:
    """Say what a task is waiting for."""
    if bool(on) == clear:
        raise usage('say what it waits for (--on "#502"), or that it no longer does (--clear)')
    told = _moved(here, room, handle, task, "block", on=on, clear=clear, note=note)
    words, by = "unblocked" if clear else "blocked", here.handle(handle)
    here.out.answer(told, lambda data, paint: _draw(words, data, paint, by, "held by"))


@command("answer", example="mycelium board answer decisions/jwt-ttl 15m", writes=True)
@room_option
@handle_option
@click.option("--note", metavar="TEXT", help="Why.")
@click.argument("task", metavar="TASK")
@click.argument("answer", metavar="ANSWER")
def answer(here: Here, *, room: str | None, handle: str | None, note: str | None, task: str, answer: str) -> None:
    """Make a decision; that resolves it.

    Where the decision's document has options, the answer is one of them.
    """
    told = _moved(here, room, handle, task, "answer", answer=answer, note=note)
    here.out.answer(told, lambda data, paint: _draw("answered", data, paint, here.handle(handle)))
