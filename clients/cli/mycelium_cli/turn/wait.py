"""`await`: wait for a message that mentions one, once or in a loop, printed or handed to a command."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import click

from mycelium_cli.board import tokens
from mycelium_cli.command import command, handle_option, room_option
from mycelium_cli.context import Here
from mycelium_cli.errors import NOTHING_CAME, OK, REFUSED, Failure, usage
from mycelium_cli.output import Paint, at, clean_line, shell_word
from mycelium_cli.periods import duration_s
from mycelium_cli.session import IN_HELP
from mycelium_cli.turn.handed import EXEC_NOTES
from mycelium_cli.turn.mailbox import Address, Mailbox
from mycelium_cli.wording import Document, is_reservation, message_lines, notice_of, task_of

_DEFAULT_TIMEOUT_S = 300.0
_REPORT_WITHIN_S = 10.0
_FREE = {"filed", "released", "expired", "unblocked"}  # after which a task can be taken
_MOST_PATTERNS = 5  # of a reservation that is over, to be typed again


@command(
    "await",
    example="mycelium await --handle sec --timeout 120 --json\nmycelium await --handle sec --loop --exec ./turn.sh",
    notes={**EXEC_NOTES, "Session": IN_HELP},
)
@room_option
@handle_option
@click.option("--task", metavar="TASK", help="Only what is said in this task's thread.")
@click.option("--lease", metavar="TASK", help="Wait until this task changes hands, and for nothing else.")
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
    lease: str | None,
    seat: str | None,
    timeout: str | None,
    loop: bool,
    program: str | None,
) -> None:
    """Wait until a message mentions you.

    Or until a task changes hands (--lease): it is claimed, handed back or resolved, its claim's time is over,
    or what it waited for is done. A message comes with those that led up to it. Exit status 6: nothing came
    in time. With --exec, exit 0 of the command acknowledges the message; after three failures it is parked,
    and the loop goes on. A failure while the hub can't be reached is none of the three. While a loop runs, what
    its handle claimed and reserved on this machine is renewed.
    """
    if handle and "#" in handle:
        handle, _, seat = handle.partition("#")
    limit_s = duration_s(timeout, "--timeout") if timeout else (None if loop else _DEFAULT_TIMEOUT_S)
    if lease and (task or seat):
        raise usage("--lease names a task and goes with neither --task nor --seat", "mycelium board")
    address = Address(here.room(room), here.handle(handle), task, seat.removeprefix("#") if seat else None, lease)
    folder = tokens.folder(here.hub_url, address.room, address.handle)
    refused = tokens.refused(folder, lease) if lease else None
    since, after = (refused.sequence, refused.after) if refused else (None, 0)
    mailbox = Mailbox(here.hub(handle), address, on_lost=here.out.note, since=since, after=after)
    if sys.stderr.isatty():
        until = "" if limit_s is None else f", for {limit_s:g} s at most"
        here.out.note(f"{at(address.handle) or 'you'} waits in {address.room}{until}; Ctrl-C ends it")
    with _renewing(here, address, handle) if loop else nullcontext():
        for status, turn in _take_turns(here, mailbox, limit_s, program, loop=loop):
            if lease and status != NOTHING_CAME:
                refused = _keep_place(folder, mailbox, turn, refused)
    if status != OK:
        raise click.exceptions.Exit(status)


def _keep_place(folder: str, mailbox: Mailbox, turn: Document, before: tokens.Refused | None) -> tokens.Refused | None:
    """Let the next wait for the task go on behind what was told; not when the task is over: that is said then."""
    told = turn["message"].get("metadata") or {}
    task = task_of(turn["message"])
    if not task or told.get("kind") == "resolved":
        tokens.forget_refusal(before)
        return tokens.refused(folder, task)
    return tokens.keep_told(folder, task, str(told.get("thread") or ""), *mailbox.place, before)


@contextmanager
def _renewing(here: Here, address: Address, handle: str | None) -> Iterator[None]:
    """Keep what the loop's handle claimed and reserved for as long as it runs."""
    from mycelium_cli.turn.renewing import Renewer

    renewer = Renewer(here.hub(handle), address.room, address.handle, say=here.out.note)
    renewer.start()
    try:
        yield
    finally:
        renewer.stop()


def _take_turns(
    here: Here, mailbox: Mailbox, limit_s: float | None, program: str | None, *, loop: bool
) -> Iterator[tuple[int, Document]]:
    """Wait and act, once or for ever: what came of each turn, as an exit status, and the turn."""
    if loop or program:
        from mycelium_cli.turn.handover import end_on_sigterm

        end_on_sigterm()
    while True:
        turn = mailbox.next(limit_s)
        if turn is None:
            address = mailbox.address
            who = (
                f"{clean_line(address.lease)} did not change hands"
                if address.lease
                else (f"nothing came for {at(address.handle) or 'you'}")
            )
            here.out.note(f"{who} in {address.room} within {limit_s:g} s")
            yield NOTHING_CAME, {}
            return
        yield _one_turn(here, mailbox, turn, program, loop=loop), turn
        if not loop:
            return


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
    yield paint.dim(_next_command(turn, address))


def _next_command(turn: Document, address: Address) -> str:
    """What to do about it, as it is typed."""
    message, room = turn["message"], f"--room {shell_word(address.room)}"
    who = f" --handle {clean_line(address.handle)}" if address.handle else ""
    told = message.get("metadata") or {}
    if turn.get("reason") == "changed" and told.get("key"):
        return f"read it: mycelium memory get {shell_word(told['key'])} {room}"
    notice = notice_of(message)
    if notice:
        return _next_of_notice(notice, address, room, who)
    return f'answer: mycelium respond {room}{who} "…"'


def _next_of_notice(notice: Document, address: Address, room: str, who: str) -> str:
    """What to do about a change of the board: nothing that would be refused."""
    kind, holder, task = notice.get("kind"), notice.get("holder"), notice.get("task")
    if is_reservation(notice):
        patterns = notice.get("patterns") or []
        if kind != "expired" or not 0 < len(patterns) <= _MOST_PATTERNS:
            return f"see what is reserved: mycelium board reserve {room}"
        reserved = " ".join(map(shell_word, patterns)) + (f" --task {shell_word(task)}" if task else "")
        return f"reserve it again: mycelium board reserve {reserved} {room}{who}"
    look = f"look at it: mycelium board messages {shell_word(task)} {room}"
    if kind not in _FREE:
        return look
    if holder:
        return f"{'you hold it' if holder == address.handle else f'still held by {at(holder)}'}; {look}"
    return f"take it: mycelium board claim {shell_word(task)} {room}{who}"
