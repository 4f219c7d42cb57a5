"""Where a request comes from: this machine itself, a proxy that is trusted, or anywhere else.

Only the connection's own address is believed. What a proxy says of the caller never makes a request one of this
machine: any forwarding header only shows that it came from elsewhere. So do what a proxy that adds none leaves as it
was, the name that the caller used, and HTTP/1.0, which some speak to what is behind them. Of a trusted proxy one thing
is believed, the scheme under which the caller reached it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings are read by programs that serve nothing
    from starlette.types import Scope

# What proxies, load balancers and networks of delivery add; none of it is sent by a client of this machine.
FORWARDING = frozenset({
    b"ali-cdn-real-ip",
    b"cdn-loop",
    b"client-ip",
    b"fastly-client-ip",
    b"fly-client-ip",
    b"forwarded",
    b"forwarded-for",
    b"front-end-https",
    b"incap-client-ip",
    b"proxy-client-ip",
    b"surrogate-capability",
    b"true-client-ip",
    b"via",
    b"wl-proxy-client-ip",
    b"x-amzn-trace-id",
    b"x-bluecoat-via",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-nginx-proxy",
    b"x-original-forwarded-for",
    b"x-original-host",
    b"x-originating-ip",
    b"x-proxyuser-ip",
    b"x-real-ip",
    b"x-remote-addr",
    b"x-remote-ip",
    b"x-scheme",
    b"x-url-scheme",
    b"x-varnish",
})  # fmt: skip
FORWARDING_PREFIXES = (
    b"x-forwarded", b"cf-", b"x-azure-", b"x-arr-", b"x-appengine-", b"x-cloud-trace-", b"x-envoy-", b"x-amz-cf-",
    b"x-vercel-", b"akamai-", b"tailscale-",
)  # fmt: skip
EVERYBODY = "*"
OF_PROXIES = "1.0"  # the version of HTTP in which nginx asks, unless it is told otherwise; nobody else does any more
SCHEME_HEADER = b"x-forwarded-proto"
SCHEMES = frozenset({b"http", b"https"})
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class TrustedProxies:
    """The proxies of the setting `runtime.trusted_proxies`; by default those on this machine."""

    written: str = ""

    @cached_property
    def _networks(self) -> tuple[Network, ...]:
        return tuple(ipaddress.ip_network(part, strict=False) for part in _parts(self.written) if part != EVERYBODY)

    @property
    def is_set(self) -> bool:
        """Whether the hub is said to stand behind a proxy."""
        return bool(_parts(self.written))

    def include(self, peer: str) -> bool:
        """Whether a connection from this address is one of a proxy that is trusted."""
        parts = _parts(self.written)
        if not parts:
            return is_this_machine(peer)
        if EVERYBODY in parts:
            return True
        address = _address(peer)
        return address is not None and any(address in network for network in self._networks)


def fault_of(written: str) -> str:
    """What is wrong with a list of trusted proxies; empty for nothing."""
    for part in _parts(written):
        if part == EVERYBODY:
            continue
        try:
            ipaddress.ip_network(part, strict=False)
        except ValueError:
            return f"{part!r} is no address: use addresses or networks parted by commas, or * for every proxy"
    return ""


def _parts(written: str) -> list[str]:
    return written.replace(",", " ").split()


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as its network has it: one of IPv4 that a socket of IPv6 shows is that of IPv4."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_this_machine(peer: str) -> bool:
    """Whether an address is of loopback: 127.0.0.0/8, ::1, or the first of them as IPv6 shows it."""
    address = _address(peer)
    return address is not None and address.is_loopback


def peer_of(scope: Scope) -> str:
    """The address at the other end of the connection; empty when it has none."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def is_forwarded(scope: Scope) -> bool:
    """Whether the request has a header that only proxies add."""
    return any(name in FORWARDING or name.startswith(FORWARDING_PREFIXES) for name, _value in scope["headers"])


def is_local(scope: Scope, proxies: TrustedProxies) -> bool:
    """Whether the request was made on the hub's own machine, by a name of that machine, and through no proxy."""
    is_direct = not proxies.is_set and is_this_machine(peer_of(scope)) and not is_forwarded(scope)
    return is_direct and scope["http_version"] != OF_PROXIES and _is_called_as_this_machine(scope)


def _is_called_as_this_machine(scope: Scope) -> bool:
    """Whether the caller has asked for `localhost`, or an address of loopback."""
    from mycelium_gateway.origin import place  # what serves requests has it loaded
    from mycelium_kernel.names import is_loopback

    called = [place(bytes(value).decode("latin-1")) for name, value in scope["headers"] if name == b"host"]
    return bool(called) and all(one is not None and is_loopback(one.host) for one in called)


def believe_scheme(scope: Scope, proxies: TrustedProxies) -> None:
    """Take the scheme of the address that the caller used from a trusted proxy. Who sends two is not understood."""
    said = [bytes(value).strip().lower() for name, value in scope["headers"] if name == SCHEME_HEADER]
    if len(said) == 1 and said[0] in SCHEMES and proxies.include(peer_of(scope)):
        scope["scheme"] = said[0].decode()
