"""HTTP as a stranger speaks it: requests with exact headers, and live streams read event by event."""

import json
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

ANSWER_S = 60.0


class Reply(NamedTuple):
    """An answer, its header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The JSON of its body."""
        return json.loads(self.body)

    def ok(self, status: int) -> "Reply":
        """Itself, when it has that status."""
        assert self.status == status, f"{self.status}: {self.body.decode('utf-8', 'replace')[:500]}"
        return self

    def refused(self, status: int, slug: str) -> dict[str, Any]:
        """Its problem document, when it is a whole one with that status and slug."""
        self.ok(status)
        assert self.headers["content-type"].startswith("application/problem+json"), self.headers
        problem: dict[str, Any] = self.json
        assert problem["slug"] == slug, problem
        assert problem["status"] == status, problem
        assert problem["type"] == f"about:blank#{slug}", problem
        assert problem["title"], problem
        assert problem["detail"], problem
        return problem


def path(*parts: str, **query: str | int | list[str]) -> str:
    """A path under `/api`, its parts and query encoded."""
    found = "/api/" + "/".join(quote(part, safe="") for part in parts)
    return f"{found}?{urlencode(query, doseq=True)}" if query else found


class Api:
    """The hub at an address; one connection a request. With a token every request is signed in by it."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self.signed_in = {"Authorization": f"Bearer {token}"} if token else {}
        there = urlsplit(url)
        self.host, self.port = str(there.hostname), there.port or 80

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        handle: str = "",
        session: str = "",
        key: str = "",
        headers: dict[str, str] | None = None,
        within_s: float = ANSWER_S,
    ) -> Reply:
        """One request; bytes go as they are, anything else as JSON."""
        said = {"Mycelium-Handle": handle, "Mycelium-Session": session, "Idempotency-Key": key}
        sent = self.signed_in | {name: value for name, value in said.items() if value} | (headers or {})
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        line = HTTPConnection(self.host, self.port, timeout=within_s)
        try:
            line.request(method, target, content, sent)
            answer = line.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            line.close()

    def get(self, target: str, **said: Any) -> Reply:
        """Read."""
        return self.ask("GET", target, **said)

    def post(self, target: str, body: object = None, **said: Any) -> Reply:
        """Do."""
        return self.ask("POST", target, body, **said)

    def patch(self, target: str, body: object, **said: Any) -> Reply:
        """Change."""
        return self.ask("PATCH", target, body, **said)

    def put(self, target: str, body: object, **said: Any) -> Reply:
        """Set."""
        return self.ask("PUT", target, body, **said)

    def delete(self, target: str, **said: Any) -> Reply:
        """Remove."""
        return self.ask("DELETE", target, **said)

    def stream(self, target: str, last_id: str = "", within_s: float = 60.0, handle: str = "") -> "Stream":
        """A live stream, open and past its first line."""
        return Stream(self, target, last_id, within_s, handle)


class Event(NamedTuple):
    """One event of a stream."""

    id: str
    type: str
    data: dict[str, Any]


class Stream:
    """Server-sent events. Every read has the bound that the stream was opened with."""

    def __init__(self, api: Api, target: str, last_id: str, within_s: float, handle: str) -> None:
        self._line = HTTPConnection(api.host, api.port, timeout=within_s)
        said = {"Last-Event-ID": last_id, "Mycelium-Handle": handle}
        headers = {"Accept": "text/event-stream", **api.signed_in}
        headers |= {name: value for name, value in said.items() if value}
        try:
            self._answer = self._begin(target, headers)
        except BaseException:
            self._line.close()
            raise

    def _begin(self, target: str, headers: dict[str, str]) -> HTTPResponse:
        self._line.request("GET", target, headers=headers)
        answer = self._line.getresponse()
        assert answer.status == 200, answer.read()
        assert (answer.getheader("Content-Type") or "").startswith("text/event-stream")
        first = answer.readline()
        if not first:
            raise EOFError("the stream ended")
        assert first == b": connected\n"
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._answer.close()
        self._line.close()

    def next(self, kind: str = "") -> Event:
        """The next event, or the next of one kind."""
        while True:
            event = self._read()
            if not kind or event.type == kind:
                return event

    def rest(self) -> list[Event]:
        """What still comes until the hub ends it."""
        found = []
        while True:
            try:
                found.append(self.next())
            except EOFError:
                return found

    def until(self, content: str) -> list[Event]:
        """The messages up to the one with that text, that one too."""
        found = [self.next("message")]
        while found[-1].data["content"] != content:
            found.append(self.next("message"))
        return found

    def _read(self) -> Event:
        fields: dict[str, str] = {}
        while True:
            raw = self._answer.readline()
            if not raw:
                raise EOFError("the stream ended")
            line = raw.decode("utf-8").rstrip("\n")
            if not line and "data" in fields:
                return Event(fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"]))
            if not line:
                fields = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
