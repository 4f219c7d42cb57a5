"""An issuer's keys: found, kept, renewed, asked for with restraint, and used while the issuer is away."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e import oidc_server, tls
from e2e.oidc_server import OidcServer
from e2e.standin import StandIn
from mycelium_gateway.issuers import AuthSettings, Issuer
from mycelium_gateway.signing_keys import AuthUnavailable
from mycelium_gateway.tokens import Tokens
from mycelium_kernel.errors import Refusal
from services.gateway.tests import forging

DISCOVERY = "/.well-known/openid-configuration"


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture(scope="module")
def _issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    with oidc_server.started(tmp_path_factory.mktemp("issuer")) as server:
        yield server


@pytest.fixture
def issuer(_issuer: OidcServer) -> Iterator[OidcServer]:
    """An issuer that a test may stop and whose keys it may change; the next test finds it up."""
    yield _issuer
    with contextlib.suppress(AssertionError):
        _issuer.start()


def believing(*issuers: Issuer, clock: Hand | None = None, **keys: Any) -> Tokens:
    if clock:
        keys["clock"] = clock
    return Tokens(AuthSettings(enabled=True, issuers=issuers, audience="mycelium", jwks_ttl_s=300), **keys)


class Asked:
    """How often an issuer was asked for its keys since this was made."""

    def __init__(self, issuer: OidcServer, path: str = "/jwks") -> None:
        self._issuer, self._path = issuer, path
        self._before = self._total()

    def _total(self) -> int:
        return self._issuer.requests.get(self._path, 0)

    def __call__(self) -> int:
        return self._total() - self._before


async def test_keys_are_found_once_and_kept(issuer: OidcServer, clock: Hand) -> None:
    """Discovery says where the keys are; many who come at once cost one look, and the next comes when they are old."""
    discovered, asked = Asked(issuer, DISCOVERY), Asked(issuer)
    tokens = believing(Issuer(issuer.issuer, role="user"), clock=clock)
    held = [issuer.user_token(f"user-{number}") for number in range(20)]
    found = await asyncio.gather(*map(tokens.verify, held))
    assert [one.handle for one in found] == [f"user-{number}" for number in range(20)]
    assert (discovered(), asked()) == (1, 1)
    clock.now = 299
    await tokens.verify(held[0])
    assert asked() == 1
    clock.now = 300
    await asyncio.gather(*map(tokens.verify, held))
    assert (discovered(), asked()) == (1, 2)


async def test_keys_may_be_elsewhere_than_the_issuer(issuer: OidcServer) -> None:
    """With `jwks_url` set the issuer's own address is never asked: the hub may not reach it."""
    discovered = Asked(issuer, DISCOVERY)
    tokens = believing(Issuer(issuer.issuer, issuer.jwks_url, role="user"))
    assert (await tokens.verify(issuer.user_token("alice"))).handle == "alice"
    assert discovered() == 0


async def test_keys_may_change_while_requests_run(issuer: OidcServer, clock: Hand) -> None:
    """Every token by the new key is accepted at once, at the cost of one look; those by the old one no longer are."""
    tokens = believing(Issuer(issuer.issuer, role="user"), clock=clock)
    old = issuer.user_token("alice")
    await tokens.verify(old)
    asked = Asked(issuer)
    issuer.rotate()
    new = [issuer.user_token(f"user-{number}") for number in range(20)]
    assert (await tokens.verify(old)).handle == "alice"  # it has not been told yet
    coming = [asyncio.create_task(tokens.verify(token)) for token in new]
    await asyncio.sleep(0)
    clock.now = 10  # the look takes longer than a cooldown; who waited for it looks no more
    found = await asyncio.gather(*coming)
    assert [one.handle for one in found] == [f"user-{number}" for number in range(20)]
    assert asked() == 1
    with pytest.raises(Refusal, match="not by a key"):
        await tokens.verify(old)


async def test_a_flood_of_unknown_keys_costs_one_look_and_evicts_nothing(issuer: OidcServer, clock: Hand) -> None:
    """Whoever sends made-up names of keys can't make the hub ask its issuer again and again, nor forget anybody."""
    tokens = believing(Issuer(issuer.issuer, role="user"), clock=clock)
    good = issuer.user_token("alice")
    known = await tokens.verify(good)
    asked = Asked(issuer)
    made_up = [{"kid": f"made-up-{number}"} for number in range(300)]
    flood = [forging.token("ES256", "forger", head, iss=issuer.issuer) for head in made_up]
    results = await asyncio.gather(*map(tokens.verify, flood), return_exceptions=True)
    assert all(isinstance(result, Refusal) for result in results)
    assert asked() == 1
    assert await tokens.verify(good) is known
    clock.now = 1.9
    with pytest.raises(Refusal):
        await tokens.verify(flood[0])
    assert asked() == 1
    issuer.rotate()
    new = issuer.user_token("bob")
    clock.now = 2.0
    assert (await tokens.verify(new)).handle == "bob"
    assert asked() == 2


async def test_a_flood_does_not_stand_in_line_at_an_issuer_that_is_slow_to_fail(clock: Hand) -> None:
    """Who has waited for a look that came to nothing takes that for the answer: each would wait for all before it."""
    published, looks = json.dumps(forging.published()).encode(), 0

    async def slow(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal looks
        looks += 1
        body = published if looks == 1 else b"none"
        clock.now += 0 if looks == 1 else 5
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
        keys = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        tokens = believing(Issuer(forging.ISSUER, keys), clock=clock)
        await tokens.verify(forging.token())
        flood = [forging.token("ES256", "forger", {"kid": f"made-up-{number}"}) for number in range(20)]
        results = await asyncio.gather(*map(tokens.verify, flood), return_exceptions=True)
        assert all(isinstance(result, Refusal) for result in results)
        assert looks == 2
        assert (await tokens.verify(forging.token())).handle


async def test_a_bad_signature_by_a_known_key_costs_no_look(issuer: OidcServer, clock: Hand) -> None:
    """Only a key that is not known is a reason to ask."""
    tokens = believing(Issuer(issuer.issuer, role="user"), clock=clock)
    good = issuer.user_token("alice")
    await tokens.verify(good)
    asked = Asked(issuer)
    name = json.loads(base64.urlsafe_b64decode(good.partition(".")[0] + "=="))["kid"]
    for wrong in (
        good[:-40] + "A" * 40,
        forging.token("RS256", "forger", {"kid": name}, iss=issuer.issuer),
        forging.token("ES256", "forger", {"kid": name}, iss=issuer.issuer),
    ):
        with pytest.raises(Refusal, match="not by a key"):
            await tokens.verify(wrong)
    assert asked() == 0


async def test_an_outage_changes_nothing_for_who_has_a_token(issuer: OidcServer, clock: Hand) -> None:
    """The keys that are there serve on, old as they are, for tokens seen before and for others; after it, new ones."""
    tokens = believing(Issuer(issuer.issuer, role="user"), clock=clock)
    held = [issuer.user_token(handle) for handle in ("alice", "bob", "carol")]
    await tokens.verify(held[0])
    issuer.stop()
    for clock.now in (301.0, 302.0, 5_000.0):
        found = await asyncio.gather(*map(tokens.verify, held))
        assert [one.handle for one in found] == ["alice", "bob", "carol"]
    assert len(tokens.troubles()) == 1
    assert "can't be had" in tokens.troubles()[0]
    with pytest.raises(Refusal):
        await tokens.verify(forging.token("ES256", "forger", {"kid": "x"}, iss=issuer.issuer))
    issuer.start()
    issuer.rotate()
    clock.now = 5_010.0
    assert (await tokens.verify(issuer.user_token("dave"))).handle == "dave"
    assert tokens.troubles() == []
    with pytest.raises(Refusal, match="not by a key"):
        await tokens.verify(held[0])


async def test_an_issuer_that_is_down_at_start_is_waited_for(issuer: OidcServer, clock: Hand) -> None:
    """Nobody can be signed in until it is up; then everybody can, and no restart is needed."""
    tokens = believing(Issuer(issuer.issuer, role="user"), clock=clock)
    good = issuer.user_token("alice")
    issuer.stop()
    results = await asyncio.gather(*(tokens.verify(good) for _ in range(20)), return_exceptions=True)
    assert [type(result) for result in results] == [AuthUnavailable] * 20
    issuer.start()
    with pytest.raises(AuthUnavailable):  # it is not asked with every request
        await tokens.verify(good)
    clock.now = 2.0
    assert (await tokens.verify(good)).handle == "alice"


async def test_one_issuer_that_is_down_does_not_hold_up_another(issuer: OidcServer, idp: OidcServer) -> None:
    """Each issuer stands for itself."""
    tokens = believing(Issuer(issuer.issuer, role="user"), Issuer(idp.issuer, role="agent"))
    issuer.stop()
    found = await tokens.verify(idp.agent_token("release-agent"))
    assert (found.handle, found.role, found.issuer) == ("release-agent", "agent", idp.issuer)
    with pytest.raises(AuthUnavailable):
        await tokens.verify(issuer.user_token("alice"))


async def test_two_issuers_cannot_speak_for_each_other(issuer: OidcServer, idp: OidcServer) -> None:
    """A token is held to the keys of the issuer that it names, with that issuer's role."""
    tokens = believing(Issuer(issuer.issuer, role="user"), Issuer(idp.issuer, role="agent"))
    assert (await tokens.verify(issuer.user_token("alice"))).role == "user"
    assert (await tokens.verify(idp.user_token("alice"))).role == "agent"
    swapped = believing(Issuer(issuer.issuer, idp.jwks_url), Issuer(idp.issuer, issuer.jwks_url))
    for one in (issuer, idp):
        with pytest.raises(Refusal, match="not by a key"):
            await swapped.verify(one.user_token("alice"))
    with pytest.raises(Refusal, match="not one that this hub trusts"):
        await believing(Issuer(issuer.issuer)).verify(idp.user_token("alice"))


async def test_without_an_issuer_nobody_can_be_signed_in() -> None:
    """That is the hub's fault and not the caller's, and said so."""
    with pytest.raises(AuthUnavailable, match=r"auth\.issuers"):
        await believing().verify("x.y.z")


@pytest.mark.parametrize("algorithm", ["PS256", "ES256", "ES384"])
async def test_an_issuer_may_sign_otherwise(tmp_path: Any, algorithm: str) -> None:
    """A certified server's tokens by other algorithms, an agent's among them."""
    with oidc_server.started(tmp_path, "agents", alg=algorithm) as server:
        tokens = believing(Issuer(server.issuer, role="agent"))
        assert (await tokens.verify(server.agent_token("bot", mycelium_role="user"))).role == "user"
        with pytest.raises(Refusal, match="another audience"):
            await tokens.verify(server.agent_token("bot", audience="other"))


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (200, {"keys": []}, "no key that can verify"),
        (200, {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}, "no key that can verify"),
        (200, {"keys": {}}, "no list"),
        (200, {"keys": [{}] * 101}, "no list"),
        (200, {"issuer": "x"}, "no list"),
        (200, b"[]", "no JSON object"),
        (200, b"<html>", "no JSON"),
        (200, b"[" * 100_000, "no JSON"),
        (200, b" " * 300_000, "larger than"),
        (302, {}, "status 302"),
        (404, {}, "status 404"),
        (500, {}, "status 500"),
    ],
)
async def test_an_answer_that_is_no_list_of_keys_is_an_outage(
    status: int, answer: bytes | dict[str, Any], why: str
) -> None:
    """Nothing that an address answers is followed, swallowed whole or taken for a key."""
    with StandIn(status, answer) as server:
        with pytest.raises(AuthUnavailable, match=why):
            await believing(Issuer(forging.ISSUER, server.url)).verify(forging.token())
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": "https://other.example"}, "about another issuer"),
        ({"issuer": None}, "about another issuer"),
        ({"jwks_uri": None}, "names no address"),
        ({"jwks_uri": "file:///etc/passwd"}, "names no address"),
        ({"jwks_uri": "http://[::1"}, "names no address"),
        ({"jwks_uri": "http://127.0.0.1:99999/jwks"}, "names no address"),
        ({"jwks_uri": "http://"}, "names no address"),
        ({"jwks_uri": "http://127.0.0.1/\ud800"}, "names no address"),
        ({"jwks_uri": "http://127.0.0.1/\r\nX: y"}, "names no address"),
        ({"jwks_uri": "http://xn--/"}, "can't be asked"),
    ],
)
async def test_a_discovery_document_is_only_about_its_issuer(
    issuer: OidcServer, changed: dict[str, Any], why: str
) -> None:
    """What it says of another issuer is not believed; only an address of the web is asked for keys."""
    with StandIn(200, forging.published()) as keys:
        issuer.answer_instead(DISCOVERY, 200, {"issuer": issuer.issuer, "jwks_uri": keys.url} | changed)
        with pytest.raises(AuthUnavailable, match=why):
            await believing(Issuer(issuer.issuer)).verify(forging.token(iss=issuer.issuer))
        assert keys.asked == []


async def test_a_redirect_is_not_followed(issuer: OidcServer) -> None:
    """Keys come from where the setting or the issuer's document says, and from nowhere else."""
    with StandIn(200, forging.published()) as keys:
        issuer.answer_instead("/jwks", 302, {}, headers={"location": keys.url})
        with pytest.raises(AuthUnavailable, match="status 302"):
            await believing(Issuer(issuer.issuer)).verify(forging.token(iss=issuer.issuer))
        assert keys.asked == []


async def test_an_issuer_that_does_not_answer_is_given_up() -> None:
    """A connection that nobody serves ends within the bound, and counts as an outage."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(AuthUnavailable, match="did not answer within"):
            await believing(Issuer(forging.ISSUER, address), within_s=0.2).verify(forging.token())


async def test_an_answer_that_comes_by_drops_is_given_up() -> None:
    """The bound is on all of it: one byte after the other does not keep a request waiting for ever."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(AuthUnavailable, match="did not answer within"):
            await believing(Issuer(forging.ISSUER, address), within_s=0.2).verify(forging.token())


async def test_who_an_issuer_is_says_a_certificate_that_this_machine_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a company's own authority, too: where people can sign in, the hub can ask."""
    place, body = tls.certificate(tmp_path), json.dumps(forging.published()).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.served_with(place)) as server:
        trusted = Issuer(forging.ISSUER, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(AuthUnavailable, match="can't be asked"):
            await believing(trusted).verify(forging.token())
        monkeypatch.setenv("SSL_CERT_FILE", str(place))
        assert (await believing(trusted).verify(forging.token())).issuer == forging.ISSUER


async def test_who_gives_up_waiting_stops_nobody_else(issuer: OidcServer) -> None:
    """The request that asks for the keys may be cancelled; another asks then."""
    tokens = believing(Issuer(issuer.issuer))
    good = issuer.user_token("alice")
    first, second = asyncio.create_task(tokens.verify(good)), asyncio.create_task(tokens.verify(good))
    await asyncio.wait([first], timeout=0.001)
    first.cancel()
    assert (await second).handle == "alice"
    with contextlib.suppress(asyncio.CancelledError):
        await first


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"issuers": ()}, ["no issuer is trusted"]),
        ({"audience": ""}, ["auth.audience is not set"]),
        ({"issuers": (Issuer("http://sso.example.com"),)}, ["without TLS"]),
        ({"issuers": (Issuer("https://sso.example.com", "http://sso:8080/certs"),)}, ["without TLS"]),
        ({"issuers": (Issuer("http://sso.example.com", audience="x"),), "audience": ""}, ["without TLS"]),
        ({"issuers": (Issuer("http://localhost:8080"), Issuer("http://127.0.0.1:1"))}, []),
        ({}, []),
        ({"enabled": False, "issuers": (), "audience": ""}, []),
    ],
)
def test_what_should_not_stay_so_is_said(settings: dict[str, Any], words: list[str]) -> None:
    """A line for each; none for what is right, nor while sign-in is off."""
    good = {"enabled": True, "issuers": (Issuer("https://sso.example.com"),), "audience": "mycelium"}
    lines = AuthSettings(**{**good, **settings}).warnings()
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))
