"""Forged tokens at the gateway's door: refused alike over HTTP, whoever sends them, and told to nobody."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from e2e.standin import StandIn
from mycelium_gateway.issuers import AuthSettings, Issuer
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, testing
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests import forging
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import Door
from services.gateway.tests.forging import ALGORITHMS, FORGERIES, SECRET


@pytest.fixture(scope="module")
def people() -> Iterator[StandIn]:
    with StandIn(200, forging.published()) as server:
        yield server


@pytest.fixture(scope="module")
def agents() -> Iterator[StandIn]:
    with StandIn(200, forging.published(forging.OTHER_ISSUER)) as server:
        yield server


@pytest.fixture
async def door(
    nats_server: testing.NatsServer, people: StandIn, agents: StandIn, tmp_path: Path
) -> AsyncIterator[Door]:
    """A gateway that asks for tokens, also of callers on its own machine."""
    issuers = (Issuer(forging.ISSUER, people.url, role="user"), Issuer(forging.OTHER_ISSUER, agents.url))
    auth = AuthSettings(enabled=True, issuers=issuers, audience=forging.AUDIENCE, localhost_bypass=False)
    rooms = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    try:
        async with opened(nats_server, GatewaySettings(port=0, auth=auth)) as found:
            yield found
    finally:
        await rooms.stop()


async def ask(http: httpx2.AsyncClient, token: str) -> httpx2.Response:
    return await http.get("/api/rooms", headers=[(b"Authorization", b"Bearer " + token.encode("utf-8"))])


async def test_no_forgery_passes_the_door(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    """Each kind gets 401 as a problem that names the cause, and nothing of it stands in an answer or a log."""
    caplog.set_level(logging.DEBUG, "mycelium_gateway")
    for algorithm in ALGORITHMS:
        assert (await ask(door.http, forging.token(algorithm))).status_code == 200
    sendable = [forgery for forgery in FORGERIES if forgery.name not in {"empty", "a line break"}]
    assert len(sendable) == len(FORGERIES) - 2  # no header can hold these
    for forgery, algorithm in zip(sendable, itertools.cycle(ALGORITHMS), strict=False):
        answer = await ask(door.http, forgery.make(algorithm))
        if forgery.name != "oversize":  # its request's head is refused before anybody reads it
            assert answer.status_code == 401, forgery.name
            assert answer.headers["www-authenticate"].startswith("Bearer"), forgery.name
            assert answer.json()["slug"] == "token.refused", forgery.name
        assert answer.status_code in {401, 431}, forgery.name
        assert SECRET not in answer.text, forgery.name
    assert (await ask(door.http, forging.token())).status_code == 200
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("mycelium")]
    assert not [line for line in ours if SECRET in line or "eyJ" in line]


async def test_an_expired_token_is_told_in_known_words(door: Door) -> None:
    """The words that the documentation names, so that whoever looks for them finds them."""
    answer = await ask(door.http, forging.token(exp=1_000_000_000))
    assert answer.json()["detail"] == "token rejected: Signature has expired"


async def test_an_outage_of_the_only_issuer_is_no_fault_of_the_caller(nats_server: testing.NatsServer) -> None:
    """503 and when to come back, also for a forgery: nobody can tell which it is."""
    with StandIn(500, {}) as down:
        auth = AuthSettings(enabled=True, issuers=(Issuer(forging.ISSUER, down.url),), localhost_bypass=False)
        async with opened(nats_server, GatewaySettings(port=0, auth=auth)) as door:
            for token in (forging.token(), forging.token(owner="forger")):
                answer = await ask(door.http, token)
                assert (answer.status_code, answer.json()["slug"]) == (503, "auth.unavailable")
                assert answer.headers["retry-after"]
            assert (await ask(door.http, forging.token(iss="https://evil.example"))).status_code == 401
            assert (await door.http.get("/healthz")).status_code == 200
        assert len(down.asked) == 1
