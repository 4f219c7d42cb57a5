"""`--exec`: each message handed to a command, up to three times, and what came of it told to the hub.

The command gets the hub's answer as JSON on stdin and the context in its environment. Exit 0 is the only
success; a failure while the hub is away is no try, since the command may have failed for that. Its whole
process group ends when the loop is told to end.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from mycelium_cli.errors import TERMINATED
from mycelium_cli.output import note, shell_word, short
from mycelium_cli.turn.mailbox import Mailbox
from mycelium_cli.wording import Document, task_of

TRIES = 3
_PAUSES_S = (1.0, 5.0)
_END_WITHIN_S = 5.0
# What the command started ends a little after it; nobody tells when.
_LOOKS_AT_THE_REST, _LOOK_EVERY_S = 100, 0.01
# Linux refuses to start a program with one variable of 128 KiB; the whole text is on stdin.
_LONGEST_PROMPT_BYTES = 100_000


class Terminated(KeyboardInterrupt):
    """SIGTERM, told apart from Ctrl-C by its exit status."""

    exit_status = TERMINATED


def end_on_sigterm() -> None:
    """Let SIGTERM unwind like Ctrl-C does, so that a running command is ended too."""

    def unwind(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, unwind)


def environment(turn: Document, mailbox: Mailbox) -> dict[str, str]:
    """What the command finds in its environment, on top of what this process has."""
    message, hub = turn["message"], mailbox.hub
    handle = mailbox.address.handle or hub.caller.handle
    prompt = str(message["content"]).encode("utf-8", "replace")[:_LONGEST_PROMPT_BYTES]
    return {
        "MYCELIUM_ROOM": mailbox.address.room,
        "MYCELIUM_ACTIVE_ROOM": mailbox.address.room,
        "MYCELIUM_HANDLE": handle,
        "MYCELIUM_AGENT_HANDLE": handle,
        "MYCELIUM_API_URL": hub.url,
        # A `respond` in there must not count as this loop's next call, which would acknowledge the message.
        "MYCELIUM_SESSION": f"{hub.caller.session[:190]}.exec",
        "MYCELIUM_SENDER": str(message["sender_handle"]),
        "MYCELIUM_SENDER_NAME": str(message.get("sender_name") or ""),
        "MYCELIUM_PROMPT": prompt.decode("utf-8", "ignore"),
        "MYCELIUM_REPLY_TO": str(message["id"]),
        "MYCELIUM_THREAD": str(message.get("thread") or ""),
        "MYCELIUM_TASK": task_of(message),
    }


def run_command(command: str, turn: Document, variables: dict[str, str]) -> int:
    """Run the command with the message on stdin; its exit status, 128 and the signal when one killed it."""
    process = None
    try:
        with _signals_after():
            process = subprocess.Popen(  # noqa: S602 - the user's own command line, meant for a shell
                command, shell=True, stdin=subprocess.PIPE, env={**os.environ, **variables}, process_group=0
            )
        process.communicate(json.dumps(turn).encode() + b"\n")
    except KeyboardInterrupt:
        if process is not None:
            _end(process)
        raise
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


@contextmanager
def _signals_after() -> Iterator[None]:
    """Hold back what would end this process until the block is done: a command just started must be known."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda received, _frame: came.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for got in came:
        signal.raise_signal(got)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command and all it started; a second signal ends the patience."""
    with suppress(ProcessLookupError):  # it says that nobody is left
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(_END_WITHIN_S)
            for _ in range(_LOOKS_AT_THE_REST):
                os.killpg(process.pid, 0)
                time.sleep(_LOOK_EVERY_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            pass
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with suppress(OSError):  # what it never read
            process.stdin.close()


def hand_over(command: str, turn: Document, mailbox: Mailbox, *, pause: Callable[[float], None]) -> bool:
    """Give a message to the command until it takes it; after three failures it is parked. True when taken."""
    named = short(turn["message"]["id"])
    failures = 0
    while failures < TRIES:
        status = run_command(command, turn, environment(turn, mailbox))
        if status == 0:
            mailbox.report(turn["ack"], "acknowledged")
            return True
        failed = f"--exec: exit {status} on message {named}"
        if mailbox.wait_for_hub(f"{failed}, and the hub can't be reached: waiting for it, this try doesn't count"):
            continue
        failures += 1
        note(f"{failed}, try {failures} of {TRIES}")
        if failures < TRIES:
            pause(_PAUSES_S[failures - 1])
    mailbox.report(turn["ack"], "parked")
    again = f"mycelium room messages --room {shell_word(mailbox.address.room)} --history {named}"
    note(f"--exec: parked message {named} after {TRIES} tries; it isn't handed out again. To read it: {again}")
    return False
