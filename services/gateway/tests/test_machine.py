"""Who is taken for the hub's operator, and that nobody is believed who only says so in a forwarding header."""

from __future__ import annotations

import httpx2
import pytest
from starlette.types import Scope

from mycelium_gateway.machine import is_operator


def scope(client: str | None, *headers: str) -> Scope:
    sent = [(name.encode(), b"127.0.0.1") for name in headers]
    return {"type": "http", "client": (client, 1) if client else None, "headers": sent}


@pytest.mark.parametrize("client", ["127.0.0.1", "127.9.9.9", "::1"])
def test_who_calls_on_the_hubs_machine_is_its_operator(client: str) -> None:
    """Through no proxy."""
    assert is_operator(scope(client, "host", "user-agent"))
    for header in ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"):
        assert not is_operator(scope(client, "host", header))


@pytest.mark.parametrize("client", [None, "192.168.1.7", "localhost.example.com", "::ffff:192.168.1.7"])
def test_who_calls_from_elsewhere_is_not(client: str | None) -> None:
    """Whatever its headers say."""
    assert not is_operator(scope(client))
    assert not is_operator(scope(client, "x-forwarded-for"))


async def test_forwarding_headers_change_nothing_of_what_is_believed(http: httpx2.AsyncClient) -> None:
    """A foreign name stays foreign, and the answer is the same with them as without."""
    forwarded = {"X-Forwarded-Host": "localhost", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}
    foreign = await http.get("/api/rooms", headers={"Host": "evil.example", **forwarded})
    own = await http.get("/healthz", headers={**forwarded, "X-Forwarded-Host": "evil.example"})
    page = await http.get("/api/rooms", headers={"Origin": "https://evil.example", **forwarded})

    assert (foreign.json()["slug"], own.status_code, page.json()["slug"]) == ("host.refused", 200, "origin.refused")
