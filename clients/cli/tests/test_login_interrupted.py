"""Ctrl-C at every step of a sign-in: nothing is written before all of it is there, and nothing by halves then."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clients.cli.tests.issuing import SECRETS, document, granted
from clients.cli.tests.scripted import _read, answer
from mycelium_cli import config

STEPS = ["whom the hub trusts", "the issuer's document", "a code", "the tokens", "who that is", "a user of the hub"]


def answers(url: str) -> list[bytes]:
    """Of a hub and an issuer in one: what each step is answered."""
    code = {"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": url, "interval": 1}
    return [
        answer(200, {"auth": {"enabled": True, "issuers": [url]}}),
        document(url),
        answer(200, code),
        granted(),
        answer(200, {"handle": "avery", "auth": {"enabled": True}}),
        answer(200, {"handle": "avery"}),
    ]


@pytest.mark.parametrize("step", range(len(STEPS) + 1), ids=[*STEPS, "all answered"])
def test_ctrl_c_leaves_nothing_half_written(step: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 130 and no word of it; the tokens are kept once the hub has said whose they are."""
    monkeypatch.setenv("MYCELIUM_LOGIN_SCOPES", "profile")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("MYCELIUM_API_URL", url)
        command = [str(Path(sys.executable).parent / "mycelium"), "login", "--device"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as login:
            for number, content in enumerate(answers(url)):
                connection, _ = server.accept()
                with connection:
                    _read(connection)
                    if number == step:
                        login.send_signal(signal.SIGINT)
                        login.wait(20)
                        break
                    connection.sendall(content)
            out, err = login.communicate(timeout=90)
    assert not any(secret in out + err for secret in SECRETS)
    if step == len(STEPS):
        assert (login.returncode, out) == (0, f"signed in as @avery ({url})\n")
        assert config.from_file("identity.name") == ("avery", config.path())
        return
    assert (login.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert "error" not in err
    if step < STEPS.index("a user of the hub"):
        assert not home.exists()
        return
    (kept,) = json.loads((home / "token.json").read_text(encoding="utf-8"))["hubs"].values()
    assert (kept["access_token"], kept["handle"]) == (SECRETS[0], "avery")
    assert sorted(path.name for path in home.iterdir()) == ["token.json", "token.json.lock"]
