"""`await`: wait for a message that mentions one, once or in a loop, printed or handed to a command."""

import sys
import time
from collections.abc import Iterator

import click

from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import NOTHING_CAME, OK, REFUSED, Failure
from mycelium_cli.output import Paint, at, clean_line, shell_word
from mycelium_cli.periods import duration_s
from mycelium_cli.session import IN_HELP
from mycelium_cli.turn.handed import EXEC_NOTES
from mycelium_cli.turn.mailbox import Address, Mailbox
from mycelium_cli.wording import Document, message_lines

_DEFAULT_TIMEOUT_S = 300.0
_REPORT_WITHIN_S = 10.0


@command(
    "await",
    example="mycelium await --handle sec --timeout 120 --json\nmycelium await --handle sec --loop --exec ./turn.sh",
    notes={**EXEC_NOTES, "Session": IN_HELP},
)
@room_option
@handle_option
@click.option("--task", metavar="TASK", help="Only what is said in this task's thread.")
@click.option("--seat", metavar="SEAT", help="Wait as a seat of the handle, as in @sec#night.")
@click.option("--timeout", metavar="TIME", help="How long: seconds, 90s, 30m, 2h. Default 300; with --loop, no end.")
@click.option("--loop", is_flag=True, help="Go on after each message, through restarts of the hub.")
@click.option("--exec", "program", metavar="CMD", help="Hand each message to this command as JSON on stdin.")
def wait(
    here: Here,
    *,
    room: str | None,
    handle: str | None,
    task: str | None,
    seat: str | None,
    timeout: str | None,
    loop: bool,
    program: str | None,
) -> None:
    """Wait until a message mentions you.

    It comes with the messages that led up to it. Exit status 6: nothing came in time. With --exec, exit 0
    of the command acknowledges the message; after three failures it is parked, and the loop goes on. A
    failure while the hub can't be reached is none of the three.
    """
    if handle and "#" in handle:
        handle, _, seat = handle.partition("#")
    limit_s = duration_s(timeout, "--timeout") if timeout else (None if loop else _DEFAULT_TIMEOUT_S)
    address = Address(here.room(room), here.handle(handle), task, seat.removeprefix("#") if seat else None)
    mailbox = Mailbox(here.hub(handle), address, on_lost=here.out.note)
    if sys.stderr.isatty():
        until = "" if limit_s is None else f", for {limit_s:g} s at most"
        here.out.note(f"{at(address.handle) or 'you'} waits in {address.room}{until}; Ctrl-C ends it")
    status = _take_turns(here, mailbox, limit_s, program, loop=loop)
    if status != OK:
        raise click.exceptions.Exit(status)


def _take_turns(here: Here, mailbox: Mailbox, limit_s: float | None, program: str | None, *, loop: bool) -> int:
    if loop or program:
        from mycelium_cli.turn.handover import end_on_sigterm

        end_on_sigterm()
    while True:
        turn = mailbox.next(limit_s)
        if turn is None:
            who = at(mailbox.address.handle) or "you"
            here.out.note(f"nothing came for {who} in {mailbox.address.room} within {limit_s:g} s")
            return NOTHING_CAME
        status = _one_turn(here, mailbox, turn, program, loop=loop)
        if not loop:
            return status


def _one_turn(here: Here, mailbox: Mailbox, turn: Document, program: str | None, *, loop: bool) -> int:
    if program:
        from mycelium_cli.turn.handover import hand_over

        return OK if hand_over(program, turn, mailbox, pause=time.sleep) else REFUSED
    if here.json:
        here.out.data(turn, one_line=loop)
    else:
        here.out.lines(draw_turn(turn, mailbox.address, here.out.paint))
    try:
        mailbox.report(turn["ack"], "received", patience_s=_REPORT_WITHIN_S)
    except Failure as failure:
        here.out.note(f"warning: the hub doesn't know that you have this message, so it will come again "
                      f"({failure.cause})")  # fmt: skip
    return OK


def draw_turn(turn: Document, address: Address, paint: Paint) -> Iterator[str]:
    """The message, what led up to it, and how to answer."""
    earlier = turn.get("earlier") or []
    if earlier:
        yield paint.dim(f"before that ({len(earlier)}):")
        for message in earlier:
            yield from (f"  {line}".rstrip() for line in message_lines(message, paint))
        yield ""
    if turn.get("redelivered"):
        yield paint.warn("again: it was given out before, and nobody said that it was done")
    yield from message_lines(turn["message"], paint)
    yield ""
    key = (turn["message"].get("metadata") or {}).get("key")
    if turn.get("reason") == "changed" and key:
        yield paint.dim(f"read it: mycelium memory get {shell_word(key)} --room {shell_word(address.room)}")
        return
    who = f" --handle {clean_line(address.handle)}" if address.handle else ""
    yield paint.dim(f'answer: mycelium respond --room {shell_word(address.room)}{who} "…"')
