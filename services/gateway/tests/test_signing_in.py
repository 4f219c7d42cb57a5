"""Who is let in with sign-in on, and as whom a request is done. Tokens are of a real issuer; no service runs.

What has passed the door is answered `unavailable` after a while; nothing here waits for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from e2e import oidc_server
from mycelium_gateway.issuers import Issuer
from mycelium_gateway.signing_in import is_open
from mycelium_kernel import testing
from services.gateway.tests import signed
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door
from services.gateway.tests.signed import bearer
from services.gateway.tests.test_peers import FORWARDING

BOUND_S = 60.0


@pytest.fixture
async def guarded(nats_server: testing.NatsServer, idp: oidc_server.OidcServer) -> AsyncIterator[Door]:
    """A gateway that lets nobody in without a token."""
    async with opened(nats_server, signed.settings(idp)) as door:
        yield door


@pytest.fixture
def alice(idp: oidc_server.OidcServer) -> str:
    return idp.user_token("Alice")


def told(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json().get("slug", "")


async def test_every_address_but_the_open_ones_needs_a_token(guarded: Door) -> None:
    """Of the whole contract, and of addresses that nothing answers at: nobody learns which are there."""
    for one in signed.operations():
        if one.access == "open":
            assert is_open(one.path), one
            continue
        answer = await guarded.http.request(one.method, one.path, json=one.body)
        assert told(answer) == (401, "token.missing"), one
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/", "/docs", "/redoc", "/openapi.json", "/api/rooms/demo/.well-known/agent-card.json"):
        assert (await guarded.http.get(path)).status_code in {200, 307, 404}, path
    for path in ("/nothing", "/mcp", "/health/", "/docs/x", "/api/rooms/demo/a2a"):
        assert told(await guarded.http.get(path)) == (401, "token.missing"), path
    assert (await guarded.http.head("/api/rooms")).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path",
    [
        "//docs",
        "/Health", "/healthz/", "/api/rooms/a/b/.well-known/agent-card.json", "/api/auth/", "/api/authx/login",
        "/api/rooms/.well-known/agent-card.json", "/x/.well-known/agent-card.json", "/api/auth/login/x",
        "/api/rooms/a/memory/.well-known/agent-card.json", "/api/rooms/a/.well-known/agent-card.json\n",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_open_address_is_none(path: str) -> None:
    """No spelling opens another one."""
    assert not is_open(path)


async def test_the_scheme_is_read_in_any_case_and_what_is_malformed_is_refused(guarded: Door, alice: str) -> None:
    """RFC 6750 and 9110: one header, one scheme, one token."""
    for scheme in ("Bearer", "bearer", "BEARER", "bEaReR  "):
        answer = await guarded.http.get("/metrics", headers={"Authorization": f"{scheme} {alice}"})
        assert answer.status_code == 200, scheme
    wrong = [
        "",
        "Bearer",
        alice,
        f"Basic {alice}",
        f"Bearer {alice} {alice}",
        f"Bearer {alice},",
        "Bearer ä",
    ]
    for value in wrong:
        answer = await guarded.http.get("/metrics", headers=[(b"Authorization", value.encode("latin-1"))])
        assert told(answer) == (401, "token.refused"), value
        assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token", error_description="')
        assert alice not in answer.text
    twice = [("Authorization", f"Bearer {alice}")] * 2
    assert told(await guarded.http.get("/metrics", headers=twice)) == (401, "token.refused")


async def test_a_token_that_is_refused_says_why_and_never_itself(guarded: Door, idp: oidc_server.OidcServer) -> None:
    """As the header of RFC 6750 too; a forged one, and one for another application."""
    other = idp.user_token("alice", audience="another")
    for token in (other, "not.a.jwt", f"{idp.user_token('alice')[:-8]}AAAAAAAA"):
        answer = await guarded.http.get("/api/rooms", headers=bearer(token))
        assert told(answer) == (401, "token.refused")
        assert answer.json()["detail"] in answer.headers["www-authenticate"]
        assert token not in answer.text + str(answer.headers)


async def test_without_an_issuer_or_its_keys_it_is_unavailable(
    nats_server: testing.NatsServer, idp: oidc_server.OidcServer, alice: str
) -> None:
    """Nobody is let in then, and the answer says what is missing. What is open stays open."""
    async with opened(nats_server, signed.settings(idp, issuers=())) as door:
        for headers in ({}, bearer(alice)):
            answer = await door.http.get("/api/rooms", headers=headers)
            assert told(answer) == (503, "auth.unavailable")
            assert "retry-after" in answer.headers
        health = (await door.http.get("/health")).json()
        assert health["auth"]["issuers"] == []
        assert any("no issuer is trusted" in line for line in health["warnings"]), health
    away = (Issuer(idp.issuer, jwks_url="http://127.0.0.1:9/jwks"),)
    async with opened(nats_server, signed.settings(idp, issuers=away)) as door:
        assert told(await door.http.get("/api/rooms", headers=bearer(alice))) == (503, "auth.unavailable")
        assert told(await door.http.get("/api/rooms")) == (401, "token.missing")


async def test_the_hubs_own_machine_is_let_in_unless_a_proxy_may_stand_between(
    nats_server: testing.NatsServer, idp: oidc_server.OidcServer, alice: str
) -> None:
    """By the connection alone. A token that is sent is judged here too."""
    async with opened(nats_server, signed.settings(idp, localhost_bypass=True)) as door:
        assert (await door.http.get("/metrics")).status_code == 200
        for header in FORWARDING:
            for value in ("127.0.0.1", ""):
                answer = await door.http.get("/metrics", headers={header: value})
                assert told(answer) == (401, "token.missing"), header
                assert (await door.http.get("/metrics", headers=bearer(alice, **{header: value}))).status_code == 200
        assert told(await door.http.get("/metrics", headers=bearer("not.a.jwt"))) == (401, "token.refused")
        assert (await door.http.get("/health")).json()["auth"]["localhost_bypass"] is True
    for trusted in ("*", "127.0.0.1"):
        settings = signed.settings(idp, localhost_bypass=True, trusted_proxies=trusted)
        async with opened(nats_server, settings) as door:
            assert told(await door.http.get("/metrics")) == (401, "token.missing")


async def test_no_operation_lets_a_token_speak_as_somebody_else(guarded: Door, alice: str) -> None:
    """By header or by body, of every operation that the contract has. `@Alice`, `alice` and her sessions are she."""
    for one in signed.operations():
        if one.access in {"open", signed.ACTING} or one.name == "metrics":
            continue
        answer = await guarded.http.request(
            one.method, one.path, json=one.body, headers=bearer(alice, **{"Mycelium-Handle": "bob"})
        )
        assert told(answer) == (403, "handle.forbidden"), one
        if one.naming:
            for body in ({one.naming: "bob"}, {one.naming: "@Bob"}, {one.naming: "bob#a8f3"}):
                answer = await guarded.http.request(
                    one.method, one.path, json={**(one.body or {}), **body}, headers=bearer(alice)
                )
                assert told(answer) == (403, "handle.forbidden"), (one, body)
                assert "@bob" in answer.json()["detail"]


def test_the_operations_that_name_a_caller_are_looked_at() -> None:
    """The table is made from the contract; this says that it is not empty."""
    naming = {one.name for one in signed.operations() if one.naming}

    assert naming >= {
        "post_message", "amend_message", "respond", "create_room", "change_room", "write_memory", "change_memory",
        "subscribe", "create_task", "claim_task", "renew_claim", "release_task", "resolve_task", "promote_task",
        "dismiss_task", "block_task", "answer_task", "coordinate", "reserve", "renew_reservations",
        "release_reservations", "await_delivery", "acknowledge", "say_presence",
    }  # fmt: skip


async def test_health_says_what_is_asked_and_what_should_not_stay_so(
    nats_server: testing.NatsServer, idp: oidc_server.OidcServer
) -> None:
    """To anybody; off is as short as before."""
    async with opened(nats_server, signed.settings(idp, audience="")) as door:
        health = (await door.http.get("/health")).json()
    auth: dict[str, Any] = health["auth"]
    assert (auth["enabled"], auth["issuers"], auth["audience"]) == (True, [idp.issuer], None)
    assert any("auth.audience is not set" in line for line in auth["warnings"])
    assert any("auth.audience is not set" in line for line in health["warnings"])
