"""The program as a process: how it ends, what it loads, what it writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clients.cli.tests import issuing
from clients.cli.tests.scripted import MESSAGE, ScriptedHub, answer, stream
from e2e import tls

PROGRAM = [sys.executable, "-m", "mycelium_cli"]
# Each of these costs more than a command may: the budget is +80 ms over a bare interpreter.
HEAVY = {
    "ssl",
    "rich",
    "typer",
    "tomlkit",
    "importlib.metadata",
    "subprocess",
    "asyncio",
    "difflib",
    "logging",
    "tempfile",
}


def run(*words: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *words], input=stdin, capture_output=True, timeout=30, check=False, env={**os.environ, **more}
    )


def loaded(code: str) -> set[str]:
    """The modules that are loaded after some code has run in a new interpreter."""
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nsys.stderr.write(' '.join(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stderr.decode().split())


def test_help_loads_no_command_and_nothing_heavy() -> None:
    """What isn't loaded needs no time."""
    found = loaded("from mycelium_cli import main\nmain.execute(['--help'])")
    assert not found & (HEAVY | {"http.client", "tomllib", "socket", "mycelium_cli.api", "mycelium_cli.room"})


def test_a_request_over_plain_http_loads_no_tls_and_no_file_parser(scripted: ScriptedHub) -> None:
    """The import of ssl takes longer than the request."""
    scripted.play(answer(201, MESSAGE))
    found = loaded("from mycelium_cli import main\nassert main.execute(['room', 'send', 'hi']) == 0")
    assert "http.client" in found
    assert not found & (HEAVY | {"tomllib", "mycelium_cli.people"})


def test_an_issuer_with_tls_is_asked_after_a_hub_without(scripted: ScriptedHub, tmp_path: Path) -> None:
    """A hub of this machine, and a company's sign-in; who is not proven by a certificate is not spoken to."""
    place = tls.certificate(tmp_path)
    with ScriptedHub(tls.served_with(place)) as issuer:
        health = {"status": "ok", "auth": {"enabled": True, "issuers": [issuer.url]}}
        scripted.play(answer(200, health), answer(200, health))
        issuer.play(issuing.document(issuer.url), issuing.refused("unauthorized_client"))
        ran = run("login", "--device", SSL_CERT_FILE=str(place))
        assert ran.stderr.startswith(f"error: the issuer {issuer.url} gives no code to enter: unauth".encode())
        assert ran.returncode == 4
        asked = [(request.line.split()[1], request.headers["host"]) for request in issuer.received]
        host = issuer.url.removeprefix("https://")
        assert asked == [("/.well-known/openid-configuration", host), ("/device", host)]
        unknown = run("login", "--device", SSL_CERT_FILE="/dev/null")
        assert (unknown.returncode, unknown.stderr.count(b"\n")) == (5, 1)
        assert b"CERTIFICATE_VERIFY_FAILED" in unknown.stderr
        assert len(issuer.received) == 2


def test_a_text_comes_from_a_pipe_whole(scripted: ScriptedHub) -> None:
    """The last line end is the pipe's, everything else is the text's."""
    scripted.play(answer(201, MESSAGE), answer(201, MESSAGE))
    assert run("room", "send", stdin="👩‍💻 Grüße\n\nend\n".encode()).returncode == 0
    assert run("room", "send", "-", stdin=b"x" * 65_536).returncode == 0
    assert [request.document()["content"] for request in scripted.received] == ["👩‍💻 Grüße\n\nend", "x" * 65_536]


def test_a_closed_stdin_is_an_empty_one(scripted: ScriptedHub) -> None:
    """The hub says what it thinks of a text without a word."""
    scripted.play(answer(422, {"slug": "content.empty", "detail": "a message can't be empty"}))
    line = ["sh", "-c", 'exec "$0" -m mycelium_cli room send - <&-', sys.executable]
    done = subprocess.run(line, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (2, b"error: a message can't be empty. Next: mycelium room send --help\n")
    assert scripted.received[0].document()["content"] == ""


def test_a_text_that_is_not_utf8_is_refused_with_the_place() -> None:
    """Nothing is sent."""
    ran = run("room", "send", "--room", "r", "--handle", "h", stdin=b"ab\xff")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr == b"error: the text on stdin is not UTF-8 (byte 2). Next: mycelium room send --help\n"


@pytest.mark.parametrize(
    "words",
    [
        ("memory", "get", b"\xff"),
        ("memory", "set", b"a\xff", "text"),
        ("memory", "search", b"\xff"),
        ("memory", "ls", b"\xff"),
        ("memory", "set", "a", "text", "--tags", b"\xff"),
        ("memory", "set", "a", "text", "-m", b"a=\xff"),
        ("room", "show", b"\xff"),
        ("agent", "show", b"\xff", "--room", "r"),
        ("board", "messages", b"\xff"),
    ],
)
def test_a_word_that_is_not_utf8_is_wrong_usage_and_no_bug(words: tuple[str | bytes, ...]) -> None:
    """Nothing is called so; the shell may have made it of a file's name."""
    ran = run(*words, MYCELIUM_ACTIVE_ROOM="r", MYCELIUM_AGENT_HANDLE="h")  # type: ignore[arg-type]
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert b"bug" not in ran.stderr
    assert ran.stderr.count(b"\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_another_encoding_gets_escapes_and_valid_json(encoding: str, scripted: ScriptedHub) -> None:
    """Never a traceback for an emoji."""
    page = {"items": [{**MESSAGE, "content": "Grüße 👩‍💻"}], "next": None, "older_before": None}
    scripted.play(answer(200, page), answer(200, page))
    text = run("room", "messages", PYTHONIOENCODING=encoding)
    assert (text.returncode, text.stderr) == (0, b"")
    document = run("room", "messages", "--json", PYTHONIOENCODING=encoding)
    assert document.stdout.isascii()
    assert b"\\ud83d\\udc69" in document.stdout


def test_a_reader_that_leaves_is_no_error(scripted: ScriptedHub) -> None:
    """`| head` must not fill the screen with it."""
    page = {"items": [{**MESSAGE, "content": "x" * 1000}] * 500, "next": None, "older_before": None}
    scripted.play(answer(200, page))
    process = subprocess.Popen([*PROGRAM, "room", "messages"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 141


def test_a_full_disk_is_one_line() -> None:
    """It is said, and counts."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run([*PROGRAM, "config", "show"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=30)
    assert (ran.returncode, ran.stderr) == (
        1,
        b"error: No space left on device. Next: free space there, then the same again\n",
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_ctrl_c_ends_a_watch_at_once_and_silently(number: int, status: int, scripted: ScriptedHub) -> None:
    """130 and not a word."""
    scripted.play(stream(": connected\n\n"))
    scripted.hold()
    process = subprocess.Popen([*PROGRAM, "room", "watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stdout is not None
    assert process.stderr.readline() == b"watching demo; Ctrl-C ends it\n"
    process.send_signal(number)
    assert process.wait(10) == status
    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    process.stdout.close()
    process.stderr.close()


def test_sigterm_ends_a_loop_and_its_command(scripted: ScriptedHub, tmp_path: Path) -> None:
    """Cleanly: 143, the command is gone, and the message is not acknowledged."""
    os.mkfifo(tmp_path / "ready")
    turn = {"message": MESSAGE, "earlier": [], "redelivered": False, "ack": "a1", "reason": "mention"}
    scripted.play(answer(200, turn))
    command = f"echo $$ > {tmp_path}/ready; exec sleep 300"
    process = subprocess.Popen([*PROGRAM, "await", "--loop", "--exec", command], stderr=subprocess.PIPE)
    inner = int((tmp_path / "ready").read_text())
    process.terminate()
    assert process.wait(10) == 143
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert not Path(f"/proc/{inner}").exists()
    assert [request.line.split()[1] for request in scripted.received] == ["/api/rooms/demo/await"]


def test_the_hubs_program_is_run_with_what_was_typed(tmp_path: Path) -> None:
    """`up`, `down` and `logs` become it; without it they say what this install is."""
    program = tmp_path / "mycelium-hub"
    program.write_text('#!/bin/sh\necho "$@"\nexit 9\n', encoding="utf-8")
    program.chmod(0o755)
    code = "import sys; sys.executable = '/nowhere/python'; from mycelium_cli.main import run; run()"

    def ran(path: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PATH": f"{path}:/usr/bin:/bin"}
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, env=environment, check=False)

    up = ran(tmp_path, "up", "-d", "--port", "0")
    assert (up.returncode, up.stdout) == (9, b"up --detach --port 0\n")
    logs = ran(tmp_path, "logs", "rooms", "--tail", "5", "-f", "--json")
    assert logs.stdout == b"logs rooms --json --tail 5 --follow\n"
    alone = ran(tmp_path / "empty", "up")
    assert alone.returncode == 5
    assert alone.stderr.startswith(b"error: mycelium-hub is not installed here")


def test_completion_answers_the_shell() -> None:
    """What bash asks, and what it gets."""
    ran = run(_MYCELIUM_COMPLETE="bash_complete", COMP_WORDS="mycelium room sen", COMP_CWORD="2")
    assert ran.stdout == b"plain,send\n"


def test_the_environment_alone_is_enough_and_nothing_is_written(
    scripted: ScriptedHub, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A job in a container: no home, no settings, the credential passed on."""
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.delenv("MYCELIUM_HOME")
    monkeypatch.delenv("MYCELIUM_ACTIVE_ROOM")
    monkeypatch.setenv("MYCELIUM_ROOM_ID", "build")
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_TOKEN", "t0ken")
    refused = {"slug": "handle.unregistered", "detail": "@avery is not a registered agent or user"}
    turn = {"message": MESSAGE, "earlier": [], "redelivered": False, "ack": "a1", "reason": "mention"}
    scripted.play(
        answer(201, MESSAGE), answer(200, {"items": [], "next": None, "older_before": None}), answer(200, turn),
        answer(204), answer(403, refused),
    )  # fmt: skip
    before = sorted(tmp_path.rglob("*"))
    lines = (["room", "send", "done"], ["room", "messages", "--limit", "10"], ["await"], ["respond", "ok"])
    assert [run(*line).returncode for line in lines] == [0, 0, 0, 4]
    assert {request.headers["authorization"] for request in scripted.received} == {"Bearer t0ken"}
    assert scripted.received[0].line == "POST /api/rooms/build/messages HTTP/1.1"
    assert sorted(tmp_path.rglob("*")) == before


IN_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_a_wait_on_a_terminal_says_who_waits_where(scripted: ScriptedHub) -> None:
    """An empty screen for five minutes looks like a hang."""
    scripted.play(answer(204), answer(204))
    words = ["await", "--timeout", "0"]
    ran = subprocess.run(
        [sys.executable, "-c", IN_TERMINAL, *PROGRAM, *words], capture_output=True, input=b"", timeout=30, check=False
    )
    said = "@avery waits in demo, for 0 s at most; Ctrl-C ends it\r\nnothing came for @avery in demo within 0 s\r\n"
    assert (ran.returncode, ran.stdout.decode()) == (6, said)
    assert run(*words).stderr == b"nothing came for @avery in demo within 0 s\n"


def test_a_deletion_that_is_answered_no_is_refused_and_not_wrong_usage(scripted: ScriptedHub) -> None:
    """On a terminal it asks, and nothing leaves."""
    ran = subprocess.run(
        [sys.executable, "-c", IN_TERMINAL, *PROGRAM, "room", "delete", "demo"],
        input=b"n\n", capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stdout.decode().endswith(
        "[y/N] error: nothing was deleted. Next: the same with y, to delete it after all\r\n"
    )
    assert scripted.received == []
