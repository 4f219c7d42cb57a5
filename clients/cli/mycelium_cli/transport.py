"""Connections: to the hub directly, or through the proxy that the environment names. No retries here.

Tells apart what `api` must know: whether a request never left (`Unreached`) or may have arrived (`Cut`).
"""

import os
import sys
from contextlib import suppress
from io import BufferedReader
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse
    from socket import socket
    from threading import Timer

CONNECT_TIMEOUT_S = 10.0
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_PORTS = {"http": 80, "https": 443}


class Unreached(Exception):
    """No connection came about, so the hub knows nothing of the request."""


class Cut(Exception):
    """The line broke after the request had left: it may have been done."""


class Request(NamedTuple):
    """One request as it goes over the line."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes | BufferedReader | None = None


def load_http_client(*, secure: bool) -> None:
    """Import `http.client`; for plain HTTP without ssl, whose import takes longer than the request."""
    if secure or "ssl" in sys.modules or "http.client" in sys.modules:
        import http.client

        return
    # None makes an import fail, and http.client then does without.
    sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import http.client  # noqa: F401 - only to have it loaded
    finally:
        del sys.modules["ssl"]


def _proxy(url: SplitResult) -> SplitResult | None:
    """The proxy for a URL. A hub on this machine is never asked through one."""
    if not any(name.lower().endswith("_proxy") for name in os.environ) or url.hostname in LOOPBACK:
        return None
    from urllib.request import getproxies_environment, proxy_bypass

    proxies = getproxies_environment()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named or proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    return urlsplit(named if "://" in named else f"http://{named}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    from base64 import b64encode

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


class Line:
    """One connection to the hub, for one request."""

    def __init__(self, base_url: str) -> None:
        self.url = urlsplit(base_url)
        self.proxy = _proxy(self.url)
        self.too_slow = ""
        self._clock: Timer | None = None
        self._connection: HTTPConnection | None = None

    def ask(self, request: Request, answer_timeout_s: float, whole_s: float | None = None) -> "HTTPResponse":
        """Send a request and wait for the head of its answer, of which all must be there within `whole_s`."""
        connection = self._open()
        from http.client import HTTPException  # after `_open`, which decides how it is loaded

        target, headers = f"{self.url.path}{request.target}", request.headers
        if self.proxy is not None and self.url.scheme == "http":
            target = f"http://{self.url.netloc}{target}"
            headers = headers | _proxy_headers(self.proxy)
        try:
            connection.sock.settimeout(answer_timeout_s)
            self._send(connection, request._replace(target=target, headers=headers))
            if whole_s is not None:
                self._end_after(connection.sock, whole_s)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            self.close()
            raise Cut(self.too_slow or _cause(error)) from error

    def _end_after(self, sock: "socket", seconds: float) -> None:
        """Cut the line then: a byte now and then keeps every other clock from running out."""
        from threading import Timer  # click has it loaded

        def end() -> None:
            self.too_slow = f"the answer had no end within {seconds:.0f} s"
            from socket import SHUT_RDWR

            with suppress(OSError):
                sock.shutdown(SHUT_RDWR)

        self._clock = Timer(seconds, end)
        self._clock.daemon = True
        self._clock.start()

    @staticmethod
    def _send(connection: "HTTPConnection", request: Request) -> None:
        if isinstance(request.body, BufferedReader):
            request.body.seek(0)  # it may be the second try
        try:
            connection.request(request.method, request.target, request.body, request.headers)
        except (BrokenPipeError, ConnectionResetError):
            # The hub may refuse a body before it has read all of it: its answer is waiting then.
            if connection.sock is None:
                raise

    def _open(self) -> "HTTPConnection":
        secure = self.url.scheme == "https"
        load_http_client(secure=secure)
        from http.client import HTTPException

        try:
            self._connection = self._secure() if secure else self._plain()
            self._connection.connect()
            if secure:
                _begin_tls(self._connection, self.url.hostname or "")
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            by_proxy = "ProxyError: " if self.proxy is not None else ""
            raise Unreached(by_proxy + _cause(error)) from error
        return self._connection

    def _plain(self) -> "HTTPConnection":
        from http.client import HTTPConnection

        place = self.proxy or self.url
        return HTTPConnection(place.hostname or "", place.port or _PORTS["http"], timeout=CONNECT_TIMEOUT_S)

    def _secure(self) -> "HTTPConnection":
        """One that is to speak TLS. No `HTTPSConnection`: there is none after a request over plain HTTP."""
        from http.client import HTTPConnection

        host, port = self.url.hostname or "", self.url.port or _PORTS["https"]
        place, place_port = host, port
        if self.proxy is not None:
            place, place_port = self.proxy.hostname or "", self.proxy.port or _PORTS["http"]
        connection = HTTPConnection(place, place_port, timeout=CONNECT_TIMEOUT_S)
        connection.default_port = _PORTS["https"]  # what need not be said in `Host`
        connection.auto_open = 0  # without us it would go on in plain HTTP
        if self.proxy is not None:
            connection.set_tunnel(host, port, _proxy_headers(self.proxy))
        return connection

    def close(self) -> None:
        """Give the connection back; closing twice is fine."""
        if self._clock is not None:
            self._clock.cancel()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _begin_tls(connection: "HTTPConnection", host: str) -> None:
    """Speak TLS from here on, with that host and nobody else."""
    from ssl import create_default_context

    connection.sock = create_default_context().wrap_socket(connection.sock, server_hostname=host)


def _cause(error: BaseException) -> str:
    """Why a line failed, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
