"""Addresses that hubs and issuers name: anything may stand there, and none of it is a bug of this program."""

from __future__ import annotations

import shlex

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.issuing import document, served
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli.errors import Failure
from mycelium_cli.sign_in import asking, client_grant
from mycelium_cli.sign_in.client_grant import Grant, NoToken

NONE = (
    "http://[::1", "http://a]", "http://127.0.0.1:99999", "http://127.0.0.1:x", "http:///a", "http://", "//a", "a", "",
    "https://a b", "https://a\r\nX: y", "https://a\x1b[31m", "https://b\u00fccher.example",
    "https:\\a", "javascript:alert(1)", "file:///etc/passwd", "ftp://a", "https://user:word@a",
)  # fmt: skip


@pytest.mark.parametrize("named", NONE)
def test_an_issuer_that_is_no_address_is_the_hubs_fault(scripted: ScriptedHub, run: Run, named: str) -> None:
    """A line that says so, and who mends it."""
    scripted.play(answer(200, {"auth": {"enabled": True, "issuers": [named]}}))
    ran = run("login", "--device")
    assert (ran.status, ran.out, ran.err.count("\n")) == (5, "", 1)
    assert f"the hub at {scripted.url} names an issuer that is no address (" in ran.err
    assert ran.err.endswith("Next: ask who runs it to mend auth.issuers\n")


@pytest.mark.parametrize("endpoint", [NONE[0], NONE[2], NONE[4], NONE[9], NONE[10], NONE[-1]])
@pytest.mark.parametrize("field", ["device_authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_what_an_issuer_says_of_itself_is_looked_at(scripted: ScriptedHub, run: Run, field: str, endpoint: str) -> None:
    """Before anything is sent there."""
    with served([]) as issuer:
        issuer.play(document(issuer.url, **{field: endpoint}))
        scripted.play(answer(200, {"auth": {"enabled": True, "issuers": [issuer.url]}}))
        ran = run("login", "--device")
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert f"the issuer {issuer.url} has an unsafe {field}: " in ran.err
        assert len(issuer.received) == 1
        if field == "token_endpoint":
            issuer.play(document(issuer.url, **{field: endpoint}))
            with pytest.raises(NoToken, match="names no token endpoint"):
                client_grant.ask(Grant(issuer.url, "sec", "secret", "", "", "here"))


@pytest.mark.parametrize("named", [*NONE, "http://a\ud800/"])
def test_an_agent_is_told_why_it_gets_no_token(named: str) -> None:
    """Wherever the address came from: the environment, a file."""
    with pytest.raises(NoToken, match="is no address"):
        client_grant.ask(Grant(named, "sec", "secret", "", "", "here"))
    with pytest.raises(Failure, match="is no address"):
        asking.get(named)


@pytest.mark.parametrize("path", ["/realms/people", "/v2.0?tenant=a", ""])
def test_what_is_an_address_is_one(path: str) -> None:
    """With a port, a path, brackets."""
    for host in ("sso.example.com", "127.0.0.1:8080", "[::1]:8080", "sso"):
        assert asking.is_address(f"https://{host}{path}")
        assert asking.is_address(f"http://{host}{path}")


def test_the_next_command_runs_nothing_that_a_hub_has_named(scripted: ScriptedHub, run: Run) -> None:
    """It is copied into a shell as it stands."""
    evil = "https://a.example/;touch${IFS}b"
    scripted.play(answer(200, {"auth": {"enabled": True, "issuers": [evil, "https://b.example"]}}))
    ran = run("login", "--issuer", "https://c.example")
    assert ran.status == 2
    assert shlex.split(ran.err.partition("Next: ")[2]) == ["mycelium", "login", "--issuer", evil]
