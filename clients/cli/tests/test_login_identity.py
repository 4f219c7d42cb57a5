"""The identity token of a sign-in: only the issuer's own, for this program, in answer to this request."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from clients.cli.tests.issuing import CLIENT, KEY, OTHER_KEY, by_shared_secret, identity, issuer_at, keys, unsigned
from clients.cli.tests.scripted import ScriptedHub, answer
from mycelium_cli.errors import FORBIDDEN, Failure
from mycelium_cli.sign_in import identity_token

LONG_AGO = int(time.time()) - 3600


FORGED: dict[str, Callable[[str], object]] = {
    "none at all": lambda _url: None,
    "no text": lambda _url: 7,
    "no token": lambda _url: "a.b.c",
    "unsigned": lambda url: unsigned(identity(url)),
    "of a shared secret": lambda url: by_shared_secret(identity(url)),
    "of another key": lambda url: identity(url, OTHER_KEY),
    "of another issuer": lambda _url: identity("https://other.example"),
    "for another program": lambda url: identity(url, aud="another"),
    "for several, the last word another's": lambda url: identity(url, aud=[CLIENT, "another"], azp="another"),
    "for several, and nobody's last word": lambda url: identity(url, aud=[CLIENT, "another"]),
    "of another request": lambda url: identity(url, nonce="n2"),
    "of no request": lambda url: identity(url, nonce=None),
    "expired": lambda url: identity(url, iat=LONG_AGO, exp=LONG_AGO + 60),
    "without an end": lambda url: identity(url, exp=None),
    "of nobody": lambda url: identity(url, sub=None),
    "beside another access token": lambda url: identity(url, at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "too long": lambda _url: "a" * 200_000,
}


@pytest.mark.parametrize("kind", FORGED)
def test_an_identity_token_that_does_not_hold_signs_nobody_in(kind: str, scripted: ScriptedHub) -> None:
    """One line, the status of what is not allowed, and nothing of the token in it."""
    token = FORGED[kind](scripted.url)
    scripted.play(keys(KEY))
    tokens = {"id_token": token, "access_token": "an-access-token"}
    with pytest.raises(Failure) as failed:
        identity_token.check(issuer_at(scripted.url), CLIENT, tokens, nonce="n1")
    assert failed.value.exit_status == FORBIDDEN
    assert failed.value.cause.startswith(f"the identity token of {scripted.url} does not hold (")
    assert not isinstance(token, str) or token not in failed.value.line()


ODD: tuple[object, ...] = (
    7, {}, {"kty": "EC", "crv": "brainpoolP256r1", "x": "AA", "y": "AA"}, {"kty": "EC", "crv": "P-256", "x": 5, "y": 6},
    {"kty": "OKP", "crv": "X448", "x": "AAAA"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}, {"kty": "RSA", "n": "é"},
    {"kty": "RSA", "n": 5, "e": []}, {"kty": ["RSA"]}, {"kty": "EC", "kid": 5},
)  # fmt: skip


def test_keys_that_nobody_can_read_are_passed_over(scripted: ScriptedHub) -> None:
    """One that is new to this program keeps nobody out who was signed for with another."""
    good = KEY.as_dict(private=False)
    scripted.play(answer(200, {"keys": [*ODD, good]}), answer(200, {"keys": {"a": good}}), answer(200, {"keys": ODD}))
    tokens = {"id_token": identity(scripted.url), "access_token": "a"}
    identity_token.check(issuer_at(scripted.url), CLIENT, tokens, nonce="n1")
    for _ in range(2):
        with pytest.raises(Failure, match="does not hold"):
            identity_token.check(issuer_at(scripted.url), CLIENT, tokens, nonce="n1")


@pytest.mark.parametrize("alg", ["RS256", "RS512", "PS256"])
def test_a_true_one_is_taken(alg: str, scripted: ScriptedHub) -> None:
    """Among keys of kinds that nobody knows, and keys that are for something else."""
    scripted.play(keys(OTHER_KEY, KEY))
    token = identity(scripted.url, alg=alg)
    identity_token.check(issuer_at(scripted.url), CLIENT, {"id_token": token, "access_token": "a"}, nonce="n1")


def test_without_openid_none_is_needed(scripted: ScriptedHub) -> None:
    """Nor is the issuer asked for its keys then."""
    identity_token.check(issuer_at(scripted.url), CLIENT, {"access_token": "a"}, nonce="n1", wanted=False)
    assert scripted.received == []
