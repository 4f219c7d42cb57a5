"""The program: the table of commands, and the one place where a failure becomes a line and a status.

Imports are inside functions on purpose: Ctrl-C while Python still loads must end as quietly as later.
"""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from mycelium_cli.command import Group
    from mycelium_cli.errors import Failure

_TALK, _PEOPLE, _HUB, _SETUP = "Talk", "People and agents", "The hub on this machine", "This machine"

# name: (module:attribute, summary, section)
COMMANDS = {
    "room": ("room:group", "Rooms: create, list, read, post, watch.", _TALK),
    "board": ("board:group", "Tasks: what is to be done, who has it, what is said about it.", _TALK),
    "memory": ("memory:group", "Memory: write, read, list what the room knows.", _TALK),
    "catchup": ("memory.catchup:catchup", "Catch up: what a room has come to, and what waits for you.", _TALK),
    "synthesize": ("room.synthesize:synthesize", "Ask for a synthesis; no engine writes one yet.", _TALK),
    "await": ("turn.wait:wait", "Wait until a message mentions you.", _TALK),
    "respond": ("turn.respond:respond", "Answer the message that you were given.", _TALK),
    "presence": ("turn.presence:presence", "Tell the room what you are doing.", _TALK),
    "receipts": ("room.receipts:receipts", "Who got a message, and what became of it.", _TALK),
    "messages": ("room.receipts:group", "Messages: who got one.", _TALK),
    "agent": ("people.agent:group", "Agents of a room: register, list, remove.", _PEOPLE),
    "engine": ("engine.manage:group", "Engines: helpers that run on the hub.", _PEOPLE),
    "user": ("people.user:group", "People of the hub.", _PEOPLE),
    "join": ("people.join:join", "Make this folder a member's, by a code.", _PEOPLE),
    "leave": ("people.join:leave", "Take the membership out of this folder.", _PEOPLE),
    "login": ("people.login:login", "Sign in, with a browser or by a code.", _PEOPLE),
    "logout": ("people.login:logout", "Sign out of the hub.", _PEOPLE),
    "iam": ("people.iam:iam", "Say who you are on this machine.", _PEOPLE),
    "whoami": ("people.iam:whoami", "Who you act as, where, and why.", _PEOPLE),
    "up": ("machine.hub:up", "Start the hub.", _HUB),
    "down": ("machine.hub:down", "Stop the hub.", _HUB),
    "status": ("machine.hub:status", "How the hub is, here or elsewhere.", _HUB),
    "logs": ("machine.hub:logs", "Read the hub's logs.", _HUB),
    "init": ("machine.init:init", "Set up this machine, for a hub of its own or for one elsewhere.", _SETUP),
    "doctor": ("doctor.command:doctor", "Find what is wrong, and say what to do.", _SETUP),
    "config": ("machine.settings:group", "Settings: get, set, show.", _SETUP),
    "completion": ("machine.completion:completion", "Completion for bash, zsh or fish.", _SETUP),
}

_EXAMPLE = """\
mycelium room create design-review
mycelium room use design-review
mycelium iam avery --name "Avery Quinn"
mycelium room send "@sec keychain, or WebCrypto?\""""


def root() -> "Group":
    """The command line as click sees it."""
    import click

    from mycelium_cli import __version__
    from mycelium_cli.command import Entry, Group
    from mycelium_cli.errors import Failure

    def replaced(words: list[str]) -> Failure | None:
        from mycelium_cli import replaced

        return replaced.command(words)

    def print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            click.echo(f"mycelium {__version__}")
            ctx.exit()

    entries = {name: Entry(*row) for name, row in COMMANDS.items()}
    summary = "Rooms where people and coding agents talk, work and remember."
    group = Group("mycelium", summary, entries, _EXAMPLE, replaced)
    version = click.Option(
        ["-V", "--version"], is_flag=True, is_eager=True, expose_value=False, help="Print the version.",
        callback=print_version,
    )  # fmt: skip
    group.params.insert(0, version)
    group.words["version"] = "--version"
    return group


def execute(args: list[str]) -> int:
    """Run one command line; everything that can go wrong ends here."""
    import click

    from mycelium_cli.errors import INTERNAL, OK, USAGE, Failure
    from mycelium_cli.mistyped import explained
    from mycelium_cli.next_steps import after_error

    try:
        with root().make_context("mycelium", list(args)) as ctx:
            ctx.command.invoke(ctx)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        sys.stdout.write(f"{help_wanted.format_message()}\n")
        return OK if args == [] else USAGE
    except click.UsageError as error:
        return _report(explained(error), args)
    except Failure as failure:
        return _report(failure, args)
    except (BrokenPipeError, KeyboardInterrupt, EOFError):
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _report(Failure(f"{place}{error.strerror or error}", hint=after_error(error.errno)), args)
    except Exception as error:
        broken = next((arg for arg in args if not _is_text(arg)), None)
        if isinstance(error, UnicodeEncodeError) and broken is not None:
            return _report(_not_text(broken), args)
        if "--verbose" in args:
            import traceback

            traceback.print_exc()
        cause = f"a bug in this program: {type(error).__name__}: {' '.join(str(error).split())}"
        return _report(Failure(cause, exit_status=INTERNAL, hint="the same with --verbose, and report it"), args)
    return OK


def _not_text(arg: str) -> "Failure":
    from mycelium_cli.errors import usage

    return usage(f"{arg[:40]!r} is not UTF-8", "the same, typed in a terminal of UTF-8")


def _is_text(arg: str) -> bool:
    """Whether an argument is whole characters. Bytes of another encoding may be a file's name, and nothing else."""
    try:
        arg.encode()
    except UnicodeEncodeError:
        return False
    return True


def _report(failure: "Failure", args: list[str]) -> int:
    """Print a failure on stderr: a line for people, a document for who asked for JSON."""
    from mycelium_cli.output import as_json, note

    wants_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    if failure.cause:
        note(as_json(failure.document(), indent=None, ascii_only=True) if wants_json else failure.line())
    return failure.exit_status


def _complete(instruction: str) -> int:
    """Answer the shell that asks what could be typed next."""
    from click.shell_completion import shell_complete

    return shell_complete(root(), {}, "mycelium", "_MYCELIUM_COMPLETE", instruction)


def _leave(status: int) -> NoReturn:
    """End without taking the interpreter apart piece by piece, which costs a tenth of a command's time."""
    import atexit

    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for it
    os._exit(status)


def _end_on_ctrl_c() -> None:
    """From here on Ctrl-C just ends the program: in the middle of its leaving there is nobody to catch it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _silence_stdout() -> None:
    """Nobody reads any more: what is still buffered must not fail when Python closes its files."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _prepare_streams() -> None:
    """Texts that the terminal's encoding can't hold are shown escaped; a closed one says or takes nothing."""
    if sys.stdin is None:  # else the first connection would get its number, and be read as what was typed
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the end
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the end
        else:
            stream.reconfigure(errors="backslashreplace")


def run() -> NoReturn:
    """The console script."""
    try:
        _prepare_streams()
        instruction = os.environ.get("_MYCELIUM_COMPLETE")
        _leave(_complete(instruction) if instruction else execute(sys.argv[1:]))
    except KeyboardInterrupt as stop:
        _end_on_ctrl_c()
        status = getattr(stop, "exit_status", 130)  # SIGTERM has one of its own
    except BrokenPipeError:
        _end_on_ctrl_c()
        _silence_stdout()
        status = 141
    except OSError:
        _silence_stdout()  # a full disk: `execute` has said so, and what is buffered can't be written now either
        status = 1
    sys.exit(status)


if __name__ == "__main__":
    run()
