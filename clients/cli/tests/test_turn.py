"""`await` and `respond` as far as they need no hub: the command that is run, its environment, how it ends.

Delivery itself, and a loop through restarts, is tested with a real hub in `e2e/`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import CUT, MESSAGE, ScriptedHub, answer
from mycelium_cli.api import Caller, Hub
from mycelium_cli.context import Here
from mycelium_cli.errors import UNREACHABLE, Failure
from mycelium_cli.turn.handed import FIELDS, VARIABLES
from mycelium_cli.turn.handover import environment, hand_over, run_command
from mycelium_cli.turn.mailbox import Address, Mailbox, passes

TURN = {"message": {**MESSAGE, "sender_name": "Avery Quinn"}, "earlier": [], "redelivered": False, "ack": "a1"}


def mailbox_at(url: str, said: list[str], waits: list[float]) -> Mailbox:
    hub = Hub(url, Caller("sec", "s1", ""))
    return Mailbox(hub, Address("demo", "sec"), on_lost=said.append, pause=waits.append)


def test_the_command_gets_json_on_stdin_and_the_context_in_its_environment(tmp_path: Path) -> None:
    """The documented variables, and a session that can't acknowledge for the loop."""
    variables = environment(TURN, mailbox_at("http://hub:8000", [], []))
    assert set(variables) == set(VARIABLES)
    assert run_command(f"cat > {tmp_path}/in; env > {tmp_path}/env; exit 7", TURN, variables) == 7
    assert json.loads((tmp_path / "in").read_text()) == TURN
    found = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    expected = {
        "MYCELIUM_ROOM": "demo",
        "MYCELIUM_ACTIVE_ROOM": "demo",
        "MYCELIUM_HANDLE": "sec",
        "MYCELIUM_AGENT_HANDLE": "sec",
        "MYCELIUM_API_URL": "http://hub:8000",
        "MYCELIUM_SESSION": "s1.exec",
        "MYCELIUM_SENDER": "avery",
        "MYCELIUM_SENDER_NAME": "Avery Quinn",
        "MYCELIUM_PROMPT": "hello",
        "MYCELIUM_REPLY_TO": MESSAGE["id"],
        "MYCELIUM_THREAD": "",
        "MYCELIUM_TASK": "",
    }
    assert {name: found[name] for name in expected} == expected


def test_a_command_that_ignores_its_stdin_is_fine_and_a_killed_one_is_not() -> None:
    """Only exit 0 is success."""
    assert run_command("true", {"text": "x" * 200_000}, {}) == 0
    assert run_command("kill -9 $$", TURN, {}) == 137


def test_a_prompt_too_long_for_the_environment_is_cut_there_but_whole_on_stdin(tmp_path: Path) -> None:
    """Linux refuses a variable of 128 KiB."""
    turn = {**TURN, "message": {**MESSAGE, "content": "ü" * 120_000}}
    variables = environment(turn, mailbox_at("http://hub:8000", [], []))
    assert run_command(f"cat > {tmp_path}/in", turn, variables) == 0
    assert json.loads((tmp_path / "in").read_text()) == turn
    assert variables["MYCELIUM_PROMPT"] == "ü" * 50_000


def test_an_interrupt_ends_the_command_and_all_it_started(tmp_path: Path) -> None:
    """Nobody is left behind when the loop is told to end."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    main_thread = threading.get_ident()

    def interrupt() -> None:
        ready.read_text()
        signal.pthread_kill(main_thread, signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        run_command(f"sh -c 'echo $$ > {tmp_path}/pid; echo > {ready}; exec sleep 300' & wait", TURN, {})
    watcher.join(5)
    inner = int((tmp_path / "pid").read_text())
    assert _ended(inner)


def _ended(pid: int) -> bool:
    """Whether a process ends within five seconds."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 5)[0])
    finally:
        os.close(handle)


def test_a_wait_that_was_cut_is_asked_again_under_its_key(scripted: ScriptedHub) -> None:
    """So the answer that was on its way comes once more."""
    scripted.play(answer(204), CUT, answer(503, {"slug": "unavailable", "detail": "x"}), answer(200, TURN))
    said: list[str] = []
    waits: list[float] = []
    assert mailbox_at(scripted.url, said, waits).next(None) == TURN
    keys = scripted.keys()
    assert keys[0] != keys[1]
    assert keys[1] == keys[2] == keys[3]
    assert scripted.received[1].document() == {"handle": "sec", "timeout_s": 300.0, "confirm": True}
    assert len(said) == 1
    assert len(waits) == 2


@pytest.mark.parametrize("first", [CUT, answer(503, {"slug": "unavailable", "detail": "starting"})])
def test_a_first_wait_that_reached_the_hub_goes_on_too(first: bytes, scripted: ScriptedHub) -> None:
    """An agent that waits quietly has had no answer yet when the hub is restarted."""
    scripted.play(first, answer(200, TURN))
    said: list[str] = []
    assert mailbox_at(scripted.url, said, []).next(None) == TURN
    assert len(set(scripted.keys())) == 1
    assert len(said) == 1


def test_a_wait_at_a_hub_that_is_not_there_fails_at_once(scripted: ScriptedHub) -> None:
    """Nothing left this machine, or a stranger answered: a wrong address must be seen."""
    scripted.play(answer(502, b"Bad Gateway", kind="text/plain"))
    for url in (scripted.url, "http://127.0.0.1:1"):
        with pytest.raises(Failure) as failed:
            mailbox_at(url, [], []).next(None)
        assert failed.value.exit_status == UNREACHABLE
    assert len(scripted.received) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422])
def test_a_wait_that_is_refused_ends(status: int, scripted: ScriptedHub) -> None:
    """Repeating a refused identity would only flood the hub."""
    scripted.play(answer(204), answer(status, {"slug": "x", "detail": "no"}))
    with pytest.raises(Failure) as refused:
        mailbox_at(scripted.url, [], []).next(None)
    assert refused.value.http_status == status


def test_what_may_pass_is_waited_out() -> None:
    """Away, busy, broken."""
    assert passes(Failure("gone", exit_status=UNREACHABLE))
    assert passes(Failure("busy", problem={"status": 429}))
    assert passes(Failure("broken", problem={"status": 500}))
    assert not passes(Failure("no", problem={"status": 403}))


def test_a_message_counts_as_received_only_after_it_was_printed(scripted: ScriptedHub, run: Run) -> None:
    """The report follows the output."""
    scripted.play(answer(200, TURN), answer(204))
    ran = run("await", "--handle", "@Sec", "--json")
    assert json.loads(ran.out) == TURN
    assert [request.line.split()[1] for request in scripted.received] == [
        "/api/rooms/demo/await",
        "/api/rooms/demo/ack",
    ]
    assert scripted.received[1].document() == {"handle": "sec", "ack": "a1", "outcome": "received"}


def test_nothing_came_is_an_exit_status_of_its_own(scripted: ScriptedHub, run: Run) -> None:
    """6, with a line on stderr and nothing on stdout."""
    scripted.play(answer(204))
    assert run("await", "--timeout", "0") == (6, "", "nothing came for @avery in demo within 0 s\n")


def test_respond_inside_exec_answers_what_the_loop_was_given(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session is another one, so the environment says it; flags win."""
    monkeypatch.setenv("MYCELIUM_REPLY_TO", "m1")
    monkeypatch.setenv("MYCELIUM_THREAD", "t1")
    scripted.play(answer(201, MESSAGE), answer(201, MESSAGE))
    run("respond", "ok")
    run("respond", "--task", "work/x", "ok")
    assert [request.document() for request in scripted.received] == [
        {"handle": "avery", "content": "ok", "task": "t1", "reply_to": "m1"},
        {"handle": "avery", "content": "ok", "task": "work/x"},
    ]


def test_an_answer_to_nothing_says_so(scripted: ScriptedHub, run: Run) -> None:
    """It is a post like others then; one that answers something, or goes where a flag says, is no news."""
    scripted.play(answer(201, MESSAGE), answer(201, {**MESSAGE, "reply_to": "m1"}), answer(201, MESSAGE))
    said = "answers nothing that this session was given: posted to the channel\n"
    assert run("respond", "ok") == (0, "sent 1a2b3c4d\n", said)
    assert run("respond", "ok").err == ""
    assert run("respond", "--task", "work/x", "ok").err == ""


def test_the_help_lists_what_exec_hands_over(run: Run) -> None:
    """Whoever writes an agent finds it there."""
    out = run("await", "--help").out
    assert all(f"\n  {name} " in out for name in [*VARIABLES, *FIELDS])


def failing(tmp_path: Path, until: int) -> str:
    """A command that fails with the status of a hub that can't be reached, until its n-th run."""
    return f"echo run >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -ge {until} ] || exit 5"


def test_a_failure_while_the_hub_is_away_uses_up_no_try(scripted: ScriptedHub, tmp_path: Path) -> None:
    """A restart takes longer than three tries: the message must not be parked for it."""
    alive = answer(200, b"ok", kind="text/plain")
    away = (CUT, answer(502, b"Bad Gateway", kind="text/plain"), alive)
    scripted.play(*away, CUT, alive, CUT, alive, CUT, alive, answer(204))
    said: list[str] = []
    waits: list[float] = []
    counted: list[float] = []
    mailbox = mailbox_at(scripted.url, said, waits)
    assert hand_over(failing(tmp_path, 5), TURN, mailbox, pause=counted.append)
    assert (len(waits), counted) == (5, [])
    assert (
        said
        == ["--exec: exit 5 on message 1a2b3c4d, and the hub can't be reached: waiting for it, this try doesn't count"]
        * 4
    )
    assert scripted.received[-1].document()["outcome"] == "acknowledged"


def test_three_failures_at_a_hub_that_answers_park_the_message(
    scripted: ScriptedHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pauses grow, and the line says how to read what was parked."""
    scripted.play(*[answer(200, b"ok", kind="text/plain")] * 3, answer(204))
    counted: list[float] = []
    mailbox = mailbox_at(scripted.url, [], [])
    assert not hand_over(failing(tmp_path, 9), TURN, mailbox, pause=counted.append)
    assert counted == [1.0, 5.0]
    assert scripted.received[-1].document()["outcome"] == "parked"
    assert capsys.readouterr().err.splitlines()[-1] == (
        "--exec: parked message 1a2b3c4d after 3 tries; it isn't handed out again. "
        "To read it: mycelium room messages --room demo --history 1a2b3c4d"
    )


def test_a_hub_that_comes_back_elsewhere_is_found(
    scripted: ScriptedHub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is read again before each try: for the next wait, and for what --exec hands over."""
    monkeypatch.delenv("MYCELIUM_API_URL")
    here, place = Here(), home / "run" / "hub.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"url": scripted.url}))
    with ScriptedHub() as moved:

        def move(_pause_s: float) -> None:
            if place.exists() and len(scripted.received) == 1:
                place.unlink()  # the hub is down: nobody goes to the default address meanwhile
            else:
                place.write_text(json.dumps({"url": moved.url}))

        mailbox = Mailbox(here.hub(), Address("demo", "sec"), on_lost=lambda _: None, pause=move)
        scripted.play(CUT, CUT)
        moved.play(answer(200, TURN))
        assert mailbox.next(None) == TURN
        assert environment(TURN, mailbox)["MYCELIUM_API_URL"] == moved.url
        assert len(set(scripted.keys() + moved.keys())) == 1
