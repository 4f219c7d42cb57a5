"""Refuses names that are empty, as a variable that was never set leaves them.

Everywhere else an empty name would pass for one that was not given: a text would go to the channel in place of a
thread, a part would be filed without its parent, another would act, in another room.
"""

import click

from mycelium_cli.errors import usage

# What stands for a name, or a time, in the help of options; texts, and fields that can be made empty, are none.
_NAMES = frozenset(
    {"CURSOR", "DATE", "DAYS", "HANDLE", "ID", "KEY|THREAD", "MINUTES", "ROOM", "SEAT", "TASK", "TIME", "ZONE"}
)
_MAY_BE_EMPTY = frozenset({"--owner", "--allow-from"})  # nobody's


def refuse(ctx: click.Context) -> None:
    """Refuse the first name that was given and is empty."""
    for param in ctx.command.params:
        is_named = _stands_for(param) in _NAMES and param.opts[0] not in _MAY_BE_EMPTY
        value = ctx.params.get(param.name or "")
        values = value if isinstance(value, tuple) else (value,)
        if is_named and any(isinstance(one, str) and not one.strip() for one in values):
            raise usage(_told(param), f"{ctx.command_path} --help")


def _stands_for(param: click.Parameter) -> str:
    return (param.metavar or "").strip("[].")


def _told(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return f"{param.opts[0]} is empty: say which, or leave it out"
    return f"{_stands_for(param)} is empty: say which"
