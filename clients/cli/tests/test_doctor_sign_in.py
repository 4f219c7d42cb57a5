"""`doctor` on signing in: what the hub wants, what is sent, whether they fit; and the files that tokens are in."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from clients.cli.tests import issuing
from clients.cli.tests.conftest import Run
from clients.cli.tests.scripted import ScriptedHub, answer
from clients.cli.tests.test_doctor import healthy, told, write
from mycelium_cli import warnings_once
from mycelium_cli.doctor import files, sign_in
from mycelium_cli.doctor.finding import FIXED, NOTE, OK, WRONG
from mycelium_cli.sign_in import agent_credentials, agent_tokens, agents, token_file

AT = "http://issuer.example"
FIT = {"auth": {"enabled": True, "issuers": [AT], "audience": "mycelium", "localhost_bypass": False}}


@pytest.fixture(autouse=True)
def _untold() -> None:
    """What a process tells once, it tells in each test."""
    warnings_once.forget()
    agents._tried.clear()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address that nobody answers at: a test says what it would have told."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("mycelium_cli.sign_in.discovery.discover", lambda named: named)
    return "http://127.0.0.1:1"


def health(**auth: Any) -> dict[str, Any]:
    return {"auth": {**FIT["auth"], **auth}, "warnings": []}


def jwt(**claims: Any) -> str:
    """A token that says this; nobody here checks its signature."""
    said = base64.urlsafe_b64encode(json.dumps({"iss": AT, **claims}).encode()).decode().rstrip("=")
    return f"e30.{said}.AA"


def signed_in(hub: str, **changed: Any) -> None:
    lasts = {"expires_at": 4_000_000_000.0, "access_token": jwt(exp=4_000_000_000, iat=1)}
    token_file.keep(hub, issuing.person_at(AT, **(lasts | changed)))


def test_nobody_is_signed_in(hub: str) -> None:
    """With what to type; with the bypass of the hub's own machine it is no fault."""
    assert told(sign_in.check(health(), own=False)) == [
        (WRONG, "on, and nobody is signed in here",
         "mycelium login, or for an agent: mycelium agent credential set <handle>"),
    ]  # fmt: skip
    assert told(sign_in.check(health(localhost_bypass=True), own=True)) == [
        (OK, "the hub's own machine needs no token (auth.localhost_bypass)", ""),
        (OK, "on, and not needed here; nobody is signed in", ""),
    ]
    signed_in("http://other.example")
    ((_, seen, _),) = told(sign_in.check(health(), own=False))
    assert seen == "on, and nobody is signed in here, but at http://other.example:80"
    assert hub


def test_who_is_signed_in_until_when_and_what_then(hub: str) -> None:
    """Renewed by itself; not renewed since the issuer gave nothing for it, or did not answer."""
    until = "on; signed in as @avery at http://issuer.example, until 2096-10-02T07:06:40Z"
    signed_in(hub)
    assert told(sign_in.check(health(), own=False)) == [(OK, f"{until}, renewed by itself", "")]
    signed_in(hub, refresh_token="")
    assert told(sign_in.check(health(), own=False)) == [
        (NOTE, f"{until}; the issuer gave nothing to renew it with", "mycelium login, then"),
    ]
    signed_in(hub, failed_at=1.0)
    assert told(sign_in.check(health(), own=False)) == [(NOTE, f"{until}; the issuer did not renew it just now", "")]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"ended": "invalid_grant", "access_token": ""}, "has ended: invalid_grant"),
        ({"expires_at": 1.0, "refresh_token": ""},
         "was over at 1970-01-01T00:00:01Z; the issuer gave nothing to renew it with"),
        ({"expires_at": 1.0, "failed_at": time.time() + 1000},
         "was over at 1970-01-01T00:00:01Z; the issuer has not renewed it"),
    ],
)  # fmt: skip
def test_a_sign_in_that_is_over_says_why(hub: str, changed: dict[str, Any], why: str) -> None:
    """And the way back."""
    signed_in(hub, **changed)
    assert told(sign_in.check(health(), own=False)) == [
        (WRONG, f"the sign-in at http://issuer.example {why}", "mycelium login")
    ]


def test_an_issuer_that_the_hub_does_not_trust_is_wrong(hub: str) -> None:
    """The hub's own are named."""
    signed_in(hub)
    found = told(sign_in.check(health(issuers=["https://sso.example"]), own=False))
    assert found[1] == (
        WRONG,
        "the token is of http://issuer.example; the hub trusts https://sso.example",
        "mycelium login --issuer https://sso.example",
    )


def test_an_issuer_that_is_away_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tokens are good without it."""
    monkeypatch.setenv("MYCELIUM_API_URL", "http://127.0.0.1:1")
    away = "http://127.0.0.1:2"
    token_file.keep("http://127.0.0.1:1", issuing.person_at(away))
    (_, found) = told(sign_in.check(health(issuers=[away]), own=False))
    assert (found[0], "nothing can be renewed now" in found[1]) == (NOTE, True)


def test_a_clock_that_the_token_shows_to_be_wrong_is_said(hub: str) -> None:
    """By when it begins, and by how long it lasts."""
    now_s = time.time()
    signed_in(hub, access_token=jwt(iat=int(now_s) + 600, exp=4_000_000_000))
    state, seen, hint = told(sign_in.check(health(), own=False))[1]
    assert (state, seen.partition(": ")[2]) == (WRONG, "the token begins later")
    assert hint.startswith("timedatectl")
    signed_in(hub, access_token=jwt(iat=1, exp=4_000_000_000 - 300))
    state, seen, _ = told(sign_in.check(health(), own=False))[1]
    assert (state, seen) == (NOTE, "this machine's clock was 300 s ahead of the issuer's when the token came")


def test_what_the_hub_warns_of_is_told_with_who_can_mend_it(hub: str) -> None:
    """No issuer at all is wrong, a missing audience worth a note."""
    warned = health(issuers=[]) | {"warnings": ["sign-in: no issuer is trusted", "another"]}
    found = told(sign_in.check(warned, own=True))
    assert found[0] == (WRONG, "no issuer is trusted", "[[auth.issuers]] in config.toml, then mycelium config apply")
    warned = health() | {"warnings": ["sign-in: auth.audience is not set"]}
    assert told(sign_in.check(warned, own=False))[0] == (NOTE, "auth.audience is not set", "tell who runs the hub")
    assert hub


def test_settings_of_a_hub_that_does_not_run_are_looked_at(home: Path) -> None:
    """On without issuers, on without an audience."""
    assert told(sign_in.check_settings()) == []
    write(home, "[auth]\nenabled = true\n")
    ((state, seen, _),) = told(sign_in.check_settings())
    assert (state, seen) == (WRONG, "auth.enabled is on and no issuer is trusted: nobody could sign in")
    write(home, '[auth]\nenabled = true\n[[auth.issuers]]\nissuer = "https://sso.example"\n')
    ((state, seen, _),) = told(sign_in.check_settings())
    assert (state, seen.partition(":")[0]) == (NOTE, "auth.audience is not set")
    write(home, '[auth]\nenabled = true\naudience = "m"\n[[auth.issuers]]\nissuer = "https://sso.example"\n')
    assert told(sign_in.check_settings()) == []


def test_a_credential_without_a_token_says_why(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No issuer to ask, or what the issuer said; never the secret."""
    monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "builder")
    secret = agent_credentials.Credential("builder", "the-secret")
    agent_credentials.change(lambda all_of: all_of.update(builder=secret))
    assert told(sign_in.check(health(), own=False)) == [
        (WRONG, "@builder has a credential, and no issuer to use it at", "mycelium config set agent_auth.issuer <url>"),
    ]
    monkeypatch.setenv("MYCELIUM_AGENT_AUTH_ISSUER", AT)
    refused = agent_tokens.Kept([AT, "builder", "", ""], why="invalid_client")
    agent_tokens.write("builder", refused)
    assert told(sign_in.check(health(), own=False)) == [
        (WRONG, "@builder has a credential, and got no token for this hub: invalid_client",
         "mycelium agent credential show builder"),
    ]  # fmt: skip
    assert hub


def test_a_token_of_the_environment_is_looked_into(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end; what can't be looked into is taken as it is."""
    monkeypatch.setenv(agents.TOKEN, jwt(exp=1))
    state, seen, _ = told(sign_in.check(health(), own=False))[0]
    assert (state, seen) == (WRONG, f"on; the token of {agents.TOKEN} was over at 1970-01-01T00:00:01Z")
    for opaque in ("myc_" + "a" * 43, "a.b.c", "a.bnVsbA.c"):
        monkeypatch.setenv(agents.TOKEN, opaque)
        assert told(sign_in.check(health(), own=False)) == [(OK, f"on; the token comes from {agents.TOKEN}", "")]
    assert hub


def test_whose_name_wins_is_said(hub: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """The sign-in over `identity.name`, and the environment over both, which the hub then refuses."""
    write(home, '[identity]\nname = "other"\n')
    signed_in(hub)
    assert told(sign_in.check(health(), own=False))[1:] == [
        (NOTE, "identity.name is other, but the sign-in as @avery wins over it",
         "mycelium config set identity.name avery"),
    ]  # fmt: skip
    monkeypatch.setenv("MYCELIUM_AGENT_HANDLE", "third")
    state, seen, _ = told(sign_in.check(health(), own=False))[1]
    assert (state, seen) == (
        WRONG,
        "MYCELIUM_AGENT_HANDLE says @third, and the sign-in is @avery's: as @third you are refused",
    )


def test_open_files_with_tokens_are_closed(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The sign-ins, the credentials, the agents' tokens, the folder's join; wherever the first of them is."""
    folder, elsewhere = tmp_path / "work", tmp_path / "token.json"
    monkeypatch.setenv("MYCELIUM_TOKEN_FILE", str(elsewhere))
    (folder / ".mycelium").mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(folder)
    (home / "agent-tokens").mkdir(parents=True)
    places = [elsewhere, home / "agent-credentials.json", home / "agent-tokens" / "builder.json"]
    places.append(folder / ".mycelium" / "member.json")
    for place in places:
        place.write_text("{}")
        place.chmod(0o644)
    exposed = files.exposed()
    assert set(map(str, places)) <= set(exposed)
    ((finding),) = files.check_exposed(exposed)
    assert (finding.state, finding.next) == (WRONG, "mycelium doctor --fix")
    assert finding.mended().state == FIXED
    assert {place.stat().st_mode & 0o777 for place in places} == {0o600}
    assert (home / "agent-tokens").stat().st_mode & 0o777 == 0o700
    assert files.exposed() == []
    ((since),) = files.check_exposed(exposed)  # as when the command itself has used one, and so closed it
    assert (since.state, "now only you can" in since.seen) == (FIXED, True)


def test_a_hub_with_sign_in_is_looked_at_from_elsewhere(scripted: ScriptedHub, run: Run) -> None:
    """A client alone: nothing of the hub is installed, and nobody has signed in."""
    refusal = {"slug": "token.missing", "detail": "this needs a token"}
    scripted.play(
        healthy(auth=FIT["auth"], warnings=["sign-in: auth.audience is not set"]),
        answer(401, refusal),
        answer(401, refusal),
    )
    ran = run("doctor", "--mode", "spoke", "--json")
    assert ran.status == 1
    rows = [row for row in json.loads(ran.out)["items"] if row["part"] in {"sign-in", "hub"}]
    assert [(row["part"], row["state"], row["seen"]) for row in rows[1:]] == [
        ("sign-in", NOTE, "auth.audience is not set"),
        ("sign-in", WRONG, "on, and nobody is signed in here"),
    ]
