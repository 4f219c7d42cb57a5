"""What holds for every command: help, near misses, errors, no traces, Ctrl-C."""

import contextlib
import json
import os
import pty
import signal
import subprocess
from pathlib import Path

from e2e.harness import MYCELIUM, Machine, free_port
from e2e.requirements import requirement
from e2e.room import Room


def entries(text: str) -> list[str]:
    """The commands that a `--help` lists."""
    sections = [part for part in text.split("\n\n") if not part.startswith(("Usage:", "Options:", "Example:", "Exit"))]
    rows = [line for part in sections for line in part.splitlines()[1:] if line.startswith("  ")]
    return [line.split()[0] for line in rows if line[2] != " "]


def commands(machine: Machine) -> list[list[str]]:
    """Every command of the program, as the words before its options."""
    found: list[list[str]] = []
    for name in entries(machine.run("--help").ok().out):
        text = machine.run(name, "--help").ok().out
        below = entries(text) if "COMMAND" in text.splitlines()[0] else []
        found += [[name, leaf] for leaf in below] or [[name]]
    return found


DOCUMENTED = {
    "room create", "room ls", "room show", "room use", "room delete", "room send", "room messages", "room watch",
    "room amend", "await", "respond", "receipts", "agent create", "agent ls", "agent show", "agent rm", "user create",
    "user ls", "user show", "iam", "whoami", "up", "down", "status", "logs", "config get", "config set", "config show",
    "completion",
}  # fmt: skip


@requirement("cli:misspelt", "cli:help")
def test_every_command_has_help_and_refuses_a_misspelt_flag(tmp_path: Path) -> None:
    """One line with the right flag, the status of a wrong usage, and nothing is done.

    Here one command of each group, as processes; the command line's own tests look at every one.
    """
    machine = Machine(tmp_path / "home", "http://127.0.0.1:9")
    found = commands(machine)
    assert {" ".join(words) for words in found} >= DOCUMENTED
    for words in {name: [name, *leaf] for name, *leaf in found}.values():
        text = machine.run(*words, "--help").ok().out
        assert "Example:" in text, text
        assert f"mycelium {' '.join(words)}" in text, text
        assert "--json" in text, text
        refused = machine.run(*words, "--jsno")
        assert refused.status == 2, (words, refused)
        assert refused.out == ""
        assert refused.err.startswith(f"error: mycelium {' '.join(words)} has no option --jsno; did you mean --json?")
        assert len(refused.err.splitlines()) == 1
    assert not machine.home.exists()


@requirement("cli:misspelt")
def test_a_misspelt_command_is_refused_with_the_right_one(tmp_path: Path) -> None:
    """At both levels, and a command that was looked for one level too high."""
    machine = Machine(tmp_path / "home")
    for typed, meant in (
        (["rooom", "ls"], "mycelium room"),
        (["room", "crate", "x"], "mycelium room create"),
        (["awiat"], "mycelium await"),
        (["send", "hello"], "mycelium room send"),
        (["agent", "destroy", "sec"], "mycelium agent"),
    ):
        refused = machine.run(*typed)
        assert refused.status == 2
        assert meant in refused.err
        assert len(refused.err.splitlines()) == 1


@requirement("cli:errors")
def test_an_error_is_one_line_and_with_json_a_document(machine: Machine) -> None:
    """Cause, object, next command; for programs the hub's problem document and the exit status."""
    plain = machine.run("room", "show", "nowhere")
    assert (plain.status, plain.out) == (3, "")
    assert plain.err.startswith("error: 404 Room not found")
    assert len(plain.err.splitlines()) == 1
    document = machine.run("room", "show", "nowhere", "--json")
    assert (document.status, document.out) == (3, "")
    problem = json.loads(document.err)
    assert (problem["slug"], problem["status"], problem["exit"]) == ("room.not_found", 404, 3)
    assert problem["next"] == "mycelium room create nowhere"


@requirement("cli:errors")
def test_exit_statuses_tell_errors_apart(machine: Machine, room: Room) -> None:
    """One status a kind, listed in `--help`."""
    name = room.name
    message = room.post("hello", sender="sec")
    found = {
        "done": machine.run("room", "ls").status,
        "refused": machine.run("room", "create", name).status,
        "usage": machine.run("room", "messages", name, "--limit", "many").status,
        "invalid": machine.run("room", "create", "a/b").status,
        "not found": machine.run("room", "show", "nowhere").status,
        "not allowed": machine.run("room", "amend", message["id"], "x", handle="avery", room=name).status,
    }
    assert found == {"done": 0, "refused": 1, "usage": 2, "invalid": 2, "not found": 3, "not allowed": 4}
    text = machine.run("--help").ok().out
    assert all(f"\n  {status} " in text for status in (0, 1, 2, 3, 4, 5, 6, 70, 130))


@requirement("cli:unreachable")
def test_without_a_hub_commands_fail_at_once(tmp_path: Path) -> None:
    """The documented words, the address, what to do."""
    url = f"http://127.0.0.1:{free_port()}"
    machine = Machine(tmp_path / "home", url)
    for words in (["room", "ls"], ["room", "send", "hello"], ["await"], ["status"], ["await", "--loop"]):
        failed = machine.run(*words, handle="sec", room="demo", within_s=5)
        assert failed.status == 5
        assert f"Failed to connect to the Mycelium API at {url}" in failed.err
        assert "mycelium up" in failed.err
        assert len(failed.err.splitlines()) == 1


@requirement("cli:nothing-stored")
def test_with_everything_in_the_environment_no_file_is_written(machine: Machine, room: Room) -> None:
    """A container that is thrown away loses nothing."""
    room.join("ci")
    machine.run("room", "send", "@ci hello", handle="ci", room=room.name).ok()
    room.post("@ci hello")
    machine.run("await", "--timeout", "5", handle="ci", room=room.name).ok()
    machine.run("respond", "done", handle="ci", room=room.name).ok()
    machine.run("whoami", "--sources", handle="ci", room=room.name).ok()
    assert not machine.home.exists()
    assert not list(machine.home.parent.glob(".*"))


@requirement("cli:interrupted")
def test_ctrl_c_ends_at_once_and_quietly(room: Room) -> None:
    """While waiting and while watching."""
    room.join("sec")
    waiting = room.wait("sec", "--timeout", "60")
    waiting.signal(signal.SIGINT)
    ended = waiting.ended(3)
    assert (ended.status, ended.out, ended.err) == (130, "", "")
    watching = room.watch()
    watching.signal(signal.SIGINT)
    ended = watching.ended(3)
    assert ended.status == 130
    assert "Traceback" not in ended.err


def on_a_terminal(machine: Machine, *words: str, env: dict[str, str] | None = None) -> str:
    """What a command prints when it is read on a terminal."""
    ours, theirs = pty.openpty()
    environment = machine.environment(env={"TERM": "xterm", **(env or {})})
    with os.fdopen(ours, "rb", buffering=0) as screen:
        with os.fdopen(theirs, "wb", buffering=0) as terminal:
            subprocess.run([MYCELIUM, *words], env=environment, stdin=terminal, stdout=terminal, check=True)
        found = b""
        with contextlib.suppress(OSError):  # a terminal that nobody writes to any more is an error on Linux
            while piece := screen.read(65536):
                found += piece
    return found.decode("utf-8")


@requirement("cli:colours")
def test_colours_are_for_terminals_only(machine: Machine, room: Room) -> None:
    """And nobody gets them who said NO_COLOR, or reads JSON."""
    room.post("hello")
    words = ("room", "messages", room.name)
    assert "\x1b[" in on_a_terminal(machine, *words)
    assert "\x1b[" not in on_a_terminal(machine, *words, env={"NO_COLOR": "1"})
    assert "\x1b[" not in on_a_terminal(machine, *words, env={"TERM": "dumb"})
    assert "\x1b[" not in on_a_terminal(machine, *words, "--json")
    assert "\x1b[" not in machine.run(*words).ok().out


@requirement("cli:completion")
def test_shells_complete_commands_and_options(machine: Machine) -> None:
    """Each shell gets its lines, and they ask the program."""
    for shell in ("bash", "zsh", "fish"):
        assert "_MYCELIUM_COMPLETE" in machine.run("completion", shell).ok().out

    def completed(words: str) -> list[str]:
        asked = {"_MYCELIUM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return [line.partition(",")[2] for line in machine.run(env=asked).ok().out.splitlines()]

    assert completed("mycelium roo") == ["room"]
    assert set(completed("mycelium room ")) >= {"create", "ls", "send", "watch"}
    assert "--timeout" in completed("mycelium await --t")
    assert machine.run("completion", "tcsh").status == 2
