"""Agents' credentials and tokens, against a real OIDC server; the hub is one that says whom it trusts.

That a hub lets such tokens in, and what it calls who brought one, is tested with a real hub in `e2e/`.
"""

from __future__ import annotations

import io
import json
import os
import pty
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Ran, Run
from clients.cli.tests.scripted import ScriptedHub, answer
from e2e import oidc_server
from e2e.oidc_server import OidcServer
from mycelium_cli import warnings_once
from mycelium_cli.errors import FORBIDDEN, NOT_FOUND, OK, USAGE
from mycelium_cli.sign_in import agent_credentials, agent_tokens, agents
from mycelium_cli.sign_in.agent_credentials import Credential

UGLY = "p+l%2Fu s:&=/?\"'"
MYCELIUM = Path(sys.executable).parent / "mycelium"


@pytest.fixture(scope="module")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    """One issuer for all of these tests; each has agents of its own."""
    with oidc_server.started(tmp_path_factory.mktemp("idp"), realm="agents") as server:
        yield server


def health(*issuers: str, enabled: bool = True) -> bytes:
    """What a hub says of signing in."""
    return answer(200, {"auth": {"enabled": enabled, "issuers": list(issuers), "audience": "mycelium"}})


def whoami() -> bytes:
    return answer(200, {"handle": "sec", "registered": True, "kind": "agent", "name": "", "auth": {"enabled": True}})


def sent(hub: ScriptedHub) -> list[str]:
    """The credentials of the requests for anything else than /health; empty where none was sent."""
    rows = [request for request in hub.received if " /health " not in request.line]
    return [request.headers.get("authorization", "") for request in rows]


def store(run: Run, monkeypatch: pytest.MonkeyPatch, handle: str, secret: str, *more: str) -> Ran:
    """`agent credential set`, with the secret on stdin."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{secret}\n"))
    return run("agent", "credential", "set", handle, "--secret-stdin", *more)


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process remembers of others' answers is another's in each test."""
    monkeypatch.setattr(agents, "_tried", {})
    warnings_once.forget()
    monkeypatch.setattr(agent_tokens, "_own", {})


@pytest.fixture
def sec(idp: OidcServer, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent with a credential on this machine, at a hub that trusts its issuer; its secret."""
    monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "sec")
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_ISSUER", idp.issuer)
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_AUDIENCE", "mycelium")
    secret = idp.add_agent("sec", UGLY)
    assert store(run, monkeypatch, "sec", secret).status == OK
    scripted.play(health(idp.issuer))
    return secret


def tokens_asked(idp: OidcServer) -> int:
    return idp.requests.get("/token", 0)


def test_the_token_of_an_agent_is_asked_for_once_and_kept(
    sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run, home: Path
) -> None:
    """Two commands, one request to the issuer, one look at the hub; the files are this user's alone."""
    before = tokens_asked(idp)
    scripted.play(whoami(), whoami())
    assert run("whoami").status == run("whoami").status == OK
    first, second = sent(scripted)
    assert first.startswith("Bearer ey")
    assert first == second
    assert tokens_asked(idp) == before + 1
    assert [request.line for request in scripted.received].count("GET /health HTTP/1.1") == 1
    kept = [home / "agent-credentials.json", home / "agent-tokens" / "sec.json"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == [0o600, 0o600]
    assert stat.S_IMODE((home / "agent-tokens").stat().st_mode) == 0o700


def test_no_command_shows_a_secret_or_a_token(sec: str, scripted: ScriptedHub, run: Run, home: Path) -> None:
    """`show` and `ls` say as what an agent signs in, and until when its token is good; `--verbose` tells no more."""
    scripted.play(whoami())
    said = [*run("whoami", "--verbose", "--sources")]
    token = json.loads((home / "agent-tokens" / "sec.json").read_text())["token"]
    for words in (["show", "sec"], ["show", "sec", "--json"], ["ls"], ["ls", "--json", "--verbose"]):
        ran = run("agent", "credential", *words)
        assert ran.status == OK
        said += [*ran]
    shown = json.loads(run("agent", "credential", "show", "sec", "--json").out)
    assert (shown["client_id"], shown["token_cached"], shown["audience"]) == ("sec", True, "mycelium")
    text = "".join(map(str, said))
    assert sec not in text
    assert token not in text
    assert token.rpartition(".")[2] not in text


def test_an_expired_token_is_asked_for_again(
    sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run, home: Path
) -> None:
    """Without a word; and the hub is asked anew whether it trusts the issuer."""
    scripted.play(whoami(), health(idp.issuer), whoami())
    assert run("whoami").status == OK
    age(home, 20)
    ran = run("whoami")
    assert (ran.status, ran.err) == (OK, "")
    first, second = sent(scripted)
    assert first.startswith("Bearer ey")
    assert second.startswith("Bearer ey")
    assert first != second


def age(home: Path, left_s: float) -> None:
    """Let the kept token end so soon: a request must not arrive with one that ended on its way."""
    place = home / "agent-tokens" / "sec.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"expires_at": time.time() + left_s}))


def test_twenty_commands_at_once_ask_for_one_token(sec: str, idp: OidcServer, scripted: ScriptedHub) -> None:
    """One asks, the rest take what it got; none is told to wait."""
    before = tokens_asked(idp)
    scripted.play(*[whoami()] * 20)
    started = [
        subprocess.Popen([MYCELIUM, "whoami"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(20)
    ]
    ended = [process.communicate(timeout=60)[1] for process in started]
    assert [(process.returncode, said) for process, said in zip(started, ended, strict=True)] == [(0, b"")] * 20
    assert len(set(sent(scripted))) == 1
    assert len(sent(scripted)) == 20
    assert tokens_asked(idp) == before + 1


def test_a_hub_that_does_not_trust_the_issuer_gets_no_token(
    sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run
) -> None:
    """The command goes on without, says why once, and the issuer is not even asked."""
    before = tokens_asked(idp)
    scripted.script = [health("https://sso.example.com"), whoami()]
    ran = run("whoami")
    assert ran.status == OK
    assert sent(scripted) == [""]
    assert tokens_asked(idp) == before
    why = f"the hub at {scripted.url} does not trust {idp.issuer}. Going on without."
    assert ran.err == f"warning: @sec has no token: {why} Next: mycelium agent credential show sec\n"


def test_a_hub_with_sign_in_off_is_sent_no_token(sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run) -> None:
    """And nothing is said about it."""
    before = tokens_asked(idp)
    scripted.script = [health(enabled=False), whoami()]
    ran = run("whoami")
    assert (ran.status, ran.err, sent(scripted)) == (OK, "", [""])
    assert tokens_asked(idp) == before


def test_a_token_is_for_the_hub_that_said_so(
    sec: str, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another hub is asked first, and gets none when it trusts somebody else."""
    scripted.play(whoami())
    assert run("whoami").status == OK
    with ScriptedHub() as other:
        other.play(health("https://sso.example.com"), whoami())
        monkeypatch.setenv("MYCELIUM_API_URL", other.url)
        assert run("whoami").status == OK
        assert sent(other) == [""]


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, {"error": "invalid_client", "error_description": UGLY}, "gives the client sec none (invalid_client)"),
        (400, {"error": UGLY}, "gives the client sec none (status 400)"),
        (503, {"error": "busy"}, "can't be reached (status 503)"),
        (200, {"access_token": "two words"}, "answered with something that is no bearer token"),
        (200, {"access_token": "ey", "token_type": "DPoP"}, "answered with something that is no bearer token"),
    ],
)
def test_without_a_token_the_request_goes_out_as_it_is(
    status: int, body: dict[str, str], told: str, sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run
) -> None:
    """Why is told once and in one line; what an issuer repeats of the secret is not."""
    scripted.play(whoami(), whoami())
    idp.answer_instead("/token", status, body, times=2 if status == 401 else 1)
    ran = run("whoami")
    assert (ran.status, sent(scripted)) == (OK, [""])
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert sec not in ran.err
    shown = json.loads(run("agent", "credential", "show", "sec", "--json").out)
    assert told in shown["last_failure"]


def test_a_token_that_the_hub_refuses_is_replaced_once(
    sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run
) -> None:
    """The issuer may have changed its keys; a second refusal is the answer."""
    refused = answer(401, {"slug": "token.refused", "detail": "the token's key is not known"})
    scripted.play(refused, health(idp.issuer), whoami())
    assert run("whoami").status == OK
    first, second = sent(scripted)
    assert first != second
    scripted.play(refused, health(idp.issuer), refused)
    ran = run("room", "ls")
    assert ran.status == FORBIDDEN
    assert ran.err.startswith("error: the token's key is not known")
    assert len(sent(scripted)) == 4


def test_an_issuer_that_is_away_does_not_take_the_last_seconds(
    sec: str, idp: OidcServer, scripted: ScriptedHub, run: Run, home: Path
) -> None:
    """A token that has some left is better than none."""
    scripted.play(whoami(), health(idp.issuer), whoami())
    assert run("whoami").status == OK
    age(home, 20)
    idp.answer_instead("/token", 503, {})
    assert run("whoami").status == OK
    first, second = sent(scripted)
    assert first == second


@pytest.mark.parametrize("said", [answer(200, {"name": "another program"}), health("https://sso.example.com"),
                                  health(enabled=False)])  # fmt: skip
def test_another_program_at_the_hubs_address_gets_not_even_the_last_seconds(
    said: bytes, sec: str, scripted: ScriptedHub, run: Run, home: Path
) -> None:
    """Whoever answers there is asked anew with each token."""
    scripted.play(whoami(), said, whoami())
    assert run("whoami").status == OK
    age(home, 20)
    assert run("whoami").status == OK
    assert sent(scripted)[-1] == ""


def test_a_container_needs_no_file(
    idp: OidcServer, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything from the environment, in a home that nobody can write to."""
    secret = idp.add_agent("bot-client", UGLY)
    named = {"HANDLE": "bot", "AUTH_ISSUER": idp.issuer, "AUTH_CLIENT_ID": "bot-client", "AUTH_CLIENT_SECRET": secret}
    for name, value in named.items():
        monkeypatch.setenv(f"MYCELIUM_AGENT_{name}", value)
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_AUDIENCE", "mycelium")
    monkeypatch.setenv("MYCELIUM_HOME", "/dev/null/nowhere")
    scripted.play(health(idp.issuer), whoami(), whoami())
    assert run("whoami") == run("whoami")
    assert [one[:9] for one in sent(scripted)] == ["Bearer ey", "Bearer ey"]
    shown = json.loads(run("agent", "credential", "ls", "--json").out)["items"]
    assert [(row["handle"], row["client_id"]) for row in shown] == [("bot", "bot-client")]
    scripted.play(whoami())
    run("presence", "idle", "--handle", "other")
    assert sent(scripted)[-1] == ""


def test_a_token_of_the_environment_is_sent_as_it_is(
    sec: str, scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any credential, and never renewed: a refusal is the answer."""
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_TOKEN", "from-a-ci-job")
    scripted.script = [answer(401, {"slug": "token.refused", "detail": "expired"})]
    assert run("room", "ls").status == FORBIDDEN
    assert sent(scripted) == ["Bearer from-a-ci-job"]


def test_a_secret_is_typed_unseen(home: Path, idp: OidcServer) -> None:
    """At a terminal it is asked for, and does not show."""
    master, slave = pty.openpty()
    command: list[str | Path] = [MYCELIUM, "agent", "credential", "set", "sec", "--issuer", idp.issuer]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen = b""
    while b"secret of @sec: " not in seen:
        seen += os.read(master, 1000)
    os.write(master, b"hunter2-hunter2\n")
    while b"signs in as sec" not in seen:
        seen += os.read(master, 1000)
    assert process.wait(30) == 0
    os.close(master)
    assert b"hunter2" not in seen
    assert json.loads((home / "agent-credentials.json").read_text())["agents"]["sec"]["client_secret"] == (
        "hunter2-hunter2"
    )


def test_ctrl_c_at_the_question_leaves_nothing(home: Path) -> None:
    """Not half a file, and not an empty one."""
    master, slave = pty.openpty()
    command: list[str | Path] = ["setsid", "--ctty", MYCELIUM, "agent", "credential", "set", "sec"]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while b"secret of @sec: " not in seen:
        seen += os.read(master, 1000)
    os.write(master, b"hunt\x03")
    assert process.wait(30) == 130
    os.close(master)
    assert not (home / "agent-credentials.json").exists()


@pytest.mark.parametrize(
    ("slug", "status", "cause", "hint"),
    [
        ("token.missing", 401, "the hub at {url} wants to know who you are, and no token was sent", ""),
        ("token.refused", 401, "as the hub says it", "mycelium login"),
        (
            "handle.forbidden",
            403,
            "as the hub says it",
            "mycelium whoami --sources (MYCELIUM_AGENT_HANDLE says @avery)",
        ),
        ("room.closed", 403, "as the hub says it", "as the hub hints"),
    ],
)
def test_a_refusal_says_what_mends_it(
    slug: str, status: int, cause: str, hint: str, scripted: ScriptedHub, run: Run
) -> None:
    """In one line; what the hub says of anything else stays."""
    problem = {"slug": slug, "detail": "as the hub says it", "next": "as the hub hints"}
    scripted.play(answer(status, problem))
    if slug == "token.missing":
        hint = "mycelium login (or, for an agent of this machine: mycelium agent credential set avery)"
    ran = run("room", "ls")
    assert ran == (FORBIDDEN, "", f"error: {cause.format(url=scripted.url)}. Next: {hint}\n")


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(run: Run) -> None:
    """Others can read it there."""
    ran = run("agent", "credential", "set", "sec", "hunter2-hunter2")
    assert ran.status == USAGE
    assert ran.err.startswith("error: a secret does not go on the command line")
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("wrong", ["", "two\nlines", "ü-secret", "a\tb"])
def test_a_secret_that_can_not_be_one_is_refused(
    wrong: str, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not shown, and nothing is written."""
    ran = store(run, monkeypatch, "sec", wrong)
    assert ran.status == USAGE
    assert wrong == "" or wrong not in ran.err
    assert not (home / "agent-credentials.json").exists()


def test_an_agent_without_a_credential_is_told_how_to_get_one(run: Run) -> None:
    """By `show` and by `rm`."""
    for verb in ("show", "rm"):
        ran = run("agent", "credential", verb, "sec")
        said = "error: @sec has no credential on this machine. Next: mycelium agent credential set sec\n"
        assert ran == (NOT_FOUND, "", said)


def test_rm_takes_the_credential_and_the_token(sec: str, scripted: ScriptedHub, run: Run, home: Path) -> None:
    """Later commands send none."""
    scripted.play(whoami(), whoami())
    assert run("whoami").status == OK
    ran = run("agent", "credential", "rm", "@Sec")
    assert ran == (
        OK,
        "removed the credential of @sec\n",
        "to cut the agent off everywhere, revoke its client at the issuer\n",
    )
    assert not (home / "agent-tokens" / "sec.json").exists()
    assert run("whoami").status == OK
    assert sent(scripted)[-1] == ""


def test_a_file_that_is_none_of_ours_is_told(home: Path, run: Run) -> None:
    """Credentials that can't be read are not the same as none."""
    home.mkdir()
    (home / "agent-credentials.json").write_text('{"agents": [1]}')
    ran = run("agent", "credential", "ls")
    assert ran.status == USAGE
    assert "agent-credentials.json is not one that this program wrote" in ran.err


def test_a_file_that_others_could_read_is_closed_to_them(home: Path, run: Run) -> None:
    """Copied here, or restored from a backup; as the file of people's tokens is."""
    home.mkdir()
    file = home / "agent-credentials.json"
    file.write_text(json.dumps({"agents": {"sec": {"client_id": "sec", "client_secret": "x"}}}))
    file.chmod(0o644)
    assert run("agent", "credential", "ls").status == OK
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with agent_tokens.locked("sec"):
        agent_tokens.write("sec", agent_tokens.Kept([], "a token", time.time() + 600, 600.0))
    kept = home / "agent-tokens" / "sec.json"
    kept.chmod(0o644)
    assert agent_tokens.read("sec", []).token == "a token"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for place in (file, kept):
        place.unlink()
        os.mkfifo(place)  # whoever reads it waits for somebody who writes
    assert agent_tokens.read("sec", []).token == ""
    ran = run("agent", "credential", "ls")
    assert (ran.status, ran.err) == (USAGE, f"error: cannot read {file}: it is no regular file. Next: mend {file}\n")


def test_two_who_write_at_once_lose_nothing(home: Path) -> None:
    """Each reads, changes and writes alone."""

    def add(number: int) -> None:
        one = Credential(f"client-{number}", "a secret")
        agent_credentials.change(lambda known: known.update({f"agent-{number}": one}))

    writers = [threading.Thread(target=add, args=(number,)) for number in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert len(agent_credentials.read()) == 20
    assert sorted(path.name for path in home.iterdir()) == ["agent-credentials.json"]
