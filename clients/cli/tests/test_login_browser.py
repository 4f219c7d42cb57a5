"""The port to which the browser comes back: it takes one answer, from whom it is waited for, and shows a page."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import parse_qsl, urlsplit

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.issuing import attempt_at, document
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli import config
from mycelium_cli.errors import FORBIDDEN, Failure
from mycelium_cli.sign_in import browser
from mycelium_cli.sign_in.browser import Listener

ISSUER = "https://id.example"


@pytest.fixture
def listener() -> Iterator[Listener]:
    """One that waits for the answer to the request `s1`, by this issuer."""
    with Listener(0, "s1", ISSUER) as found:
        serving = threading.Thread(target=found.serve_forever, args=(0.01,))
        serving.start()
        yield found
        found.shutdown()
        serving.join(5)


def visit(listener: Listener, target: str, method: str = "GET", host: str = "") -> tuple[int, str, dict[str, str]]:
    """What a browser is shown there."""
    line = HTTPConnection("127.0.0.1", listener.server_address[1], timeout=5)
    try:
        line.request(method, target, headers={"Host": host} if host else {})
        reply = line.getresponse()
        return reply.status, reply.read().decode(), {name.lower(): value for name, value in reply.getheaders()}
    finally:
        line.close()


def test_the_answer_is_taken_once_and_a_page_says_so(listener: Listener) -> None:
    """The page loads nothing, is not kept, and holds nothing of the answer."""
    status, page, headers = visit(listener, "/callback?code=the-code&state=s1&iss=https%3A%2F%2Fid.example")
    assert (status, listener.answered.is_set(), listener.answer["code"]) == (200, True, "the-code")
    assert "You can close this window." in page
    assert "the-code" not in page
    assert headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert headers["cache-control"] == "no-store"
    again, page, _ = visit(listener, "/callback?code=another&state=s1&iss=https%3A%2F%2Fid.example")
    assert (again, listener.answer["code"]) == (410, "the-code")
    assert "has had its answer" in page


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("/callback?code=c&state=s2&iss=https%3A%2F%2Fid.example", "", 400),
        ("/callback?code=c&iss=https%3A%2F%2Fid.example", "", 400),
        ("/callback?code=c&state=%C3%A9&iss=https%3A%2F%2Fid.example", "", 400),
        ("/callback?code=c&state=s1&iss=https%3A%2F%2Fother.example", "", 400),
        ("/callback?code=c&state=s1", "", 400),
        ("/callback?code=c&code=d&state=s1&iss=https%3A%2F%2Fid.example", "", 400),
        ("/callback?code=c&state=s1&iss=https%3A%2F%2Fid.example", "evil.example", 400),
        ("/other?code=c&state=s1&iss=https%3A%2F%2Fid.example", "", 404),
        ("/", "", 404),
    ],
)
def test_what_is_no_answer_to_this_request_is_refused_and_the_wait_goes_on(
    listener: Listener, target: str, host: str, status: int
) -> None:
    """Another state, another issuer, things said twice, a name that leads here from outside."""
    assert visit(listener, target, host=host)[0] == status
    assert not listener.answered.is_set()
    assert visit(listener, "/callback?code=c&state=s1&iss=https%3A%2F%2Fid.example")[0] == 200


def test_only_reading_is_answered(listener: Listener) -> None:
    """A page elsewhere can't post an answer here."""
    assert visit(listener, "/callback?code=c&state=s1&iss=https%3A%2F%2Fid.example", "POST")[0] == 501
    assert not listener.answered.is_set()


def test_a_browser_that_connects_and_says_nothing_holds_nobody_up(listener: Listener) -> None:
    """They open lines that they may need later."""
    with socket.create_connection(("127.0.0.1", listener.server_address[1])):
        assert visit(listener, "/callback?code=c&state=s1&iss=https%3A%2F%2Fid.example")[0] == 200


@pytest.mark.parametrize(
    ("environment", "platform", "there"),
    [
        ({}, "linux", False),
        ({"BROWSER": "w3m"}, "linux", True),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "1 2 3 4"}, "darwin", False),
    ],
)
def test_where_nobody_sees_a_browser_none_is_opened(environment: dict[str, str], platform: str, there: bool) -> None:
    """A machine without a screen, or one that is reached over SSH."""
    assert browser.is_there(environment, platform) is there


def test_nobody_who_comes_back_is_told_after_a_while(scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait has an end, and so has the port."""
    monkeypatch.setattr(browser, "open_in_browser", subprocess.Popen)
    monkeypatch.setattr(browser, "_address", lambda *_: [sys.executable, "-c", ""])
    told: list[str] = []
    before = set(threading.enumerate())
    with pytest.raises(Failure, match="nobody signed in within") as failed:
        browser.sign_in(attempt_at(scripted.url), told.append, within_s=0.01)
    assert failed.value.hint == "mycelium login, or mycelium login --device"
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(10)
    assert not [thread for thread in left if thread.is_alive()]


def test_a_browser_that_does_not_open_is_told(listener: Listener) -> None:
    """The person waits for it, and can open the address by hand."""
    told: list[str] = []
    browser._watch(subprocess.Popen(["false"]), listener, told.append)
    said = "the browser did not open: open the address above, or Ctrl-C and then: mycelium login --device"
    assert told == [said]
    browser._watch(subprocess.Popen(["true"]), listener, told.append)
    listener.answered.set()
    browser._watch(subprocess.Popen(["false"]), listener, told.append)
    assert told == [said]


def test_a_busy_port_says_which_and_what_to_do(
    scripted: ScriptedHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a browser is opened, and with nothing written."""
    monkeypatch.setenv("BROWSER", "true")
    scripted.play(answer(200, {"auth": {"enabled": True, "issuers": [scripted.url]}}), document(scripted.url))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("MYCELIUM_LOGIN_REDIRECT_PORT", str(port))
        ran = run("login")
    assert ran.status == 1
    assert ran.err == (
        f"error: port {port} of this machine (login.redirect_port) is in use (Address already in use). Next:"
        " mycelium login --device, or mycelium config set login.redirect_port 0 for any free port\n"
    )
    assert not config.read_file()


def test_a_denial_in_the_browser_is_told(scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the issuer's word for it, made harmless."""

    def denied(url: str) -> subprocess.Popen[bytes]:
        query = dict(parse_qsl(urlsplit(url).query))
        program = "import sys, urllib.request as u; u.urlopen(sys.argv[1])"
        back = (
            f"{query['redirect_uri']}?error=access_denied&error_description=not%1B%5B31m+today&state={query['state']}"
        )
        return subprocess.Popen([sys.executable, "-c", program, back])

    monkeypatch.setattr(browser, "open_in_browser", denied)
    with pytest.raises(Failure) as failed:
        browser.sign_in(attempt_at(scripted.url), lambda _words: None)
    assert (failed.value.exit_status, failed.value.cause) == (
        FORBIDDEN,
        "not signed in: access_denied: not\\x1b[31m today",
    )
