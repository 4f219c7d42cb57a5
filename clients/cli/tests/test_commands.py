"""The shape that every command has: an example, the shared options, an answer to every slip."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest

from clients.cli.tests.conftest import Run
from mycelium_cli import main
from mycelium_cli.command import Command, Group
from mycelium_cli.errors import EXIT_STATUSES, USAGE


def walk(group: Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below a group, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, Group):
            yield from walk(command, (*path, name))


ALL = dict(walk(main.root()))
LEAVES = {path: command for path, command in ALL.items() if isinstance(command, Command)}
GROUPS = {path: command for path, command in ALL.items() if isinstance(command, Group)}


def test_the_documented_commands_are_there() -> None:
    """The commands of the reference, by their names."""
    rooms = ["create", "ls", "show", "set", "use", "delete", "send", "messages", "watch", "event", "resolve", "amend"]
    rooms += ["clone", "export", "import", "add", "remove", "synthesize"]
    assert sorted(" ".join(path) for path in LEAVES) == sorted(
        [f"room {name}" for name in rooms]
        + [
            "catchup",
            "synthesize",
            "await",
            "respond",
            "presence",
            "receipts",
            "messages receipts",
            "iam",
            "join",
            "leave",
            "login",
            "logout",
            "whoami",
            "init",
            "up",
            "down",
            "status",
            "logs",
            "doctor",
            "completion",
        ]
        + [f"agent {name}" for name in ("create", "ls", "show", "pause", "resume", "rm", "code")]
        + [f"agent credential {name}" for name in ("set", "show", "ls", "rm")]
        + [f"engine {name}" for name in ("create", "ls", "show", "invoke", "budget", "rm")]
        + [f"board {name}" for name in ("new", "claim", "renew", "release", "resolve", "block", "answer")]
        + [f"board {name}" for name in ("promote", "dismiss", "log", "send", "messages", "coordinate", "ready")]
        + ["board reserve"]
        + [f"memory {name}" for name in ("set", "get", "ls", "search", "reindex", "rm", "links", "history")]
        + [
            f"memory {name}"
            for name in ("decisions", "status", "work", "context", "procedures", "catchup", "subscribe")
        ]
        + [f"user {name}" for name in ("create", "ls", "show")]
        + [f"config {name}" for name in ("get", "set", "unset", "show", "path", "apply")]
    )


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_has_an_example_and_the_shared_options(path: tuple[str, ...], run: Run) -> None:
    """`--help` of everything ends in something that can be typed."""
    ran = run(*path, "--help")
    assert ran.status == 0
    assert f"Usage: mycelium {' '.join(path)} " in ran.out
    assert "\nExample:\n  " in ran.out
    assert "--json" in ran.out
    assert "--verbose" in ran.out


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_the_example_shows_the_command_itself_and_parses(path: tuple[str, ...]) -> None:
    """An example with an option that does not exist would teach a mistake."""
    own = 0
    for line in LEAVES[path].example.splitlines():
        words = shlex.split(line, comments=True)
        for start in (i for i, word in enumerate(words) if word.endswith("mycelium")):
            rest = words[start + 1 :]
            if tuple(rest[: len(path)]) == path:
                own += 1
                arguments = [word for word in rest[len(path) :] if word != ">"]
                with LEAVES[path].make_context(path[-1], arguments[: 9 if ">" not in rest else 1]):
                    pass
    assert own or path == ("completion",)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_the_summary_in_the_table_is_the_first_line_of_the_help(path: tuple[str, ...]) -> None:
    """The table is written by hand so that `--help` loads no command; the two must not drift apart."""
    summary = (LEAVES[path].help or "").split("\n", maxsplit=1)[0]
    table = main.root() if len(path) == 1 else GROUPS[path[:-1]]
    assert table.entries[path[-1]].summary == summary


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_misspelt_option_is_answered_with_the_nearest(path: tuple[str, ...], run: Run) -> None:
    """On every verb, and on every group: one line on stderr, exit 2, nothing on stdout."""
    options = [
        name
        for param in ALL[path].params
        for name in param.opts
        if name.startswith("--") and name[-1] != name[-2] and len(name) > 3
    ]
    for option in [*options, "--help"]:
        wrong = f"{option[:-2]}{option[-1]}{option[-2]}"  # two letters the wrong way round
        ran = run(*path, wrong)
        assert ran.status == USAGE
        assert ran.out == ""
        named = f"error: mycelium {' '.join(path)} has no option {wrong}; did you mean {option}?"
        assert ran.err == f"{named} Next: mycelium {' '.join(path)} --help\n"


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_misspelt_command_is_answered_with_the_nearest(path: tuple[str, ...], run: Run) -> None:
    """`rom` is `room`, and `sned` is `send`."""
    *above, name = path
    wrong = name + name[-1]
    if len(name) == 2:
        wrong = name + "s"
    ran = run(*above, wrong)
    right = " ".join(["mycelium", *path])
    parent = " ".join(["mycelium", *above])
    said = f'error: "{parent} {wrong}" is no command; did you mean {right}? Next: {parent} --help\n'
    assert ran == (USAGE, "", said)


def test_a_command_of_a_group_typed_without_it_is_found(run: Run) -> None:
    """`mycelium send` means `mycelium room send`."""
    assert "did you mean mycelium room send?" in run("send", "hello").err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("memory find", "memory search"),
        ("memory versions", "memory history"),
        ("memory read", "memory get"),
        ("memory write", "memory set"),
        ("room history", "room messages"),
        ("room new", "room create"),
        ("find", "memory search"),
        ("history", "memory history"),
        ("log", "board log"),
        ("post", "room send"),
        ("read", "memory get"),
        ("stop", "down"),
        ("synthesise", "synthesize"),
    ],
)
def test_words_of_other_programs_lead_to_the_command(typed: str, meant: str, run: Run) -> None:
    """Not to the one that happens to be written alike."""
    ran = run(*typed.split(), "x")
    assert (ran.status, ran.out) == (USAGE, "")
    assert ran.err.startswith(f'error: "mycelium {typed}" is no command; did you mean mycelium {meant}? Next: ')


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("room list", "room ls"),
        ("room rm", "room delete"),
        ("agent list", "agent ls"),
        ("agent delete", "agent rm"),
        ("agent remove", "agent rm"),
        ("user list", "user ls"),
        ("config list", "config show"),
        ("config rm", "config unset"),
        ("help", ""),
        ("room help", "room"),
        ("help room", "room"),
        ("help room send", "room send"),
        ("room help rm", "room delete"),
    ],
)
def test_verbs_of_other_programs_are_known(typed: str, meant: str, run: Run) -> None:
    """`list`, `rm`, `help`: nobody has to look up which of them it is here."""
    words = typed.split() if "help" in typed else [*typed.split(), "--help"]
    ran = run(*words)
    assert ran.status == 0
    assert ran.out.startswith(f"Usage: mycelium {f'{meant} ' if meant else ''}[OPTIONS]")


def test_version_is_a_word_too(run: Run) -> None:
    """As `-V` and `--version`."""
    assert run("version") == run("--version") == run("-V")
    assert run("version").out.startswith("mycelium 0")


def test_a_verb_of_other_programs_without_its_group_is_found(run: Run) -> None:
    """`mycelium list` may mean several; the first is told."""
    assert "did you mean mycelium room ls?" in run("list").err


def test_a_word_of_a_list_is_answered_with_the_nearest(run: Run) -> None:
    """Values are looked at like names."""
    assert "did you mean event?" in run("room", "send", "--type", "evnt", "x").err
    assert "did you mean fish?" in run("completion", "fsh").err


def test_a_text_that_looks_like_an_option_is_explained(run: Run) -> None:
    """`-1 on that` is a text, and the way to say so is told."""
    assert "put -- before a text that begins with a dash" in run("room", "send", "-1 on that").err


def test_a_missing_argument_is_one_line(run: Run) -> None:
    """Click's usage block is not printed."""
    assert run("room", "delete") == (
        USAGE,
        "",
        "error: mycelium room delete needs NAME. Next: mycelium room delete --help\n",
    )


def test_the_help_of_the_program_lists_every_exit_status(run: Run) -> None:
    """One table in the code, shown and documented from there."""
    out = run("--help").out
    assert all(f"  {status}" in out and words in out for status, words in EXIT_STATUSES.items())


def test_a_number_is_told_with_its_bounds_in_words(run: Run) -> None:
    """Not as a formula."""
    assert "--port N              The port; 0 for any free one.  [0 to 65535]" in run("up", "--help").out
    assert "--limit N        How many of each.  [default: 20; 1 to 100]" in run("catchup", "--help").out
    assert "--limit is a number from 1 to 100, not 0" in run("catchup", "--limit", "0").err
    assert "--tail is a number from 0, not -1" in run("logs", "--tail", "-1").err


def test_a_group_alone_shows_its_help_and_is_wrong_usage(run: Run) -> None:
    """A script that forgot the verb must notice."""
    ran = run("room")
    assert ran.status == USAGE
    assert ran.out.startswith("Usage: mycelium room ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_reads(shell: str, run: Run) -> None:
    """It asks this program, by the variable that it listens to."""
    ran = run("completion", shell)
    assert ran.status == 0
    assert f"_MYCELIUM_COMPLETE={shell}_complete" in ran.out
