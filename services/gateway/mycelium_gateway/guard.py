"""The outermost layer: counts requests, carries the caller's trace, and answers a fault that nobody else has."""

from __future__ import annotations

import time

from prometheus_client import Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mycelium_gateway import problems
from mycelium_kernel import telemetry

REQUESTS = Counter("mycelium_http_requests_total", "HTTP requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "mycelium_http_request_seconds",
    "Time until an HTTP answer began; for a wait this is its length.",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600),
)
# The server's own `send` (`protocol.py`), for answers of many parts: a live event should not pay each layer once a
# watcher.
SERVER_SEND = "mycelium.server_send"
# The server's function that takes what is to be called when the client has gone: a lasting answer needs no task for it.
WHEN_GONE = "mycelium.when_gone"
TRACE = b"traceparent"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class GuardMiddleware:
    """Lets no fault out but as a problem document with a key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; an unexpected exception is logged once and answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, took = time.perf_counter(), 0, 0.0

        async def noting(message: Message) -> None:
            nonlocal status, took
            if message["type"] == "http.response.start":
                status, took = message["status"], time.perf_counter() - began
            await send(message)

        scope.setdefault(SERVER_SEND, send)
        try:
            with telemetry.span(f"HTTP {scope['method']}", _carrier(scope)):
                await self._app(scope, receive, noting)
        except ClientDisconnect:
            pass  # it left in the middle of its body: there is nobody to answer, and nothing was done
        except Exception as error:
            document = problems.of_fault(error, f"{scope['method']} {scope['path']}")
            if not status:
                await problems.response(document)(scope, receive, noting)
        finally:
            _count(scope, status, took)


def _carrier(scope: Scope) -> dict[str, str] | None:
    for name, value in scope["headers"]:
        if name == TRACE:
            return {"traceparent": value.decode("latin-1")}
    return None


def _count(scope: Scope, status: int, took: float) -> None:
    route = getattr(scope.get("route"), "path", "none")  # never the path itself: it would be a label for every room
    method = scope["method"] if scope["method"] in METHODS else "other"
    REQUESTS.labels(method, route, status or "left").inc()
    if status:
        SECONDS.labels(method, route).observe(took)
