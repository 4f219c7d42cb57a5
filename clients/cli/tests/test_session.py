"""The session of a command line, with real processes: agents' shells, scripts, people's terminals."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import MESSAGE, ScriptedHub, answer
from mycelium_cli.session import Process, caller, from_listing, of_process, session

ASK = f"{shlex.quote(sys.executable)} -m mycelium_cli whoami --json --sources"
SPAWN = "import pty, sys; [pty.spawn(['sh', *words.split('|')[1:]]) for words in sys.argv[1:]]"
LISTING = """\
    1     0 Ss   ??       Mon Nov 30 07:00:00 2026 /sbin/launchd
  400     1 S    ??       Mon Nov 30 07:01:00 2026 /Applications/Term.app/Contents/MacOS/Term
  401   400 Ss   ttys001  Mon Nov 30 07:02:00 2026 -zsh
  402   401 S+   ttys001  Mon Nov 30 07:03:00 2026 agent --resume
  403   402 S    ??       Mon Nov 30 07:04:00 2026 /bin/zsh -c mycelium await; true
  404   403 S    ??       Mon Nov 30 07:05:00 2026 python mycelium await
  405   401 S+   ttys001  Mon Nov 30 07:06:00 2026 python mycelium await
  406   400 Ss   ttys002  Mon Nov 30 07:07:00 2026 /bin/bash -lc mycelium await; true
  407   406 S+   ttys002  Mon Nov 30 07:08:00 2026 python mycelium await
"""


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub: `whoami` tells what this machine knows."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:9")


def told(place: Path) -> list[tuple[str, str]]:
    """The session and its source, of each answer in a file."""
    decoder, text, found = json.JSONDecoder(), place.read_text().strip(), []
    while text:
        answer, end = decoder.raw_decode(text)
        found.append((answer["session"], answer["sources"]["session"]))
        text = text[end:].strip()
    return found


def shell(place: Path, *words: str) -> None:
    """Run a command line below this process, its answers going to a file."""
    subprocess.run(["sh", "-c", *words], check=True, timeout=30, env={**os.environ, "OUT": str(place)})


def in_terminals(place: Path, typed: str, *shells: str) -> None:
    """Shells that lead a terminal of their own, one after the other: `sh`, or `sh|-c|command`."""
    words = [sys.executable, "-c", SPAWN, *shells]
    subprocess.run(
        words, input=typed.encode(), check=True, timeout=30, capture_output=True,
        env={**os.environ, "OUT": str(place)}, start_new_session=True,
    )  # fmt: skip


def test_two_shells_of_one_parent_are_one_session(tmp_path: Path) -> None:
    """As every coding agent's shell tool calls: a new shell, or several in each other, for each command."""
    out = tmp_path / "out"
    script = tmp_path / "ask.sh"
    script.write_text(f"#!/bin/sh\n{ASK} >> $OUT; true\n")
    script.chmod(0o755)
    shell(out, f"{ASK} >> $OUT; true")
    shell(out, f"(timeout 20 sh -c {shlex.quote(f'{ASK} | cat; true')}) >> $OUT; true")
    shell(out, f"{script}; true")
    assert len(told(out)) == 3
    assert set(told(out)) == {(told(out)[0][0], f"process {os.getpid()}, {own_name()}")}


def own_name() -> str:
    return Path("/proc/self/comm").read_text().strip()


def test_two_terminals_are_two_sessions(tmp_path: Path) -> None:
    """What is typed in one is one session, from one command to the next."""
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        in_terminals(place, f"{ASK} >> $OUT\n{ASK} >> $OUT; true\nexit\n", "sh")
    assert [len(set(told(place))) for place in (first, second)] == [1, 1]
    assert len(told(first)) == 2
    assert told(first)[0][0] != told(second)[0][0]
    assert told(first)[0][1].startswith("process ")


def test_a_terminal_made_for_one_command_is_no_session(tmp_path: Path) -> None:
    """Some agents run each command in a new pseudo-terminal."""
    out = tmp_path / "out"
    command = f"sh|-c|{ASK} >> $OUT; true".replace("\n", " ")
    in_terminals(out, "", command, command)
    assert (len(told(out)), len(set(told(out)))) == (2, 1)


def test_the_environment_says_it_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """MYCELIUM_SESSION, then what the agent gives its commands."""
    assert session() == session()
    monkeypatch.setenv("CODEX_SESSION_ID", "codex 1\n")
    assert session() == ("codex_1_", "CODEX_SESSION_ID")
    monkeypatch.setenv("MYCELIUM_SESSION", "s1")
    assert session() == ("s1", "MYCELIUM_SESSION")


@pytest.mark.parametrize(("pid", "found"), [(404, (402, "agent")), (405, (401, "zsh")), (407, (400, "Term"))])
def test_without_proc_a_listing_tells_the_same(pid: int, found: tuple[int, str]) -> None:
    """As `ps` prints it on a Mac."""
    processes = from_listing(LISTING)
    who = caller(pid, processes[pid].parent, processes.get)
    assert (who.pid, who.name) == found
    assert of_process(who).value.endswith(
        f"-{found[0]}-Mon_Nov_30_07:0{found[0] - 399 if found[0] > 400 else 1}:00_2026"
    )


def family(*rows: tuple[int, int, str]) -> Mapping[int, Process]:
    return {pid: Process(pid, parent, name, f"t{pid}", leads_terminal=False) for pid, parent, name in rows}


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        # A script that outlived its terminal: the keeper of orphans has other children too.
        (family((1, 0, "systemd"), (7, 1, "bash"), (8, 7, "sh"), (9, 8, "python")), 7),
        # Started by the keeper itself: nothing else is this session.
        (family((1, 0, "systemd"), (9, 1, "python")), 9),
        # The agent is all that runs in its container.
        (family((1, 0, "node"), (8, 1, "sh"), (9, 8, "python")), 1),
        # `docker exec`, once for each command.
        (family((1, 0, "sleep"), (8, 0, "sh"), (9, 8, "python")), 0),
        # A container whose first process is a script.
        (family((1, 0, "bash"), (9, 1, "python")), 0),
        # A process that can't be looked at.
        (family((8, 5, "sh"), (9, 8, "python")), 8),
    ],
)
def test_where_the_way_up_ends(processes: Mapping[int, Process], found: int) -> None:
    """Orphans, services and containers."""
    who = caller(9, processes[9].parent, processes.get)
    assert who.pid == found
    assert who.start == f"t{found or 1}"


def test_the_session_goes_with_every_call_and_the_help_explains_it(scripted: ScriptedHub, run: Run) -> None:
    """Who uses two shells for `await` and `respond` must find out what they have in common."""
    scripted.play(answer(204), answer(201, MESSAGE))
    run("await", "--timeout", "0")
    run("respond", "ok")
    assert {request.headers["mycelium-session"] for request in scripted.received} == {session().value}
    for verb in ("await", "respond"):
        assert "MYCELIUM_SESSION" in run(verb, "--help").out
