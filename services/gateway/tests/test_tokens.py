"""Which tokens are believed and which are not: a table of forgeries by every algorithm, with real keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import OctKey, OKPKey

from e2e.standin import StandIn
from mycelium_gateway import published_keys
from mycelium_gateway.issuers import AuthSettings, Issuer
from mycelium_gateway.tokens import Tokens
from mycelium_kernel.errors import Refusal
from services.gateway.tests import forging
from services.gateway.tests.forging import ALGORITHMS, AUDIENCE, FORGERIES, ISSUER, OTHER_ISSUER, SECRET, Forgery


@pytest.fixture(scope="module")
def people() -> Iterator[StandIn]:
    yield from _publishing(forging.published())


@pytest.fixture(scope="module")
def agents() -> Iterator[StandIn]:
    yield from _publishing(forging.published(OTHER_ISSUER))


def _publishing(keys: dict[str, Any]) -> Iterator[StandIn]:
    with StandIn(200, keys) as server:
        yield server


def settings(people: StandIn, agents: StandIn, **changed: Any) -> AuthSettings:
    """Two issuers whose keys are on this machine."""
    issuers = (Issuer(ISSUER, people.url, role="user"), Issuer(OTHER_ISSUER, agents.url, role="agent"))
    return AuthSettings(**{"enabled": True, "issuers": issuers, "audience": AUDIENCE, **changed})


@pytest.fixture
def tokens(people: StandIn, agents: StandIn) -> Tokens:
    return Tokens(settings(people, agents))


async def test_a_token_by_every_algorithm_is_believed(tokens: Tokens) -> None:
    """What the table forges is good but for one point: without it, each is accepted."""
    for algorithm in ALGORITHMS:
        found = await tokens.verify(forging.token(algorithm))
        assert (found.handle, found.role, found.issuer, found.subject) == ("alice", "user", ISSUER, "alice")


@pytest.mark.parametrize("forgery", FORGERIES, ids=[forgery.name for forgery in FORGERIES])
async def test_a_forgery_is_refused_by_every_algorithm(tokens: Tokens, people: StandIn, forgery: Forgery) -> None:
    """Each kind is refused for its own reason, and the refusal tells nothing that stands in the token."""
    for algorithm in ALGORITHMS:
        token = forgery.make(algorithm)
        with pytest.raises(Refusal) as refused:
            await tokens.verify(token)
        assert refused.value.slug == "token.refused", algorithm
        assert refused.value.detail.startswith("token rejected: "), algorithm
        assert forgery.words in refused.value.detail, algorithm
        assert SECRET not in str(refused.value)
        assert not any(len(part) > 20 and part in str(refused.value) for part in token.split("."))


@pytest.mark.parametrize(
    ("head", "claims"),
    [
        ({"typ": ...}, {}),
        ({"typ": "JWT"}, {}),
        ({"typ": "application/AT+JWT"}, {}),
        ({"kid": ...}, {}),
        ({"x5t": "abc", "nonce": "abc", "unheard-of": {"a": 1}}, {}),
        ({}, {"aud": ["other", AUDIENCE]}),
        ({}, {"iat": ..., "jti": "x", "typ": "Bearer"}),
        ({}, {"sub": "@Alice"}),
        ({}, {"mycelium_role": "user"}),
        ({}, {"mycelium_role": ["offline", "user"]}),
    ],
)
async def test_what_issuers_may_do_is_accepted(tokens: Tokens, head: dict[str, Any], claims: dict[str, Any]) -> None:
    """Issuers differ: types, names of keys, lists of audiences, handles with an `@`."""
    found = await tokens.verify(forging.token(head=head, **claims))
    assert (found.handle, found.role) == ("alice", "user")


async def test_clocks_may_differ_a_little(tokens: Tokens) -> None:
    """By the leeway, either way."""
    now = time.time()
    assert (await tokens.verify(forging.token(exp=now - 30, nbf=now + 30, iat=now + 30))).handle == "alice"


async def test_each_issuer_has_its_own_audience_role_and_claims(people: StandIn, agents: StandIn) -> None:
    """What an issuer's block says goes before what is set for all."""
    theirs = Issuer(OTHER_ISSUER, agents.url, "robots", "agent", "azp", "kind")
    tokens = Tokens(settings(people, agents, issuers=(Issuer(ISSUER, people.url), theirs), handle_claim="name"))
    robot: dict[str, Any] = {"iss": OTHER_ISSUER, "aud": "robots", "sub": "0b5e"}
    found = await tokens.verify(forging.token("ES256", OTHER_ISSUER, **robot, azp="Release-Agent"))
    assert (found.handle, found.role, found.subject) == ("release-agent", "agent", "0b5e")
    assert (await tokens.verify(forging.token("ES256", OTHER_ISSUER, **robot, azp="bot", kind="user"))).role == "user"
    assert (await tokens.verify(forging.token(name="Bob", sub="77"))).handle == "bob"
    assert not (await tokens.verify(forging.token(name="Bob", sub="78"))).role
    for wrong in ({"aud": AUDIENCE, "azp": "bot"}, {"aud": "robots", "name": "bot"}):
        with pytest.raises(Refusal, match="token rejected"):
            await tokens.verify(forging.token("ES256", OTHER_ISSUER, **{**robot, **wrong}))


async def test_without_an_audience_any_is_taken(people: StandIn, agents: StandIn) -> None:
    """As documented, and warned of."""
    open_to_all = settings(people, agents, audience="")
    tokens = Tokens(open_to_all)
    for audience in ("anything", ["a", "b"], ...):
        assert (await tokens.verify(forging.token(aud=audience))).handle == "alice"
    assert [line for line in open_to_all.warnings() if "auth.audience is not set" in line]


async def test_a_token_is_remembered_no_longer_than_it_lives(people: StandIn, agents: StandIn) -> None:
    """The second request with a token costs no signature; after its time it is refused like any other."""
    now = time.time()
    moment = [now]
    tokens = Tokens(settings(people, agents, leeway_s=10), now=lambda: moment[0])
    token = forging.token(exp=now + 100)
    first = await tokens.verify(token)
    assert await tokens.verify(token) is first
    assert first.expires_at == pytest.approx(now + 110)
    moment[0] = now + 109
    assert await tokens.verify(token) is first
    moment[0] = now + 111
    with pytest.raises(Refusal, match="Signature has expired"):
        await tokens.verify(token)


async def test_few_tokens_are_remembered(people: StandIn, agents: StandIn) -> None:
    """However many come, the memory for them is bounded, and refused ones are not remembered at all."""
    tokens = Tokens(settings(people, agents), remembered=3)
    good = [forging.token("ES256", sub=f"user-{number}") for number in range(5)]
    found = [await tokens.verify(token) for token in good]
    for number in range(5):
        with pytest.raises(Refusal):
            await tokens.verify(forging.token("ES256", sub=f"user {number}"))
    assert [await tokens.verify(token) is known for token, known in zip(good[2:], found[2:], strict=True)] == [True] * 3
    assert await tokens.verify(good[0]) is not found[0]


def test_only_keys_that_can_verify_are_taken() -> None:
    """Weak keys, keys for something else, secrets and nonsense are passed over; the private part is never taken."""
    rsa = forging.key(ISSUER, "rsa")
    public = rsa.as_dict(private=False)
    taken = published_keys.read({**rsa.as_dict(private=True), "kid": "k", "alg": "PS256"})
    assert taken is not None
    assert (taken.kid, taken.algorithms, taken.key.is_private) == ("k", frozenset({"PS256"}), False)
    weak = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
    )
    passed_over: tuple[Any, ...] = (
        {**public, "use": "enc"},
        {**public, "key_ops": ["sign"]},
        {**public, "key_ops": "verify"},
        {**public, "alg": "HS256"},
        {**public, "alg": "ES256"},
        {**public, "alg": ["RS256"]},
        {**public, "kid": 5},
        {**public, "kty": "EC"},
        {**public, "n": weak},
        {**public, "e": "AQ"},
        {**public, "e": "Ag"},
        {**public, "e": "AQAAAAAAAAE"},
        {**public, "n": 5},
        {**public, "n": "é"},
        {"kty": "RSA"},
        {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {"kty": "EC", "crv": "secp256k1", "x": "AQ", "y": "AQ"},
        OctKey.generate_key(256).as_dict(),
        OKPKey.generate_key("Ed25519").as_dict(private=False),
        {"kty": ["RSA"]},
        {},
        [],
        None,
        "key",
    )
    for jwk in passed_over:
        assert published_keys.read(jwk) is None, jwk
