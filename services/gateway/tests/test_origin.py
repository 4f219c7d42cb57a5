"""Which names and origins the door opens to."""

from __future__ import annotations

import pytest

from mycelium_gateway.origin import Names, Place, place

NAMES = Names("192.168.7.5", ("hub.example.com", "*.Team.example.org"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("localhost:8000", Place("localhost", 8000)),
        ("Hub.Example.com", Place("hub.example.com", None)),
        ("hub.example.com.:80", Place("hub.example.com", 80)),
        ("[::1]:8000", Place("::1", 8000)),
        ("", None),
        ("a b", None),
        ("user@localhost", None),
        ("localhost:port", None),
        ("localhost:8000/path", None),
        ("localhost, evil.example", None),
    ],
)
def test_an_authority_is_read_strictly(text: str, found: Place | None) -> None:
    """What is no host and port names no place."""
    assert place(text) == found


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "127.0.0.1:8000",
        "127.9.9.9",
        "[::1]:1",
        "192.168.7.5:8000",
        "hub.example.com",
        "a.team.example.org",
        "b.a.team.example.org:443",
        "LOCALHOST",
    ],
)
def test_the_hubs_own_names_are_let_in(host: str) -> None:
    """Loopback, the address it is bound to, and the names that the settings list."""
    assert NAMES.judge(host, None) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "192.168.7.6",
        "team.example.org",
        "hub.example.com.evil.example",
        "0.0.0.0:8000",
        "xteam.example.org",
        "2130706433",
    ],
)
def test_every_other_name_is_refused(host: str | None) -> None:
    """A page that points its own name at the hub (DNS rebinding) gets nothing."""
    refused = NAMES.judge(host, None)
    assert refused is not None
    assert refused[0] == "host.refused"


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("hub.example.com", "https://hub.example.com"),
        ("hub.example.com", "https://hub.example.com:443"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_a_page_of_the_hub_may_call_it(host: str, origin: str) -> None:
    """The origin is the place that the request was sent to."""
    assert NAMES.judge(host, origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:3000",
        "http://127.0.0.1:8000",
        "null",
        "",
        "file://",
        "localhost:8000",
        "http://localhost:8000@evil.example",
        "chrome-extension://localhost:8000",
        "http://localhost:8000/",
    ],
)
def test_a_page_from_elsewhere_may_not(origin: str) -> None:
    """Not even of another port of this machine."""
    refused = NAMES.judge("localhost:8000", origin)
    assert refused is not None
    assert refused[0] == "origin.refused"


def test_an_unspecified_address_is_no_name() -> None:
    """A hub bound to every address is not called `0.0.0.0`."""
    assert Names("0.0.0.0", ()).judge("0.0.0.0:8000", None) is not None


def test_a_long_header_is_refused_and_not_remembered() -> None:
    """No caller can fill the gateway's memory with names that it makes up."""
    names = Names("127.0.0.1", ())
    long = "http://" + "x" * 1_000_000

    assert names.judge("localhost", long) == ("origin.refused", "the request's origin has 1000007 characters")
    assert names.judge("x" * 1000, None) == ("host.refused", "the request's host has 1000 characters")
    assert names._judged.cache_info().currsize == 0
