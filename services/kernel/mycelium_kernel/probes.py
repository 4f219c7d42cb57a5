"""The one port that a service opens inside: whether it lives, whether it is ready, its health, its metrics.

For probes of a supervisor or of Kubernetes and for Prometheus; users never reach it. A thread serves it, and asks the
event loop, so that a loop that no longer turns is not called alive.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as NoAnswer
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import prometheus_client

TURN_S = 2.0  # in which the loop has to take a turn
TEXT = "text/plain; charset=utf-8"


class Probes:
    """Serves `/healthz`, `/readyz`, `/health` and `/metrics` at `host` and `port` until stopped.

    `health` is asked for once the service is `ready`; it is called in the event loop.
    """

    def __init__(self, host: str, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._health: Callable[[], dict[str, Any]] | None = None
        self._server = _Server((host, port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    def start(self) -> None:
        """Answer from now on; not ready yet."""
        self._thread.start()

    def ready(self, health: Callable[[], dict[str, Any]]) -> None:
        """The service answers requests from now on."""
        self._health = health

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Status, content type and body of one look. Called in a thread of the server."""
        if path == "/metrics":
            return HTTPStatus.OK, prometheus_client.CONTENT_TYPE_LATEST, prometheus_client.generate_latest()
        if path not in {"/healthz", "/readyz", "/health"}:
            return HTTPStatus.NOT_FOUND, TEXT, b"not found"
        try:
            said = asyncio.run_coroutine_threadsafe(self._look(), self._loop).result(TURN_S)
        except NoAnswer:
            return HTTPStatus.SERVICE_UNAVAILABLE, TEXT, b"the event loop does not turn"
        if path == "/healthz":
            return HTTPStatus.OK, TEXT, b"ok"
        status = HTTPStatus.SERVICE_UNAVAILABLE if said is None else HTTPStatus.OK
        if path == "/readyz":
            return status, TEXT, b"starting" if said is None else b"ok"
        return status, "application/json", json.dumps(said or {"status": "starting"}).encode()

    async def _look(self) -> dict[str, Any] | None:
        return self._health() if self._health else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who looked may have given up meanwhile, which is no fault of ours."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _handler(probes: Probes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "mycelium"
        sys_version = ""
        timeout = 5

        def do_GET(self) -> None:
            status, kind, body = probes.answer(self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """A look is no event."""

    return Handler
