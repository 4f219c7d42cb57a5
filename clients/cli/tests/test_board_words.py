"""What is typed for the board: where a room is named, times, tokens, zones; and what is answered to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from clients.cli.tests.test_board_log import PAGE as LOG
from clients.cli.tests.test_board_rows import PAGE, TASK, drawn, row
from mycelium_cli.board import tokens
from mycelium_cli.periods import zone

THREAD = TASK["thread"]
CLAIM: dict[str, Any] = {
    "task": "work/login", "thread": THREAD, "holder": "avery", "token": 21, "expires_at": "x", "ttl_s": 1800,
    "taken_from": None,
}  # fmt: skip
ALREADY = "work/login was held by @avery already, and --ttl moves no end: use mycelium board renew work/login --ttl"


def asked(scripted: ScriptedHub) -> list[dict[str, Any]]:
    return [request.document() for request in scripted.received]


def test_what_is_said_before_a_command_is_the_commands(run: Run, scripted: ScriptedHub) -> None:
    """The room, a view; what the command says itself goes first."""
    scripted.play(*[answer(200, CLAIM)] * 2, answer(200, {**PAGE, "items": [TASK]}))
    assert run("board", "-r", "other", "claim", "work/login").status == 0
    assert run("board", "-r", "other", "claim", "work/login", "-r", "third").status == 0
    assert "NOT READY" in run("board", "--room", "other", "--view", "table", "ready").out
    paths = [request.line.split()[1].partition("?")[0] for request in scripted.received]
    assert paths == [
        "/api/rooms/other/tasks/work/login/claim", "/api/rooms/third/tasks/work/login/claim", "/api/rooms/other/board",
    ]  # fmt: skip


@pytest.mark.parametrize("said", [["--filter", "all"], ["--watch"], ["--group", "status"]])
def test_what_a_command_does_not_take_is_refused_before_it(said: list[str], run: Run, scripted: ScriptedHub) -> None:
    """Nothing that was typed is dropped without a word."""
    ran = run("board", *said, "claim", "work/login")
    assert (ran.status, ran.out, scripted.received) == (2, "", [])
    assert ran.err == (f"error: {said[0]} is for the board itself, not for claim. Next: mycelium board claim --help\n")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("-5", '--ttl is minutes, or a time like 90s, 30m or 2h, not "-5"'),
        ("soon", '--ttl is minutes, or a time like 90s, 30m or 2h, not "soon"'),
        ("0", "--ttl is a second at least and 7 days at most, not 0"),
        ("99999999", "--ttl is a second at least and 7 days at most, not 99999999"),
        ("9" * 400, f"--ttl is a second at least and 7 days at most, not {'9' * 400}"),
        ("8d", "--ttl is a second at least and 7 days at most, not 8d"),
    ],
)
@pytest.mark.parametrize("command", [["claim", "work/login"], ["renew", "work/login"], ["reserve", "src"]])
def test_a_time_that_can_t_be_is_refused_in_the_units_that_are_typed(
    typed: str, told: str, command: list[str], run: Run, scripted: ScriptedHub
) -> None:
    """Before anybody is asked."""
    ran = run("board", *command, "--ttl", typed)
    assert (ran.status, scripted.received) == (2, [])
    assert ran.err.startswith(f"error: {told}. Next: ")


def test_until_when_is_said_by_the_clock_of_who_reads(
    run: Run, scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim and a reservation alike, as the rows of the board; a zone without a name is UTC, and that is said."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    claim = {**CLAIM, "expires_at": "2026-01-02T17:11:07.250Z"}
    one = {"pattern": "src", "holder": "bob", "task": None, "expires_at": claim["expires_at"], "path": "src"}
    listed = {"room": "demo", "items": [one], "more": False}
    scripted.play(answer(200, claim), answer(200, listed), answer(200, listed), answer(200, claim))
    assert "until 2026-01-03 02:11 · thread" in run("board", "claim", "work/login").out
    assert "2026-01-03 02:11" in run("board", "reserve").out
    assert run("board", "reserve", "--check", "src").out == "src is reserved by @bob until 2026-01-03 02:11\n"
    monkeypatch.setenv("TZ", "XYZ-3")
    told = run("board", "renew", "work/login")
    assert ("until 2026-01-02 17:11 · thread" in told.out, "days are those of UTC" in told.err) == (True, True)


def test_a_claim_that_stands_is_not_made_longer_without_a_word(run: Run, scripted: ScriptedHub) -> None:
    """Claiming again shows it as it is; what lets it last longer is said."""
    scripted.play(*[answer(200, CLAIM)] * 4)
    assert run("board", "claim", "login", "--ttl", "30").err == ""
    assert run("board", "claim", "login").err == ""
    assert run("board", "claim", "login", "--ttl", "30").err == f"{ALREADY} 30\n"
    assert run("board", "claim", "login", "--ttl", "2h", "--handle", "elsewhere").err == f"{ALREADY} 2h\n"


@pytest.mark.parametrize("number", [2**63, 10**40, 0, -1, 1e400])
def test_a_token_that_can_t_be_is_none(number: float, run: Run, scripted: ScriptedHub, home: Path) -> None:
    """A broken file in the folder: the handle counts then."""
    assert home
    place = tokens.folder(scripted.url, "demo", "avery")
    tokens.keep(place, "work/login", THREAD, 1)
    (kept,) = tokens.kept(place)
    Path(kept.place).write_text(json.dumps({"task": "work/login", "thread": THREAD, "token": number}))
    scripted.play(answer(200, CLAIM))
    assert run("board", "renew", "login").status == 0
    assert asked(scripted) == [{}]


def test_a_token_that_is_typed_is_one_that_can_be(run: Run) -> None:
    """The refusal names the flag, not a field of the request."""
    ran = run("board", "renew", "login", "--token", str(2**63))
    assert ran.err.startswith(f"error: --token is a number from 1 to {2**63 - 1}, not {2**63}. Next: ")


def test_what_was_released_is_told_by_its_key(run: Run, scripted: ScriptedHub) -> None:
    """However it was named."""
    scripted.play(*[answer(200, {"task": "work/login", "thread": THREAD, "held_by": None})] * 2)
    assert run("board", "release", THREAD[-8:]).out == "✓ released work/login\n"
    assert json.loads(run("board", "release", "LOGIN", "--json").out)["task"] == "work/login"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("resolve", "login"), "✓ resolved work/login · was held by @sec"),
        (("dismiss", "login"), "✓ dismissed work/login · was held by @sec"),
        (("answer", "login", "15m"), "✓ answered work/login · was held by @sec"),
        (("block", "login", "--on", "#1"), "✓ blocked work/login · held by @sec"),
        (("block", "login", "--on", "#1", "--handle", "sec"), "✓ blocked work/login"),
        (("resolve", "login", "--handle", "sec"), "✓ resolved work/login"),
    ],
)
def test_a_claim_that_has_ended_with_its_task_was_held(
    words: tuple[str, ...], line: str, run: Run, scripted: ScriptedHub
) -> None:
    """One that goes on is held; who did it is told nothing of their own."""
    scripted.play(answer(200, {"task": "work/login", "thread": THREAD, "held_by": "sec"}))
    assert run("board", *words).out == f"{line}\n"


@pytest.mark.parametrize("words", [("board",), ("board", "log"), ("board", "ready")])
@pytest.mark.parametrize(
    ("named", "found"), [("EST5EDT", "EST5EDT"), (":Europe/Paris", "Europe/Paris"), ("Nope/X", ""), ("CET-1CEST", "")]
)
def test_one_rule_says_whose_day_it_is(
    words: tuple[str, ...], named: str, found: str, run: Run, scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zone's name in $TZ counts in every command; what is none is UTC, and is said."""
    monkeypatch.setenv("TZ", named)
    scripted.play(answer(200, LOG if "log" in words else PAGE))
    ran = run(*words, "--room", "demo")
    said = f'TZ is "{named}", which is no time zone: days are those of UTC; say --tz Europe/Paris\n'
    assert (ran.status, ran.err, zone()) == (0, "" if found else said, found)
    if "log" in words:
        assert f"tz={found or 'UTC'} " in scripted.received[0].line.replace("%2F", "/")
    wrong = run(*words, "--tz", "Nope/X")
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.err == 'error: --tz is "Nope/X", which is no time zone. Next: the same with --tz Europe/Paris\n'


def test_a_row_shows_the_answers_that_the_hub_reads_in_it() -> None:
    """However its document writes them; a closed one offers none."""
    decision = row(kind="decision", options=["15m", "60m"], meta={"options": "15m, 60m"})
    assert drawn(decision)[-1].strip() == "[15m] [60m]"
    assert "[15m]" not in "\n".join(drawn({**decision, "status": "resolved"}))


def test_a_row_that_is_closed_says_how() -> None:
    """The answer of a decision, and what goes on elsewhere; not of one that was opened again."""
    closed = {"key": "decisions/ttl", "kind": "decision", "status": "resolved", "options": ["15m", "60m"]}
    answered, promoted = {"answer": "60m"}, {"promoted": True}
    small = "decisions/ttl · resolved → 60m · unowned · 5m ago"
    assert drawn(row(**closed, meta=answered))[-1].strip() == small
    assert "decisions/ttl · promoted · unowned" in drawn(row(**closed, meta=promoted))[-1]
    assert "  promoted  " in drawn(row(**closed, meta=promoted), view="table")[-1]
    opened = row(status="open", meta={**answered, **promoted})
    assert "work/login · open · unowned" in drawn(opened)[-1]


def test_a_decision_is_filed_with_its_options(run: Run, scripted: ScriptedHub) -> None:
    """Each in an option of its own."""
    scripted.play(answer(201, TASK))
    words = ("board", "new", "TTL?", "--kind", "decision", "--option", "15m", "--option", "a, or b")
    assert run(*words).status == 0
    assert asked(scripted) == [{"title": "TTL?", "kind": "decision", "options": ["15m", "a, or b"]}]


def test_a_task_is_filed_behind_others(run: Run, scripted: ScriptedHub) -> None:
    """Each in an option of its own, with how urgent it is."""
    scripted.play(answer(201, TASK))
    words = ("board", "new", "Run it", "--depends-on", "work/a", "--depends-on", "3e9c04b7", "--priority", "high")
    assert run(*words).status == 0
    assert asked(scripted) == [{"title": "Run it", "depends_on": ["work/a", "3e9c04b7"], "priority": "high"}]


def test_a_claim_says_what_its_task_waits_for(run: Run, scripted: ScriptedHub) -> None:
    """It is theirs all the same."""
    keys = [f"work/{letter}" for letter in "abcde"]
    scripted.play(*[answer(200, {**CLAIM, "waits_for": some}) for some in (keys[:1], keys, [])])
    assert run("board", "claim", "work/login").out.splitlines()[1:] == ["  it waits for work/a"]
    said = run("board", "claim", "work/login").out.splitlines()[1:]
    assert said == ["  it waits for work/a, work/b, work/c and 2 more"]
    assert len(run("board", "claim", "work/login").out.splitlines()) == 1


@pytest.mark.parametrize("words", [("new", "x", "--assign", "@nobody"), ("claim", "work/login", "--to", "nobody")])
def test_who_is_unknown_is_named_without_a_number(run: Run, scripted: ScriptedHub, words: tuple[str, ...]) -> None:
    """It is for programs: they find it in --json."""
    unknown = {"slug": "handle.unregistered", "status": 403, "detail": "@nobody is not a registered agent or user"}
    scripted.play(*[answer(403, unknown)] * 2)
    refused = run("board", *words)
    assert (refused.status, refused.err) == (
        4,
        (
            "error: @nobody is not a registered agent or user."
            " Next: mycelium agent create <handle> (a person: mycelium user create <handle>)\n"
        ),
    )
    assert json.loads(run("board", *words, "--json").err)["status"] == 403


@pytest.mark.parametrize(("field", "is_said"), [("owner", False), ("assignee", False), ("nope", True)])
def test_a_field_of_each_row_is_not_said_to_be_missing(field: str, is_said: bool) -> None:
    """Nobody holds any of them: that is no mistake in the name of the field."""
    lines = drawn(row(group=["-"]), group=field)
    assert (lines[-1] == f"no row here has a field {field}") is is_said


LEAVING = """
import os, signal, sys, threading, time
from mycelium_cli import main

def stop_it():
    frames = lambda: sys._current_frames()[threading.main_thread().ident]
    while frames().f_code.co_name != "_shutdown":
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)

def execute(args):
    threading.Thread(target=stop_it).start()
    raise {error}

main.execute = execute
main.run()
"""


@pytest.mark.parametrize("error", ["BrokenPipeError", "KeyboardInterrupt"])
def test_ctrl_c_while_it_leaves_shows_nothing(error: str) -> None:
    """As in a pipe whose reader ends by the same Ctrl-C."""
    program = LEAVING.replace("{error}", error)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")
