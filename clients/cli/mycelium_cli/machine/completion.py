"""`completion`: the lines that make a shell complete commands and options."""

import click

from mycelium_cli.command import command
from mycelium_cli.context import Here

_SHELLS = ("bash", "zsh", "fish")


@command("completion", example='eval "$(mycelium completion bash)"   # in ~/.bashrc\n'
         "mycelium completion fish > ~/.config/fish/completions/mycelium.fish")  # fmt: skip
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(here: Here, shell: str) -> None:
    """Completion for bash, zsh or fish.

    Prints what the shell must read at its start. Names of rooms and handles are asked of the hub, for 0.3 seconds or
    what MYCELIUM_COMPLETION_S says; then nothing is completed.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    asker = found(click.Command("mycelium"), {}, "mycelium", "_MYCELIUM_COMPLETE")
    # Not `source()`: it starts a bash to look at its version, and fails where there is none.
    script = asker.source_template % asker.source_vars()
    here.out.answer({"shell": shell, "script": script}, lambda data, _: [str(data["script"]).strip()])
