"""Every refusal says what to do next: those that are written in the code, and those that click makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import mycelium_cli
from clients.cli.tests.conftest import Run
from mycelium_cli import main
from mycelium_cli.errors import USAGE
from mycelium_cli.problems import failure_of_problem

SOURCES = sorted(Path(mycelium_cli.__file__).parent.rglob("*.py"))


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from leaves(found, (*path, name))
        else:
            yield (*path, name), found


COMMANDS = dict(leaves(main.root()))
BOUND = [path for path, command in COMMANDS.items() if all(param.nargs != -1 for param in command.params)]
NEEDING = [
    path
    for path, command in COMMANDS.items()
    if any(param.required and isinstance(param, click.Argument) for param in command.params)
]


def filled(command: click.Command) -> Iterator[str]:
    """A word for each argument, and what a command can't do without."""
    for param in command.params:
        if isinstance(param, click.Argument) or param.required:
            yield from () if isinstance(param, click.Argument) else param.opts[:1]
            yield next(iter(param.type.choices)) if isinstance(param.type, click.Choice) else "word"


def test_each_refusal_in_the_code_is_written_with_what_helps() -> None:
    """`usage(...)` may leave it to the help of its command; any other names it where it is raised."""
    bare = [f"{path.name}:{call.lineno}" for path in SOURCES for call in _failures(path) if not _names_what_helps(call)]
    assert bare == []


def _failures(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Failure":
            yield node


def _names_what_helps(call: ast.Call) -> bool:
    hints = [keyword.value for keyword in call.keywords if keyword.arg == "hint"]
    return bool(hints) and not (isinstance(hints[0], ast.Constant) and not hints[0].value)


@pytest.mark.parametrize("path", BOUND, ids=" ".join)
def test_a_word_that_has_no_place_is_named_with_what_helps(run: Run, path: tuple[str, ...]) -> None:
    """Nothing is asked of a hub for it."""
    ran = run(*path, *filled(COMMANDS[path]), "too-many")
    assert (ran.status, ran.out) == (USAGE, "")
    assert f"mycelium {' '.join(path)} takes " in ran.err
    assert '"too-many" has no place. Next: mycelium ' in ran.err


@pytest.mark.parametrize("path", NEEDING, ids=" ".join)
def test_a_word_that_is_missing_is_named_with_what_helps(run: Run, path: tuple[str, ...]) -> None:
    """By the name that the help has for it."""
    typed = f"mycelium {' '.join(path)}"
    ran = run(*path)
    assert (ran.status, ran.out) == (USAGE, "")
    assert ran.err.startswith(f"error: {typed} needs ")
    assert ran.err.endswith(f". Next: {typed} --help\n")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (("board", "log", "work/x"), "mycelium board messages work/x"),
        (("room", "ls", "two words"), "mycelium room show 'two words'"),
        (("agent", "ls", "sec"), "mycelium agent show sec"),
        (("whoami", "me"), "mycelium whoami --help"),
        (("board", "log", "a", "b"), "mycelium board log --help"),
    ],
)
def test_a_word_after_a_list_leads_to_what_shows_the_one(run: Run, typed: tuple[str, ...], hint: str) -> None:
    """Where there is such a command, and one word was typed."""
    assert run(*typed).err.endswith(f" has no place. Next: {hint}\n")


def test_a_wrong_setting_leads_to_where_it_stands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help of the command that came upon it would not tell."""
    monkeypatch.setenv("MYCELIUM_LOGIN_REDIRECT_PORT", "many")
    monkeypatch.setenv("MYCELIUM_LOGIN_ISSUER", "http://127.0.0.1:9")
    assert run("config", "get", "login.redirect_port").err == (
        'error: login.redirect_port is a number (port), not "many". Next: mend MYCELIUM_LOGIN_REDIRECT_PORT\n'
    )


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 422, 429, 500, 503, 507])
def test_a_refusal_of_a_newer_hub_has_a_next_step_too(status: int) -> None:
    """A slug that this program has not heard of; what was typed wrong leads to the help of the command."""
    failure = failure_of_problem(status, {"slug": "something.new", "detail": "no"}, {})
    assert failure.hint or failure.exit_status == USAGE
