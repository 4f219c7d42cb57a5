"""The shape of every command: lazy groups, an example in each `--help`, the options all share, near misses.

A command is a function `(here, **parameters)`. Groups are tables of names to `module:attribute` with a
one-line summary, so `--help` imports no command and a command imports only itself.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import click

from mycelium_cli import blanks, completing, mistyped
from mycelium_cli.context import Here
from mycelium_cli.errors import EXIT_STATUSES, Failure, nearest, usage

_Kind = TypeVar("_Kind", bound=click.Command)

_WIDTH = 100
_BEYOND = 10**12  # a bound that nobody comes near says nothing
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH}


# Verbs that other programs have for the same: in each group they stand for the first of these that it has.
_ALSO = {
    **dict.fromkeys(("ls", "list"), ("ls", "show")),
    **dict.fromkeys(("delete", "rm", "remove"), ("delete", "rm", "unset", "remove")),
}
# Words that are no command's, and the commands that who types them may mean.
_MEANT = {
    **dict.fromkeys(("find", "grep", "query", "ask"), ("search",)),
    **dict.fromkeys(("read", "cat", "open", "view", "info"), ("get", "messages", "show")),
    **dict.fromkeys(("write", "put", "save", "update", "edit"), ("set", "amend")),
    **dict.fromkeys(("versions", "log", "revisions"), ("history", "logs", "messages")),
    **dict.fromkeys(("post", "say", "message"), ("send",)),
    **dict.fromkeys(("reply", "answer"), ("respond",)),
    **dict.fromkeys(("new", "make", "add", "init"), ("create",)),
    **dict.fromkeys(("follow", "tail", "stream"), ("watch", "subscribe")),
    **dict.fromkeys(("catch-up", "brief", "briefing"), ("catchup",)),
    **dict.fromkeys(("start", "serve"), ("up",)),
    **dict.fromkeys(("stop", "kill"), ("down",)),
    "history": ("messages",),
    "wait": ("await",),
    "join": ("use",),
}
# What `--help` says at its end: under a heading a text, or names and what they mean.
Notes = dict[str, str | dict[str, str]]


class Whole(click.IntRange):
    """A whole number within bounds, which its help tells in words."""

    name = "n"

    def _describe_range(self) -> str:
        bounded = self.max is not None and self.max < _BEYOND
        return f"{self.min} to {self.max}" if bounded else f"{self.min} or more"


class Entry(NamedTuple):
    """A row of a group's table."""

    place: str
    summary: str
    section: str = "Commands"

    @property
    def is_group(self) -> bool:
        """Whether it has commands of its own."""
        return self.place.endswith(":group")


def loaded(place: str, kind: type[_Kind]) -> _Kind:
    """The command at `module:attribute`, imported now."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"mycelium_cli.{module}"), attribute)
    assert isinstance(found, kind)
    return found


def _nested(ctx: click.Context) -> dict[str, Any]:
    """`--json` and `--verbose` wherever they stand: `mycelium --verbose status` is `status --verbose`."""
    found: dict[str, Any] = {}
    step: click.Context | None = ctx
    while step is not None:
        for name in ("json", "verbose"):
            found[name] = found.get(name) or step.params.get(name)
        step = step.parent
    return found


def _shared_options() -> list[click.Parameter]:
    return [
        click.Option(["--json"], is_flag=True, help="Print JSON."),
        click.Option(["--verbose"], is_flag=True, help="Tell on stderr what is asked of the hub."),
    ]


class Command(click.Command):
    """A leaf. `example` and `notes` are shown by `--help`; `writes` adds `--key`, to repeat a write that was cut."""

    def __init__(
        self, *args: Any, example: str, writes: bool = False, notes: Notes | None = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("context_settings", _CONTEXT)
        super().__init__(*args, **kwargs)
        self.example = example
        self.notes = notes or {}
        if writes:
            self.params.append(
                click.Option(["--key", "write_key"], metavar="K", help="Repeat a write under its own key.")
            )
        self.params += _shared_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click's parsing, with the nearest right option in place of its message."""
        ctx.allow_extra_args = True  # click would only say that there are some
        with mistyped.nearest_option(ctx):
            extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            raise mistyped.too_many(ctx, extra)
        return extra

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function with where it is."""
        blanks.refuse(ctx)
        shared = _nested(ctx)
        params = {name: value for name, value in ctx.params.items() if name not in {"json", "verbose", "write_key"}}
        here = Here(json_wanted=shared["json"], verbose=shared["verbose"], key=ctx.params.get("write_key"))
        assert self.callback is not None
        with mistyped.help_as_hint(ctx):
            return self.callback(here, **params)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click calls it so
        """Notes under their headings, then the example as it is typed."""
        for heading, told in self.notes.items():
            with formatter.section(heading):
                if isinstance(told, str):
                    formatter.write_text(told)
                else:
                    formatter.write_dl(list(told.items()))
        with formatter.section("Example"):
            for line in self.example.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")


class Group(click.Group):
    """A table of commands, each loaded when it is called. `replaced` answers for those that something stands in for."""

    def __init__(
        self,
        name: str,
        summary: str,
        entries: dict[str, Entry],
        example: str,
        replaced: Callable[[list[str]], Failure | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, help=summary, context_settings=_CONTEXT, **kwargs)
        self.entries = entries
        self.replaced = replaced
        self.example = example
        self.words = {"help": "--help"}
        self.params += _shared_options()

    def invoke(self, ctx: click.Context) -> Any:
        """The command in it, or what the group itself does."""
        with mistyped.help_as_hint(ctx):
            return super().invoke(ctx)

    def known_as(self, typed: str) -> str:
        """The command that a word stands for: itself, or the one that other programs call so."""
        if typed in self.entries:
            return typed
        return next((name for name in _ALSO.get(typed, ()) if name in self.entries), typed)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it so
        """Names in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        entry = self.entries.get(self.known_as(cmd_name))
        return loaded(entry.place, click.Command) if entry else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click's parsing, with the nearest right option in place of its message; `help x` is `x --help`."""
        if args and args[0] in self.words:
            args = [*args[1:], self.words[args[0]]]
        with mistyped.nearest_option(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or refuse with the nearest."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            instead = self.replaced(args) if self.replaced else None
            if instead is not None:
                raise instead
            meant = self._nearest_path(ctx.command_path, name)
            cause = f'"{ctx.command_path} {name}" is no command' + (f"; did you mean {meant}?" if meant else "")
            raise usage(cause, f"{ctx.command_path} --help")
        return (self.known_as(name) if command else None), command, args[1:]

    def _nearest_path(self, prefix: str, name: str) -> str:
        """The command that was probably meant: in a group below, here, or written nearly so."""
        groups = {one: loaded(row.place, Group).entries for one, row in self.entries.items() if row.is_group}
        below = [f"{prefix} {group} {leaf}" for group, leaves in groups.items() for leaf in leaves]
        meant = _MEANT.get(name, ())
        here = [f"{prefix} {word}" for word in meant if word in self.entries and word not in groups]
        exact, there = (
            [path for word in words for path in below if path.endswith(f" {word}")]
            for words in ((name, *_ALSO.get(name, ())), meant)
        )
        near = nearest(name, list(self.entries))
        found = [*exact, *here] if name not in self.entries else []
        return next(iter([*found, *([f"{prefix} {near}"] if near else []), *there]), "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table, section by section, from the summaries alone."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section, []).append((name, entry.summary))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows, col_max=14)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, and for the whole program the exit statuses."""
        with formatter.section("Example"):
            for line in self.example.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        if ctx.parent is None:
            with formatter.section("Exit status"):
                formatter.write_dl([(str(status), words) for status, words in EXIT_STATUSES.items()])


def command(
    name: str, *, example: str, writes: bool = False, notes: Notes | None = None
) -> Callable[[Callable[..., None]], Command]:
    """Make a function a command; its docstring is the help."""

    def made(function: Callable[..., None]) -> Command:
        return click.command(name, cls=Command, example=example, writes=writes, notes=notes)(function)

    return made


def room_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--room`, for commands that act in a room."""
    text = "The room; default: the one in use."
    return click.option("--room", "-r", metavar="ROOM", help=text, shell_complete=completing.rooms)(function)


def handle_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--handle`, for commands that act as somebody."""
    text = "Who acts; default: MYCELIUM_AGENT_HANDLE, then iam."
    return click.option("--handle", metavar="HANDLE", help=text, shell_complete=completing.anybody)(function)
