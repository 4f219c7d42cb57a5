"""Whether a request comes from this machine, and that nobody is believed who only says so in a forwarding header."""

from __future__ import annotations

import httpx2
import pytest
from starlette.types import Scope

from mycelium_gateway import peers
from mycelium_gateway.peers import TrustedProxies

NOBODY = TrustedProxies()
FORWARDING = (
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded", "x-real-ip",
    "true-client-ip", "cf-connecting-ip", "cf-ray", "x-client-ip", "x-cluster-client-ip", "fastly-client-ip",
    "x-envoy-external-address", "x-original-forwarded-for", "cdn-loop",
    "x-scheme", "x-proxyuser-ip", "forwarded-for", "x-amzn-trace-id", "x-amz-cf-id", "x-envoy-expected-rq-timeout-ms",
    "x-nginx-proxy", "tailscale-user-login", "akamai-origin-hop", "surrogate-capability", "x-vercel-id", "x-varnish",
)  # fmt: skip


def scope(client: str | None, *headers: str, value: bytes = b"127.0.0.1", version: str = "1.1") -> Scope:
    sent = [(name.encode(), value) for name in headers]
    place = (client, 1) if client else None
    return {"type": "http", "http_version": version, "scheme": "http", "client": place, "headers": sent}


@pytest.mark.parametrize("client", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_who_calls_on_the_hubs_machine_is_local(client: str) -> None:
    """Through no proxy; any header that only proxies add shows that it came from elsewhere."""
    assert peers.is_local(scope(client, "host", "user-agent"), NOBODY)
    assert [header for header in FORWARDING if peers.is_local(scope(client, "host", header), NOBODY)] == []


@pytest.mark.parametrize("client", [None, "192.168.1.7", "localhost", "127.0.0.1.example.com", "::ffff:192.168.1.7"])
def test_who_calls_from_elsewhere_is_not(client: str | None) -> None:
    """Whatever its headers say."""
    assert not peers.is_local(scope(client), NOBODY)
    assert not peers.is_local(scope(client, "x-forwarded-for"), NOBODY)


@pytest.mark.parametrize("trusted", ["*", "127.0.0.1", "10.0.0.0/8"])
def test_behind_a_proxy_nobody_is_local(trusted: str) -> None:
    """A proxy on the hub's own machine that adds no header would make everybody an operator."""
    assert not peers.is_local(scope("127.0.0.1", "host"), TrustedProxies(trusted))


@pytest.mark.parametrize(
    "host", [b"hub.example.com", b"hub.example.com:8000", b"192.168.1.20", b"localhost.example.com", b"", b"a b"]
)
def test_who_has_asked_for_another_machine_came_through_a_proxy(host: bytes) -> None:
    """A proxy here that nobody has told the hub of hands on the name, if nothing else."""
    assert not peers.is_local(scope("127.0.0.1", "host", value=host), NOBODY)
    assert not peers.is_local(scope("127.0.0.1"), NOBODY)
    both = scope("127.0.0.1", "host", value=host)
    both["headers"] += scope("127.0.0.1", "host")["headers"]
    assert not peers.is_local(both, NOBODY)


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:8000", b"127.0.0.1:8000", b"127.9.9.9", b"[::1]:8000"])
def test_this_machine_has_several_names(host: bytes) -> None:
    """By each of them it is local, unless a proxy asks that speaks HTTP/1.0, as nginx does that was told nothing."""
    assert peers.is_local(scope("127.0.0.1", "host", value=host), NOBODY)
    assert not peers.is_local(scope("127.0.0.1", "host", value=host, version="1.0"), NOBODY)


@pytest.mark.parametrize(
    ("trusted", "peer", "is_believed"),
    [
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("", "10.0.0.5", False),
        ("*", "203.0.113.9", True),
        ("172.18.0.1,10.0.0.5", "10.0.0.5", True),
        ("172.18.0.1, 10.0.0.5", "::ffff:10.0.0.5", True),
        ("172.18.0.1,10.0.0.5", "10.0.0.6", False),
        ("172.18.0.1,10.0.0.5", "127.0.0.1", False),
        ("10.0.0.0/8 fd00::/8", "fd00::7", True),
        ("10.0.0.0/8", "", False),
    ],
)
def test_the_scheme_is_believed_from_a_trusted_proxy_alone(trusted: str, peer: str, is_believed: bool) -> None:
    """By default from this machine; a list is exactly that list."""
    request = scope(peer or None, "x-forwarded-proto", value=b"HTTPS")
    peers.believe_scheme(request, TrustedProxies(trusted))

    assert request["scheme"] == ("https" if is_believed else "http")


@pytest.mark.parametrize("value", [b"ftp", b"https, http", b"", b"https:", b"javascript"])
def test_a_scheme_that_is_none_is_not_taken(value: bytes) -> None:
    """Nor is one of two."""
    request = scope("127.0.0.1", "x-forwarded-proto", value=value)
    twice = scope("127.0.0.1", "x-forwarded-proto", "x-forwarded-proto", value=b"https")
    for one in (request, twice):
        peers.believe_scheme(one, NOBODY)

    assert request["scheme"] == "http"
    assert twice["scheme"] == "http"


@pytest.mark.parametrize("written", ["proxy.example.com", "10.0.0.0/40", "10.0.0.1;10.0.0.2", "**"])
def test_what_is_no_address_is_told(written: str) -> None:
    """In the words that the setting's refusal shows."""
    assert "is no address" in peers.fault_of(f"127.0.0.1,{written}")
    assert peers.fault_of("127.0.0.1, 10.0.0.0/8 ::1 *") == ""


async def test_forwarding_headers_change_nothing_of_what_is_believed(http: httpx2.AsyncClient) -> None:
    """A foreign name stays foreign, and the answer is the same with them as without."""
    forwarded = {"X-Forwarded-Host": "localhost", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}
    foreign = await http.get("/api/rooms", headers={"Host": "evil.example", **forwarded})
    own = await http.get("/healthz", headers={**forwarded, "X-Forwarded-Host": "evil.example"})
    page = await http.get("/api/rooms", headers={"Origin": "https://evil.example", **forwarded})

    assert (foreign.json()["slug"], own.status_code, page.json()["slug"]) == ("host.refused", 200, "origin.refused")
