"""What answers where a hub should: a program that says the same to everybody, and remembers what it was asked."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self


class Asked(NamedTuple):
    """A request that came, its header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]


class StandIn:
    """A server on a port of this machine with one answer."""

    def __init__(self, status: int, answer: bytes | dict[str, Any], kind: str = "") -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        problem = isinstance(answer, dict) and status >= 400
        content_type = kind or ("application/problem+json" if problem else "application/json")
        self.asked: list[Asked] = []
        self.date = ""
        standin = self

        class Handler(BaseHTTPRequestHandler):
            """Answers every method alike."""

            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                """The one answer."""
                headers = {name.lower(): value for name, value in self.headers.items()}
                standin.asked.append(Asked(self.command, self.path, headers))
                self.rfile.read(int(headers.get("content-length", "0")))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_CONNECT = answer  # noqa: N815 - the library's names

            def date_time_string(self, timestamp: float | None = None) -> str:
                """The time that it says it is."""
                return standin.date or super().date_time_string(timestamp)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def problem(status: int, slug: str, detail: str) -> StandIn:
    """A hub that refuses everything for one reason."""
    document = {"type": f"about:blank#{slug}", "title": slug, "status": status, "detail": detail, "slug": slug}
    return StandIn(status, document)
