"""The signed-in person's token: for one hub, renewed in time, by one process, and never lost on the way."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.issuing import SECRETS, form, granted, person_at, refused, served
from clients.cli.tests.scripted import CUT, ScriptedHub, answer
from mycelium_cli import context, warnings_once
from mycelium_cli.errors import FORBIDDEN
from mycelium_cli.sign_in import renewal, token_file

ACCESS, REFRESH, NEW_ACCESS, NEW_REFRESH = SECRETS
NOBODY = answer(401, {"slug": "token.missing", "detail": "this needs a token"})
ROOMS = answer(200, {"items": [], "next": None})


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """What one command has told, the next one tells again."""
    warnings_once.forget()


def bearers(hub: ScriptedHub) -> list[str]:
    return [request.headers.get("authorization", "").removeprefix("Bearer ") for request in hub.received]


def test_a_token_goes_to_its_own_hub_and_no_other(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hubs side by side; this machine's names for itself are one."""
    token_file.keep(scripted.url, person_at("https://id.example"))
    assert token_file.find(scripted.url.replace("127.0.0.1", "localhost") + "/") is not None
    with served([ROOMS]) as other:
        monkeypatch.setenv("MYCELIUM_API_URL", other.url)
        assert run("room", "ls").status == 0
        assert bearers(other) == [""]
        token_file.keep(other.url, person_at("https://id.example", access_token="another"))
    monkeypatch.setenv("MYCELIUM_API_URL", scripted.url)
    scripted.play(ROOMS)
    assert run("room", "ls").status == 0
    assert bearers(scripted) == [ACCESS]
    for near in ("http://127.0.0.1:1", f"{scripted.url}/hub", scripted.url.replace("http:", "https:"), "http://evil"):
        assert context.token("avery", near) is None


def test_a_hub_that_has_moved_meanwhile_is_sent_nothing(scripted: ScriptedHub) -> None:
    """A wait goes on at another address; the token does not go with it."""
    token_file.keep(scripted.url, person_at("https://id.example"))
    hub = context.Here().hub()
    assert hub.headers()["Authorization"] == f"Bearer {ACCESS}"
    hub.url = "http://127.0.0.1:1"
    assert "Authorization" not in hub.headers()


def test_the_file_is_for_this_user_alone_and_elsewhere_when_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0600, whole, through a link, and put right when somebody opened it up."""
    elsewhere, link = home.parent / "disk" / "t.json", home.parent / "link.json"
    token_file.keep("http://hub:1", person_at("https://id.example"))
    assert stat.S_IMODE((home / "token.json").stat().st_mode) == 0o600
    assert token_file.path() == str(home / "token.json")
    elsewhere.parent.mkdir()
    link.symlink_to(elsewhere)
    monkeypatch.setenv("MYCELIUM_TOKEN_FILE", str(link))
    assert token_file.find("http://hub:1") is None
    token_file.keep("http://hub:1", person_at("https://id.example"))
    assert link.is_symlink()
    elsewhere.chmod(0o644)
    assert token_file.find("http://hub:1") is not None
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o600
    token_file.keep("http://hub:1", None)
    assert not elsewhere.exists()
    assert [path.name for path in elsewhere.parent.iterdir()] == []


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"hubs": []}', '{"hubs": {"http://hub:1": 7}}', '{"hubs": {"http://hub:1": {"access_token": 7}}}',
     '{"hubs": {"http://hub:1": {"more": 1}}}', "[" * 100_000, "\x00\xff"],
)  # fmt: skip
def test_a_file_that_is_none_of_ours_signs_nobody_in(home: Path, content: str) -> None:
    """No traceback, and no token."""
    home.mkdir()
    (home / "token.json").write_text(content, encoding="utf-8")
    assert context.token("avery", "http://hub:1") is None


def test_a_token_that_is_nearly_over_is_renewed_first(scripted: ScriptedHub, run: Run) -> None:
    """The new pair is kept, the old one gone, and nothing of either is said."""
    with served([granted(2)]) as issuer:
        token_file.keep(scripted.url, person_at(issuer.url, expires_at=time.time() + 5))
        scripted.play(ROOMS)
        ran = run("room", "ls", "--verbose")
        assert form(issuer.received[0]) == {
            "grant_type": "refresh_token", "refresh_token": REFRESH, "client_id": "mycelium-cli",
        }  # fmt: skip
    assert bearers(scripted) == [NEW_ACCESS]
    kept = token_file.find(scripted.url)
    assert kept
    assert (kept.access_token, kept.refresh_token, kept.handle) == (NEW_ACCESS, NEW_REFRESH, "avery")
    assert not any(secret in ran.out + ran.err for secret in SECRETS)


def test_a_token_that_the_hub_refuses_is_renewed_and_asked_with_once_more(scripted: ScriptedHub, run: Run) -> None:
    """Clocks differ, keys change; the second refusal is the answer."""
    no = answer(401, {"slug": "token.refused", "detail": "token rejected: it has expired"})
    with served([granted(2)]) as issuer:
        token_file.keep(scripted.url, person_at(issuer.url))
        scripted.play(no, ROOMS)
        assert run("room", "ls").status == 0
        assert bearers(scripted) == [ACCESS, NEW_ACCESS]


def test_a_refresh_token_that_is_not_replaced_stays(scripted: ScriptedHub) -> None:
    """Not every issuer rotates them."""
    with served([granted(2, refresh_token=None)]) as issuer:
        token_file.keep(scripted.url, person_at(issuer.url, expires_at=1.0))
        found = context.token("avery", scripted.url)
        assert found
        assert found.value == NEW_ACCESS
    kept = token_file.find(scripted.url)
    assert kept
    assert kept.refresh_token == REFRESH


def test_a_sign_in_that_has_ended_is_told_and_no_token_sent(scripted: ScriptedHub, run: Run) -> None:
    """Each command says it once; the hub's own answer decides the status."""
    with served([refused("invalid_grant", error_description=f"{REFRESH} is revoked")]) as issuer:
        token_file.keep(scripted.url, person_at(issuer.url, expires_at=1.0))
        scripted.play(NOBODY, NOBODY)
        for _ in range(2):
            ran = run("room", "ls")
            assert ran.status == FORBIDDEN
            said = f"warning: your sign-in at {issuer.url} has ended (invalid_grant), so no token is sent."
            assert ran.err.startswith(f"{said} Next: mycelium login\n")
            assert ran.err.count("warning:") == 1
            warnings_once.forget()
        assert len(issuer.received) == 1
    assert bearers(scripted) == ["", ""]
    assert REFRESH not in Path(token_file.path()).read_text(encoding="utf-8")


def test_without_a_refresh_token_a_sign_in_ends_with_its_token(scripted: ScriptedHub, run: Run) -> None:
    """Until then it is used to the last second."""
    token_file.keep(scripted.url, person_at("https://id.example", refresh_token="", expires_at=time.time() + 5))
    found = context.token("avery", scripted.url)
    assert found
    assert found.value == ACCESS
    token_file.keep(scripted.url, person_at("https://id.example", refresh_token="", expires_at=1.0))
    scripted.play(ROOMS)
    ran = run("room", "ls")
    assert "warning: your sign-in at https://id.example has ended, so no token is sent. Next: mycelium login" in ran.err
    assert bearers(scripted) == [""]


def test_an_issuer_that_is_away_ends_no_sign_in(scripted: ScriptedHub) -> None:
    """What is left of the token is used; others do not all wait for it too; later it is asked again."""
    with served([CUT, answer(503, {}), granted(2)]) as issuer:
        person = person_at(issuer.url, expires_at=time.time() + 30)
        token_file.keep(scripted.url, person)
        for _ in range(2):
            found = context.token("avery", scripted.url)
            assert found
            assert found.value == ACCESS
        assert len(issuer.received) == 1
        token_file.keep(scripted.url, person._replace(expires_at=1.0))
        assert context.token("avery", scripted.url) is None
        token_file.keep(scripted.url, person._replace(expires_at=1.0))
        found = context.token("avery", scripted.url)
        assert found
        assert found.value == NEW_ACCESS


def test_where_nothing_can_be_written_a_refresh_token_is_not_spent(
    scripted: ScriptedHub, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be the last use of it."""
    with served([granted(2)]) as issuer:
        token_file.keep(scripted.url, person_at(issuer.url, expires_at=1.0))
        monkeypatch.setattr(renewal, "_lock", lambda: None)
        assert context.token("avery", scripted.url) is None
        assert issuer.received == []
    assert "the sign-in can't be renewed, since" in capsys.readouterr().err


def test_completion_says_nothing_of_it(
    scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line on stderr would stand in the middle of what is being typed."""
    monkeypatch.setenv("_MYCELIUM_COMPLETE", "bash_complete")
    token_file.keep(scripted.url, person_at("https://id.example", refresh_token="", expires_at=1.0))
    assert context.token("avery", scripted.url) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_it_is_renewed_loses_no_refresh_token(
    scripted: ScriptedHub, stop: signal.Signals, home: Path
) -> None:
    """The issuer has taken the old one already: the new one is written, then the command ends."""
    command = [str(Path(sys.executable).parent / "mycelium"), "room", "ls"]
    with socket.create_server(("127.0.0.1", 0)) as issuer:
        url = f"http://127.0.0.1:{issuer.getsockname()[1]}"
        token_file.keep(scripted.url, person_at(url, expires_at=1.0))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as renewing:
            connection, _ = issuer.accept()
            with connection:
                asked = b""
                while REFRESH.encode() not in asked:
                    asked += connection.recv(65536)
                renewing.send_signal(stop)
                connection.sendall(granted(2))
            out, err = renewing.communicate(timeout=90)
    assert (renewing.returncode, out, err) == (130 if stop == signal.SIGINT else -signal.SIGTERM, b"", b"")
    kept = json.loads((home / "token.json").read_text(encoding="utf-8"))
    assert [row["refresh_token"] for row in kept["hubs"].values()] == [NEW_REFRESH]
    assert scripted.received == []
