"""What click finds wrong in what was typed, as one line: what, where, and what to type instead."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from mycelium_cli.errors import USAGE, Failure, nearest, usage
from mycelium_cli.output import shell_word

_SHOWING = ("show", "get", "messages")  # commands that show the one thing that a list was asked for


@contextmanager
def help_as_hint(ctx: click.Context) -> Iterator[None]:
    """What was typed is wrong, and whoever found out had nothing to add: the help of the command says what is right."""
    try:
        yield
    except Failure as failure:
        if failure.exit_status == USAGE and not failure.hint:
            failure.hint = f"{ctx.command_path} --help"
        raise


@contextmanager
def nearest_option(ctx: click.Context) -> Iterator[None]:
    """Click parses what was typed: the nearest right option stands in place of its message."""
    try:
        yield
    except click.NoSuchOption as error:
        raise no_option(ctx, error.option_name) from None
    except click.BadOptionUsage as error:
        error.ctx = error.ctx or ctx  # without it, what to read next would be the whole program's help
        raise


def explained(error: click.UsageError) -> Failure:
    """Click's message about what was typed, as one line, with the nearest right value where there is a list."""
    path = error.ctx.command_path if error.ctx else "mycelium"
    if error.ctx and isinstance(error, click.MissingParameter):
        return _missing(error.ctx, error)
    cause = " ".join(error.format_message().split()).rstrip(".")
    param = error.param if isinstance(error, click.BadParameter) else None
    if param is not None and isinstance(param.type, click.IntRange):
        cause = _no_number(error.format_message(), param, param.type)
    if param is not None and isinstance(param.type, click.Choice):
        typed = cause.rpartition(": '")[2].partition("'")[0]
        meant = nearest(typed, [str(choice) for choice in param.type.choices])
        cause += f"; did you mean {meant}?" if meant else ""
    return usage(cause, f"{path} --help")


def no_option(ctx: click.Context, typed: str) -> Failure:
    """An option that there is not, with the nearest."""
    known = [name for param in ctx.command.get_params(ctx) for name in param.opts if name.startswith("-")]
    meant = nearest(typed, [name for name in known if name.startswith("--")])
    cause = f"{ctx.command_path} has no option {typed}"
    if meant:
        cause += f"; did you mean {meant}?"
    elif any(param.name == "text" for param in ctx.command.params):
        cause += "; put -- before a text that begins with a dash"
    return usage(cause, f"{ctx.command_path} --help")


def _missing(ctx: click.Context, error: click.MissingParameter) -> Failure:
    """What a command can't do without, and where it goes."""
    param = error.param
    name = "more" if param is None else param.opts[0] if isinstance(param, click.Option) else _shown(param)
    return usage(f"{ctx.command_path} needs {name}", f"{ctx.command_path} --help")


def too_many(ctx: click.Context, extra: list[str]) -> Failure:
    """A word that has no place: mostly what another command shows, or a text without quotes."""
    taken = [_shown(param) for param in ctx.command.params if isinstance(param, click.Argument)]
    cause = f'{ctx.command_path} takes {" ".join(taken) or "options alone"}, and "{extra[0]}" has no place'
    in_group = ctx.parent is not None and ctx.parent.parent is not None
    beside = ctx.parent.command if ctx.parent and in_group and not taken and len(extra) == 1 else None
    known = beside.list_commands(ctx) if isinstance(beside, click.Group) else []
    shows = next((name for name in _SHOWING if name in known), "")
    if ctx.parent and shows:
        return usage(cause, f"{ctx.parent.command_path} {shows} {shell_word(extra[0])}")
    return usage(cause, f"{ctx.command_path} --help")


def _shown(param: click.Parameter) -> str:
    return param.make_metavar(click.Context(click.Command(""))).strip("[].")


def _no_number(message: str, param: click.Parameter, span: click.IntRange) -> str:
    least = "" if span.min is None else f" from {span.min}"
    most = "" if span.max is None else f" to {span.max}"
    typed = message.partition(": ")[2].partition(" is not ")[0].strip("'")
    return f"{param.opts[0]} is a number{least}{most}, not {typed}"
