"""Where the hub answers: loopback unless the settings insist, a port that is free, an address that others can use."""

from __future__ import annotations

import os
import socket
from contextlib import closing

import pytest

from mycelium_hub import address
from mycelium_hub.errors import Refused


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_addresses_need_no_sign_in(host: str) -> None:
    """Only this machine reaches them."""
    address.check(host, insecure=False, sign_in=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "hub.example.com", ""])
def test_other_addresses_are_refused_without_sign_in(host: str) -> None:
    """The refusal gives the reason and the setting."""
    ways = r"sign-in is off.*mycelium config set auth\.enabled true.*mycelium config set auth\.insecure true"
    with pytest.raises(Refused, match=ways):
        address.check(host, insecure=False, sign_in=False)
    address.check(host, insecure=True, sign_in=False)
    address.check(host, insecure=False, sign_in=True)


def test_a_port_in_use_is_named_with_its_holder_and_a_way_out() -> None:
    """One line says which port, who has it, and what to do."""
    with closing(address.listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Refused) as refused:
            address.listen("127.0.0.1", port)
    text = str(refused.value)
    assert text.startswith(f"port {port} is in use (pid {os.getpid()}, ")
    assert f"mycelium config set runtime.backend_port {port + 1}" in text
    assert "mycelium up --port 0" in text


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    """It can't be listened on, and the setting is named."""
    with pytest.raises(Refused, match=r"runtime\.bind_addr .* is no address of this machine"):
        address.listen(host, 0)


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_the_url_is_one_that_this_machine_can_use(host: str, shown: str) -> None:
    """Nobody can connect to 0.0.0.0 everywhere, so the loopback address stands for it."""
    with closing(address.listen(host, 0)) as opened:
        assert address.url(opened) == f"http://{shown}:{opened.getsockname()[1]}"


def test_an_ipv6_url_has_brackets() -> None:
    """As RFC 3986 wants it."""
    try:
        opened = address.listen("::1", 0)
    except Refused:
        pytest.skip("this machine has no IPv6")
    with closing(opened):
        assert address.url(opened) == f"http://[::1]:{opened.getsockname()[1]}"


def test_a_free_port_is_outside_the_range_of_outgoing_connections() -> None:
    """So that no client connects to itself on it while its server is down."""
    port = address.free_ports(1)[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
    assert port in address.INNER_PORTS
