"""What answers where a hub should: a program that says the same to everybody, and remembers what it was asked."""

import contextlib
import json
from typing import Any, NamedTuple, Self

from e2e.serving import Quiet, Served


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

        class Handler(Quiet):
            """Answers every method alike."""

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

        self._served = Served(Handler)
        self.url = self._served.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._served.close()


def problem(status: int, slug: str, detail: str) -> StandIn:
    """A hub that refuses everything for one reason."""
    document = {"type": f"about:blank#{slug}", "title": slug, "status": status, "detail": detail, "slug": slug}
    return StandIn(status, document)
