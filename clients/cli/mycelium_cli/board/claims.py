"""`board claim`, `renew`, `release`: who holds a task, and for how long."""

from collections.abc import Callable

import click

from mycelium_cli.board import tokens
from mycelium_cli.board.naming import task_path
from mycelium_cli.board.zones import reader_clock
from mycelium_cli.command import Whole, command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import Failure, unnumbered, usage
from mycelium_cli.output import Paint, at, clean_line, shell_word, short
from mycelium_cli.periods import duration_s
from mycelium_cli.wording import Document

_NAMED = 3  # keys in one line
_LONGEST_S = 7 * 24 * 3600
TOKEN = Whole(1, tokens.MOST)


def ttl_s(typed: str | None) -> int | None:
    """Seconds from `--ttl`, which is minutes when no unit is given."""
    if typed is None:
        return None
    seconds = duration_s(typed, "--ttl", "m")
    if not 1 <= seconds <= _LONGEST_S:
        raise usage(f"--ttl is a second at least and 7 days at most, not {typed.strip()}")
    return round(seconds)


@command(
    "claim",
    example="mycelium board claim work/auth-spike\nmycelium board claim work/auth-spike --to @sec --ttl 60",
    writes=True,
)
@room_option
@handle_option
@click.option("--to", metavar="HANDLE", help="Who is to hold it; default: you.")
@click.option("--ttl", metavar="MINUTES", help="For how long: minutes, or 90s, 30m, 2h. Default: 30.")
@click.option("--force", is_flag=True, help="End another's claim by it; claim what waits, too.")
@click.argument("task", metavar="TASK")
def claim(
    here: Here, *, room: str | None, handle: str | None, to: str | None, ttl: str | None, force: bool, task: str
) -> None:
    """Take a task.

    By its key, with or without its prefix, or the short id of its thread. The claim ends unless it is renewed;
    claiming again as its holder shows it again.
    """
    place = here.room(room)
    acting = here.handle(handle)
    body = {"to": to, "ttl_s": ttl_s(ttl), "force": force or None}
    hub = here.hub(handle)
    folder = tokens.folder(here.hub_url, place, acting)
    known = {name: value for name, value in body.items() if value is not None}
    before = {(one.task, one.token) for one in tokens.kept(folder)}
    try:
        told = hub.post(task_path(place, task, "claim"), known)
    except Failure as refused:
        keep_refusal(folder, task, refused)
        raise unnumbered(refused) from None
    if told["token"]:
        tokens.keep(folder, told["task"], told["thread"], told["token"])
    else:  # it is another's now, and what proved the claim before is worth nothing
        tokens.forget(tokens.find(folder, told["task"]))
    here.out.answer(told, lambda data, paint: _draw(data, paint, here.out.note))
    lasting_s = body["ttl_s"]
    if lasting_s and ((told["task"], told["token"]) in before or told["ttl_s"] != lasting_s):
        here.out.note(
            f"{clean_line(told['task'])} was held by {at(told['holder'])} already, and --ttl moves no end: "
            f"use mycelium board renew {shell_word(told['task'])} --ttl {shell_word(ttl)}"
        )


def keep_refusal(folder: str, typed: str, refused: Failure) -> None:
    """Where the task stood when its claim was refused: the next `await --lease` of it looks from there on."""
    sequence = refused.problem.get("sequence")
    if isinstance(sequence, int):
        task, thread = (str(refused.problem.get(name) or "") for name in ("task", "thread"))
        tokens.keep_refusal(folder, task or typed.strip(), thread, sequence)


def _draw(claim: Document, paint: Paint, note: Callable[[str], None]) -> list[str]:
    """Who holds what, until when."""
    until = reader_clock(note)
    line = f"{paint.good('✓')} {clean_line(claim['task'])} — held by {at(claim['holder'])} until "
    line += f"{until(claim['expires_at'])} · thread {short(claim['thread'])}"
    taken, waits_for = claim.get("taken_from"), [clean_line(key) for key in claim.get("waits_for") or []]
    lines = [line, *([f"  taken from {at(taken)}"] if taken else [])]
    if waits_for:
        more = f" and {len(waits_for) - _NAMED} more" if len(waits_for) > _NAMED else ""
        lines.append(f"  it waits for {', '.join(waits_for[:_NAMED])}{more}")
    return lines


@command("renew", example="mycelium board renew work/auth-spike", writes=True)
@room_option
@handle_option
@click.option("--ttl", metavar="MINUTES", help="For how long from now on; default: as long as it was taken for.")
@click.option("--token", type=TOKEN, metavar="N", help="Of the claim; default: the one kept here.")
@click.argument("task", metavar="TASK")
def renew(here: Here, *, room: str | None, handle: str | None, ttl: str | None, token: int | None, task: str) -> None:
    """Let a claim of yours last longer."""
    place = here.room(room)
    kept = tokens.find(tokens.folder(here.hub_url, place, here.handle(handle)), task)
    body = {"token": token or (kept.token if kept else None), "ttl_s": ttl_s(ttl)}
    known = {name: value for name, value in body.items() if value is not None}
    told = here.hub(handle).post(task_path(place, task, "renew"), known)
    here.out.answer(told, lambda data, paint: _draw(data, paint, here.out.note))


@command(
    "release",
    example='mycelium board release work/auth-spike --note "handing over"',
    writes=True,
)
@room_option
@handle_option
@click.option("--note", metavar="TEXT", help="What its next holder should know.")
@click.option("--token", type=TOKEN, metavar="N", help="Of the claim; default: the one kept here.")
@click.argument("task", metavar="TASK")
def release(
    here: Here, *, room: str | None, handle: str | None, note: str | None, token: int | None, task: str
) -> None:
    """Give a task back.

    Whom it is for stays as it is.
    """
    place = here.room(room)
    kept = tokens.find(tokens.folder(here.hub_url, place, here.handle(handle)), task)
    body = {"token": token or (kept.token if kept else None), "note": note}
    known = {name: value for name, value in body.items() if value is not None}
    told = here.hub(handle).post(task_path(place, task, "release"), known)
    tokens.forget(kept)
    here.out.answer(
        {"task": told["task"], "thread": told["thread"], "released": True},
        lambda data, paint: [f"{paint.good('✓')} released {clean_line(data['task'])}"],
    )
