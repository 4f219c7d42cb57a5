"""The one address that the hub opens to others: which it is, whether it may be, and the socket on it."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import random
import socket
from urllib.parse import urlsplit

from mycelium_hub import processes
from mycelium_hub.errors import Refused
from mycelium_kernel.names import is_loopback

BACKLOG = 1024
HERE = "mycelium config set runtime.bind_addr 127.0.0.1"
INNER_PORTS = range(20_000, 32_000)


def check(host: str, *, insecure: bool, sign_in: bool) -> None:
    """Refuse an address that other machines reach while nobody has to sign in, unless the settings insist."""
    if sign_in or insecure or is_loopback(host):
        return
    raise Refused(
        f"{host} can be reached from other machines, and sign-in is off: anybody there could read and write everything."
        " Turn sign-in on (mycelium config set auth.enabled true), keep runtime.bind_addr at 127.0.0.1, or say that you"
        " want it so: mycelium config set auth.insecure true"
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. It takes calls from now on; they are answered when the gateway is up.

    Refuses, naming the port and who has it, when that is impossible.
    """
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise Refused(f"runtime.bind_addr {host!r} is no address of this machine: {error}", next=HERE) from None
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(place)
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise _refusal(host, port, error) from None
    opened.setblocking(False)
    return opened


def _refusal(host: str, port: int, error: OSError) -> Refused:
    if error.errno == errno.EADDRINUSE:
        return Refused(
            f"port {port} is in use{processes.listener(port)}: take another with"
            f" `mycelium config set runtime.backend_port {port + 1}`, or any free one with `mycelium up --port 0`"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return Refused(f"runtime.bind_addr {host!r} is no address of this machine", next=HERE)
    return Refused(f"can't listen on {host} port {port}: {error.strerror}")


def url(opened: socket.socket) -> str:
    """Where this machine reaches the socket."""
    host, port = opened.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1" if opened.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def port_of(url: str) -> int:
    """The port of such an address."""
    return urlsplit(url).port or 0


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody uses, for servers that may come back on them.

    Below the range from which the system takes ports for outgoing connections: while the server is down, a client that
    keeps trying could otherwise be given that very port, connect to itself, and keep it.
    """
    found: list[int] = []
    for port in random.sample(INNER_PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise Refused("no free port on 127.0.0.1 for the hub's own processes")
