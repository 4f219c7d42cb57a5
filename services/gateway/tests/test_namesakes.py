"""Two issuers that give one handle to two people: the second is refused, and /health tells of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from e2e import oidc_server
from mycelium_gateway.issuers import Issuer
from mycelium_gateway.settings import GatewaySettings
from mycelium_kernel import run, subjects, testing
from mycelium_kernel.connections import Connection
from mycelium_rooms.service import service as rooms_service
from services.gateway.tests import signed
from services.gateway.tests.conftest import opened
from services.gateway.tests.door import until
from services.gateway.tests.signed import bearer


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[oidc_server.OidcServer]:
    """Another issuer, of the same audience."""
    with oidc_server.started(tmp_path_factory.mktemp("other"), "other") as server:
        yield server


@pytest.fixture
async def rooms(nats_server: testing.NatsServer, tmp_path: Path) -> AsyncIterator[None]:
    service = await run.start(rooms_service(), nats_server.settings("rooms"), tmp_path / "tables")
    yield
    await service.stop()


def both(idp: oidc_server.OidcServer, other: oidc_server.OidcServer, names_of: str = "") -> GatewaySettings:
    trusted = (Issuer(idp.issuer, role="user"), Issuer(other.issuer, role="user", names_of=names_of))
    return signed.settings(idp, issuers=trusted)


async def asked(http: httpx2.AsyncClient, token: str) -> tuple[int, str]:
    answer = await http.get("/api/whoami", headers=bearer(token))
    return answer.status_code, answer.json().get("detail", answer.json().get("handle"))


async def test_a_handle_is_of_the_issuer_that_proved_it_first(
    rooms: None, nats_server: testing.NatsServer, idp: oidc_server.OidcServer, other: oidc_server.OidcServer
) -> None:
    """identity: also after a restart; what the other gives out that nobody has is its own."""
    ones, others = idp.user_token("kim"), other.user_token("kim")
    for again in (False, True):
        async with opened(nats_server, both(idp, other)) as door:
            if not again:
                assert await asked(door.http, ones) == (200, "kim")
            status, detail = await asked(door.http, others)
            assert (status, f"@kim is of {idp.issuer}" in detail) == (401, True)
            assert await asked(door.http, ones) == (200, "kim")
            assert await asked(door.http, other.user_token("lee")) == (200, "lee")
            assert (await asked(door.http, idp.user_token("lee")))[0] == 401
            warnings = (await door.http.get("/health")).json()["auth"]["warnings"]
            told = [line for line in warnings if line.startswith("1 of the handles that")]
            assert len(told) == 2
            assert not [line for line in told if "kim" in line or "lee" in line]


async def test_two_issuers_of_the_same_people_may_be_said_to_be_so(
    rooms: None, nats_server: testing.NatsServer, idp: oidc_server.OidcServer, other: oidc_server.OidcServer
) -> None:
    """By `names_of`: a handle is the same person's, whichever proves it."""
    async with opened(nats_server, both(idp, other, idp.issuer)) as door:
        for token in (idp.user_token("kim"), other.user_token("kim"), idp.user_token("kim")):
            assert await asked(door.http, token) == (200, "kim")


async def test_what_one_issuer_proved_alone_is_its_own_when_there_are_two(
    rooms: None, nats_server: testing.NatsServer, idp: oidc_server.OidcServer, other: oidc_server.OidcServer
) -> None:
    """And what an issuer had that is trusted no more is the next one's."""
    kim, other_kim = idp.user_token("kim"), other.user_token("kim")
    async with opened(nats_server, signed.settings(idp)) as door:
        assert await asked(door.http, kim) == (200, "kim")
        await _is_noted(nats_server)
    async with opened(nats_server, both(idp, other)) as door:
        assert (await asked(door.http, other_kim))[0] == 401
    async with opened(nats_server, signed.settings(idp, issuers=(Issuer(other.issuer, role="user"),))) as door:
        assert await asked(door.http, other_kim) == (200, "kim")


async def _is_noted(nats_server: testing.NatsServer) -> None:
    """Wait until the log says whose the handle is."""
    connection = await Connection.open(nats_server.settings("gateway"))
    subject = subjects.fact("rooms", subjects.HUB, "proof", "kim")

    async def is_so() -> bool:
        return await connection.last_sequence(subject) > 0

    await until(is_so)
    await connection.close()
