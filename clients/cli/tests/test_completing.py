"""Completion of names, with the shell that asks: what the hub knows, in time or not at all."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from clients.cli.tests.scripted import ScriptedHub, answer

ROOMS = answer(200, {"items": [{"name": "design-review"}, {"name": "Design Größe $1"}, {"name": "ops"}], "next": None})
MEMBERS = answer(200, {"items": [{"handle": "sec"}, {"handle": "scout"}], "next": None})
USERS = answer(200, {"items": [{"handle": "scout"}, {"handle": "avery"}], "next": None})


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy is no reason to complete nothing here."""
    monkeypatch.setenv("MYCELIUM_COMPLETION_S", "8")


def asked(*words: str, shell: str = "fish") -> list[str]:
    """What a shell would offer for the last word."""
    typed = {"COMP_WORDS": " ".join(words), "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1)}
    ran = subprocess.run(
        [sys.executable, "-m", "mycelium_cli"],
        env={**os.environ, **typed, "_MYCELIUM_COMPLETE": f"{shell}_complete"},
        capture_output=True, check=True, timeout=10,
    )  # fmt: skip
    assert ran.stderr == b""
    return [line.partition(",")[2].partition("\t")[0] for line in ran.stdout.decode().splitlines() if line]


@pytest.mark.parametrize(
    "line",
    [
        ("room", "use"), ("room", "show"), ("room", "delete"), ("room", "set"), ("room", "messages"), ("room", "watch"),
        ("room", "watch", "ops"), ("room", "clone"), ("room", "export"), ("room", "send", "--room"),
        ("await", "--room"), ("room", "messages", "--room"), ("agent", "ls", "--room"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_rooms_are_completed_wherever_one_is_named(line: tuple[str, ...], scripted: ScriptedHub) -> None:
    """Whatever the case of what was typed."""
    scripted.play(ROOMS)
    assert asked("mycelium", *line, "des") == ["design-review", "Design Größe $1"]


@pytest.mark.parametrize("line", [("agent", "show"), ("agent", "rm"), ("agent", "pause"), ("agent", "resume")])
def test_agents_are_completed(line: tuple[str, ...], scripted: ScriptedHub) -> None:
    """From the room that is meant."""
    scripted.play(MEMBERS)
    assert asked("mycelium", *line, "--room", "ops", "s") == ["sec", "scout"]
    assert scripted.received[0].line.startswith("GET /api/rooms/ops/members")


def test_whoever_may_act_is_completed(scripted: ScriptedHub) -> None:
    """Members and users, each once, with the @ that was typed."""
    scripted.play(MEMBERS, USERS, USERS)
    assert asked("mycelium", "room", "send", "--handle", "@") == ["@sec", "@scout", "@avery"]
    assert asked("mycelium", "user", "show", "a") == ["avery"]


def test_settings_and_services_are_completed(scripted: ScriptedHub) -> None:
    """Settings without a hub."""
    assert asked("mycelium", "config", "get", "runtime.b") == ["runtime.backend_port", "runtime.bind_addr"]
    assert scripted.received == []
    scripted.play(answer(200, {"services": {"rooms": {}, "gateway": {}}}))
    assert asked("mycelium", "logs", "") == ["hub", "nats", "rooms", "gateway"]


def test_a_hub_that_is_slow_away_or_strange_completes_nothing(
    scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """Quickly, and without a word at somebody's prompt."""
    scripted.play(answer(200, b"<html>", kind="text/html"))
    assert asked("mycelium", "room", "use", "") == []
    scripted.hold()
    monkeypatch.delenv("MYCELIUM_COMPLETION_S")
    assert asked("mycelium", "room", "use", "") == []  # it would wait for the hub for longer than the test does
    home.mkdir()
    (home / "config.toml").write_text("[")
    monkeypatch.delenv("MYCELIUM_API_URL")
    assert asked("mycelium", "room", "use", "") == []


def completed_by_bash(typed: str) -> str:
    """The word that bash puts in, from the words as they were typed."""
    script = 'eval "$($PY -m mycelium_cli completion bash)"\nmycelium() { "$PY" -m mycelium_cli "$@"; }\n'
    script += (
        'env() { command env "${@:1:$#-1}" "$PY" -m mycelium_cli; }\nCOMP_CWORD=3\n_mycelium_completion mycelium\n'
    )
    script += 'printf "%s\\n" "${COMPREPLY[@]}"'
    ran = subprocess.run(
        ["bash", "-c", f"COMP_WORDS=(mycelium room use {shlex.quote(typed)})\n{script}"],
        env={**os.environ, "PY": sys.executable}, capture_output=True, check=True, timeout=10,
    )  # fmt: skip
    return ran.stdout.decode().strip()


def test_bash_gets_a_name_with_blanks_as_one_word(scripted: ScriptedHub) -> None:
    """Quoted, unless the quotes are open already; the word that it inserts is the name again."""
    scripted.play(ROOMS, ROOMS)
    word = completed_by_bash("Design\\ ")
    assert word == "Design\\ Größe\\ \\$1"
    back = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert back.stdout.decode() == "Design Größe $1"
    assert completed_by_bash('"Design ') == "Design Größe $1"
