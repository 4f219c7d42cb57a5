"""`mycelium board …`: the table of its commands; without one of them, the board itself."""

from typing import Any

import click

from mycelium_cli import blanks, completing
from mycelium_cli.command import Entry, Group
from mycelium_cli.errors import usage

FILTERS = ("needs-you", "in-flight", "resolved", "all", "ready")
VIEWS = ("list", "table")
VIEW_HELP = "How they are shown."
GROUP_HELP = "Under the values of a field: status, kind, owner, assignee, priority, or one of your own."
WATCH_HELP = "Keep it open: drawn anew at each change. Ctrl-C ends it."
TZ_HELP = "The zone that today begins in, such as Europe/Paris; default: $TZ, else this machine's."


def _hand_down(ctx: click.Context, name: str) -> None:
    """What is said before a command is the command's: `board -r x claim y` is `board claim -r x y`."""
    command = group.get_command(ctx, name)
    known = {param.name for param in command.params} if command else set()
    for param in group.params:
        said = param.name or ""
        if ctx.get_parameter_source(said) is not click.core.ParameterSource.COMMANDLINE or said in {"json", "verbose"}:
            continue
        if said not in known:
            raise usage(f"{param.opts[0]} is for the board itself, not for {name}", f"mycelium board {name} --help")
        ctx.default_map = {name: {**(ctx.default_map or {}).get(name, {}), said: ctx.params[said]}}


@click.pass_context
def _show(ctx: click.Context, /, **params: Any) -> None:
    blanks.refuse(ctx)
    if ctx.invoked_subcommand is not None:
        _hand_down(ctx, ctx.invoked_subcommand)
    else:
        from mycelium_cli.board.rows import show
        from mycelium_cli.context import Here

        parent = ctx.parent.params if ctx.parent else {}
        here = Here(
            json_wanted=params["json"] or bool(parent.get("json")),
            verbose=params["verbose"] or bool(parent.get("verbose")),
        )
        show(here, params)


group = Group(
    "board",
    "Tasks: what is to be done, who has it, and what is said about it.",
    {
        "new": Entry("board.rows:new", "File a task."),
        "ready": Entry("board.rows:ready", "Show what somebody can begin with now."),
        "claim": Entry("board.claims:claim", "Take a task."),
        "renew": Entry("board.claims:renew", "Let a claim of yours last longer."),
        "release": Entry("board.claims:release", "Give a task back."),
        "resolve": Entry("board.moves:resolve", "Finish a task."),
        "block": Entry("board.moves:block", "Say what a task is waiting for."),
        "answer": Entry("board.moves:answer", "Make a decision; that resolves it."),
        "promote": Entry("board.moves:promote", "Say that a task goes on somewhere that lasts longer."),
        "dismiss": Entry("board.moves:dismiss", "Close a task without doing it."),
        "reserve": Entry("board.reserve:reserve", "Reserve paths, or anything else that has a name."),
        "log": Entry("board.log:log", "See what happened day by day, and who did it."),
        "send": Entry("board.thread:send", "Post in the thread of a task or memory.", "Talk"),
        "messages": Entry("board.thread:messages", "Read the thread of a task or memory, newest first.", "Talk"),
        "coordinate": Entry(
            "board.coordinate:coordinate", "Have an engine settle something in a task's thread.", "Talk"
        ),
    },
    example="mycelium board\n"
    'mycelium board new "Ship passkey login" --assign @sec\n'
    "mycelium board claim work/ship-passkey-login\n"
    "mycelium board --filter all --view table\n"
    "mycelium board --group owner --watch",
    invoke_without_command=True,
    callback=_show,
)
group.params[:0] = [
    click.Option(
        ["--room", "-r"], metavar="ROOM", help="The room; default: the one in use.", shell_complete=completing.rooms
    ),
    click.Option(["--filter"], type=click.Choice(FILTERS), default=FILTERS[0], show_default=True, help="Which rows."),
    click.Option(["--view"], type=click.Choice(VIEWS), default=VIEWS[0], show_default=True, help=VIEW_HELP),
    click.Option(["--group"], metavar="FIELD", help=GROUP_HELP),
    click.Option(["--watch"], is_flag=True, help=WATCH_HELP),
    click.Option(["--tz"], metavar="ZONE", help=TZ_HELP),
]
