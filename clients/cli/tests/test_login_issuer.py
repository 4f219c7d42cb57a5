"""Whom to sign in with: asked of the hub, never guessed; and what an issuer says of itself."""

from __future__ import annotations

import io

import pytest

from clients.cli.tests.conftest import Run
from clients.cli.tests.issuing import document, form, issuer_at
from clients.cli.tests.issuing import granted as given
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli import config, config_writing
from mycelium_cli.config import Value
from mycelium_cli.errors import Failure
from mycelium_cli.sign_in import asking, discovery, granted

A, B = "https://a.example/realms/people", "https://b.example"


def auth(*issuers: str, enabled: bool = True) -> bytes:
    """What a hub says of signing in."""
    return answer(200, {"status": "ok", "auth": {"enabled": enabled, "issuers": list(issuers)}})


@pytest.mark.parametrize(
    ("health", "status", "said", "hint"),
    [
        (
            auth(A, B),
            2,
            f"the hub trusts more than one issuer: {A}, {B}",
            "mycelium login --issuer <one of them>",
        ),
        (
            auth(enabled=False),
            1,
            "there is nothing to sign in to: the hub at {hub} has sign-in off (auth.enabled)",
            "mycelium iam <handle>",
        ),
        (auth(), 5, "the hub at {hub} trusts no issuer (auth.issuers)", "ask who runs it to name one"),
        (
            b"",
            5,
            "the hub at {hub} can't be reached, so it can't say whom to sign in with",
            "mycelium config set login.issuer <url>, or --issuer <url>",
        ),
    ],
)
def test_where_the_hub_names_no_one_issuer_nothing_is_guessed(
    scripted: ScriptedHub, run: Run, health: bytes, status: int, said: str, hint: str
) -> None:
    """Several, none, sign-in off, no hub: a line each, which says what to do."""
    scripted.play(health)
    assert run("login") == (status, "", f"error: {said.format(hub=scripted.url)}. Next: {hint}\n")
    assert config.from_file("login.issuer") is None


def test_an_issuer_that_the_hub_does_not_trust_is_not_signed_in_with(scripted: ScriptedHub, run: Run) -> None:
    """Else this hub would be sent what is for another."""
    config_writing.write("login.issuer", B)
    for words, source in (((), config.path()), (("--issuer", f"{B}/"), "--issuer")):
        scripted.play(auth(A))
        said = f"the hub at {scripted.url} does not trust the issuer {B} ({source}); it trusts {A}"
        assert run("login", *words) == (2, "", f"error: {said}. Next: mycelium login --issuer {A}\n")


def test_an_issuer_that_is_named_is_asked_though_the_hub_is_down(scripted: ScriptedHub, run: Run) -> None:
    """By flag or setting; here it is down as well, which is another line."""
    scripted.play(b"", b"")
    ran = run("login", "--device", "--issuer", scripted.url)
    assert ran.status == 5
    assert ran.err.startswith(f"error: the issuer at {scripted.url} can't be reached (")


@pytest.mark.parametrize(
    ("slash", "reason", "hint"),
    [
        ("/", "its issuer is not one that this hub trusts", "puts it into auth.issuers to the letter; {hub}/ is there"),
        (
            "",
            "it has no claim `handle`; see auth.handle_claim",
            "sets auth.handle_claim to a claim that holds a handle",
        ),
    ],
)
def test_what_the_hub_has_to_change_is_not_put_to_who_signs_in(
    scripted: ScriptedHub, run: Run, slash: str, reason: str, hint: str
) -> None:
    """A slash too many in its list of issuers, a claim that no token has: signing in again would change nothing."""
    config_writing.write("login.scopes", "profile")
    code = {"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": scripted.url, "expires_in": 60}
    health = answer(200, {"auth": {"enabled": True, "issuers": [scripted.url + slash], "audience": "mycelium"}})
    refusal = {"status": 401, "slug": "token.refused", "detail": f"token rejected: {reason}", "next": "mycelium login"}
    scripted.play(health, document(scripted.url), answer(200, code | {"interval": 1}), given(), answer(401, refusal))
    ran = run("login", "--device")
    said = f"error: the hub at {scripted.url} does not take a token of {scripted.url}: token rejected: {reason}."
    assert ran.status == 4
    assert ran.err.splitlines()[-1] == f"{said} Next: whoever runs the hub {hint.format(hub=scripted.url)}"


def test_an_issuer_is_the_one_that_it_says_it_is(scripted: ScriptedHub) -> None:
    """Else its tokens would pass for another's; a slash at the end makes no other."""
    scripted.play(document(scripted.url), document(f"{scripted.url}/"), document("https://other.example"))
    named = Value(scripted.url, "--issuer")
    assert discovery.discover(named).token_endpoint == f"{scripted.url}/token"
    assert discovery.discover(named).issuer == f"{scripted.url}/"
    with pytest.raises(Failure, match=r"calls itself https://other\.example"):
        discovery.discover(named)
    assert [one.line for one in scripted.received] == ["GET /.well-known/openid-configuration HTTP/1.1"] * 3


@pytest.mark.parametrize("reply", [answer(404, {}), answer(200, b"<html>", kind="text/html"), answer(200, [1])])
def test_something_else_on_that_port_is_told(scripted: ScriptedHub, reply: bytes) -> None:
    """A login page, another program."""
    scripted.play(reply)
    with pytest.raises(Failure, match="does not answer as an OIDC issuer"):
        discovery.discover(Value(scripted.url, "--issuer"))


def test_a_less_private_address_of_an_issuer_is_refused(scripted: ScriptedHub) -> None:
    """A code or a secret would go over the network in the clear."""
    scripted.play(document(scripted.url, token_endpoint="http://elsewhere.example/token"))
    with pytest.raises(Failure, match="unsafe token_endpoint"):
        discovery.discover(Value(scripted.url, "--issuer"))


def test_plain_http_beyond_this_machine_needs_a_person_who_says_so(scripted: ScriptedHub, run: Run) -> None:
    """What a hub names is refused; what a person names is asked."""
    scripted.play(auth("http://id.example"))
    ran = run("login")
    assert ran.status == 2
    assert "names an issuer on plain HTTP, http://id.example: others could read what you type there" in ran.err
    assert "Next: mycelium login --issuer http://id.example, if you trust that network" in ran.err
    discovery._check_line(Value("http://id.example", "--issuer"))
    discovery._check_line(Value("http://id.example", config.path()))


@pytest.mark.parametrize(
    ("by_basic", "sent", "proof"),
    [
        (True, {"grant_type": "g"}, "Basic bXljZWxpdW0tY2xpOnMlMjZjJTNBdA=="),
        (False, {"grant_type": "g", "client_id": "mycelium-cli", "client_secret": "s&c:t"}, ""),
    ],
)
def test_a_client_with_a_secret_proves_itself_as_the_issuer_wants(
    scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch, run: Run, by_basic: bool, sent: dict[str, str], proof: str
) -> None:
    """In a header, each part encoded, or in the form; the secret is kept in a file of its own, and not shown."""
    monkeypatch.setattr("sys.stdin", io.StringIO("s&c:t\n"))
    assert "s&c:t" not in run("config", "set", "login.client_secret").out
    assert "s&c:t" not in run("config", "show").out
    scripted.play(answer(200, {}))
    program = granted.attempt(issuer_at(scripted.url, by_basic=by_basic)).program
    asking.post(f"{scripted.url}/token", {"grant_type": "g", "audience": ""}, program)
    assert form(scripted.received[0]) == sent
    assert scripted.received[0].headers.get("authorization", "") == proof


def test_how_an_issuer_wants_it_is_read_from_its_document(scripted: ScriptedHub) -> None:
    """Both ways or no word of it: the header."""
    ways = (None, ["client_secret_post"], ["client_secret_post", "client_secret_basic"], ["private_key_jwt"])
    for told, by_basic in zip(ways, (True, False, True, True), strict=True):
        scripted.play(document(scripted.url, token_endpoint_auth_methods_supported=told))
        assert discovery.discover(Value(scripted.url, "--issuer")).by_basic is by_basic
