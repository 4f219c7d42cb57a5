"""One request to the hub: headers, retries that can't do a thing twice, and problem documents as one line.

Every write carries an `Idempotency-Key`. When the line is cut the same request goes out again under the
same key, so the hub does it once; when nothing ever left, the command fails at once and says so.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BufferedReader
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from mycelium_cli import wire
from mycelium_cli.errors import UNREACHABLE, Failure, usage
from mycelium_cli.output import note
from mycelium_cli.problems import Answer, cut, failure_of_answer, honest, unreached
from mycelium_cli.transport import Cut, Line, Request, Unreached

ANSWER_TIMEOUT_S = 30.0
RETRY_BUDGET_S = 10.0
_ALIVE_WITHIN_S = 5.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_WHOLE_WITHIN_S = 60.0  # from an answer's first byte to its last
_MOST_PAGES = 10_000

_PATIENCE = {429, 503, 507}  # too many requests, not ready, disk full: nothing was done

Query = Mapping[str, str | int | list[str] | None]


class Caller(NamedTuple):
    """Who calls: what the hub reads from the headers."""

    handle: str
    session: str
    token: str


class _Again(Exception):
    """The hub asked for patience: worth the same request once more."""

    def __init__(self, failure: Failure, after_s: float | None) -> None:
        super().__init__(failure.cause)
        self.failure = failure
        self.after_s = after_s


def api_path(*parts: str) -> str:
    """A path under `/api`; each part is a name that may hold any character, but is one."""
    if "" in parts:
        is_room = parts[0] == "rooms" and parts[1] == ""
        raise usage("the room's name is empty", "mycelium room ls") if is_room else usage("a name or an id is empty")
    for place, part in enumerate(parts):
        if "/" in part or part in {".", ".."}:  # a server would read it as more, or fewer, parts
            is_room = parts[0] == "rooms" and place == 1
            what, hint = ("a room's name", "mycelium room ls") if is_room else ("a name or an id", "")
            cause = f"\"{part}\" can't be {what}: it can't contain slashes or be dots alone"
            raise usage(cause, hint, "name.invalid")
    return "/api/" + "/".join(quote(part, safe="~") for part in parts)


def new_key() -> str:
    """A key that nobody has used."""
    return os.urandom(16).hex()


class Hub:
    """The hub at a URL, asked by one caller."""

    def __init__(
        self,
        url: str,
        caller: Caller,
        *,
        verbose: bool = False,
        key: str | None = None,
        locate: Callable[[], str] | None = None,
        token: Callable[[str, str | None], str] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self._locate = locate
        self._token = token
        self.caller = caller
        self.verbose = verbose
        self.key = key
        self._pause = pause

    def look_again(self) -> None:
        """Before another try: a hub that was restarted may answer at another address."""
        if self._locate is not None:
            with suppress(Failure):  # settings that are being written, say: the last address is as good a guess
                self.url = self._locate() or self.url

    def answers(self) -> bool:
        """Whether the hub is there now, asked once."""
        try:
            line, _ = self.open_stream("/healthz", {}, {}, _ALIVE_WITHIN_S)
        except (Unreached, Cut, Failure):
            return False
        line.close()
        return True

    def get(self, path: str, query: Query | None = None) -> Any:
        """Read something."""
        return self.read(path, query).data

    def read(self, path: str, query: Query | None = None) -> Answer:
        """Read something, with the headers of the answer."""
        return self._until_answered(Request("GET", target(path, query), self.headers()), ANSWER_TIMEOUT_S)

    def look(self, path: str) -> Any:
        """Read something that one can do without: asked once, where `get` would go on asking."""
        try:
            return self._once(Request("GET", target(path, None), self.headers()), ANSWER_TIMEOUT_S).data
        except _Again as again:
            raise again.failure from None
        except (Unreached, Cut) as error:
            raise unreached(self.url, str(error)) from None

    def items(self, path: str, query: Query | None = None) -> list[Any]:
        """Read a whole list, page after page."""
        found: list[Any] = []
        cursor: Any = None
        seen = {cursor}
        while len(seen) <= _MOST_PAGES:
            page = self.get(path, {**(query or {}), "cursor": cursor})
            found += page["items"]
            cursor = page.get("next")
            if not cursor:
                return found
            if cursor in seen:
                break
            seen.add(cursor)
        raise Failure(f"the list at {self.url}{path} has no end", exit_status=UNREACHABLE, hint="mycelium status")

    def write(self, method: str, path: str, body: object = None, *, timeout_s: float = ANSWER_TIMEOUT_S) -> Answer:
        """Change something, once, however often the line is cut."""
        key = self.key or new_key()
        return self._until_answered(self._write(method, path, body, key), timeout_s, key)

    def ask_once(self, path: str, body: object, key: str, timeout_s: float) -> Answer:
        """One POST without another try; `Unreached` when nothing left this machine, else a failure.

        For waits, whose caller knows better than a budget how long to go on.
        """
        try:
            return self._once(self._write("POST", path, body, key), timeout_s)
        except Cut as error:
            raise cut(self.url, str(error)) from None
        except _Again as again:
            raise again.failure from None

    def upload(
        self, path: str, query: Query, file: BufferedReader, *, size: int, kind: str, timeout_s: float
    ) -> Answer:
        """POST a file of this size, once, however often the line is cut."""
        key = self.key or new_key()
        headers = {"Idempotency-Key": key, "Content-Type": kind, "Content-Length": str(size)}
        request = Request("POST", target(path, query), self.headers() | headers, file)
        return self._until_answered(request, timeout_s, key)

    def post(self, path: str, body: object = None) -> Any:
        """`write` by POST, of whose answer only the document matters."""
        return self.write("POST", path, body).data

    def _write(self, method: str, path: str, body: object, key: str) -> Request:
        headers = self.headers() | {"Idempotency-Key": key}
        if body is None:
            return Request(method, path, headers)
        return Request(method, path, headers | {"Content-Type": "application/json"}, wire.encoded(body))

    def headers(self) -> dict[str, str]:
        """Who calls, in which session, as part of which trace."""
        found = {"Accept": "application/json", "User-Agent": "mycelium-cli", "traceparent": wire.traceparent()}
        if self.caller.handle:
            found["Mycelium-Handle"] = self.caller.handle
        if self.caller.session:
            found["Mycelium-Session"] = self.caller.session
        return found | self._proof(None)

    def _proof(self, refused: str | None) -> dict[str, str]:
        """The token now: it may have been renewed since the last request, or have to be, since the hub refused it."""
        token = self._token(self.url, refused) if self._token else self.caller.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _proven_anew(self, request: Request) -> Request | None:
        """A request that was refused for its token, with another one; `None` when there is none."""
        if self._token is None:
            return None
        before = request.headers.get("Authorization", "")
        proof = self._proof(before.removeprefix("Bearer "))
        if not proof or proof["Authorization"] == before:
            return None
        return request._replace(headers=request.headers | proof)

    def open_stream(self, path: str, query: Query, headers: dict[str, str], quiet_s: float) -> tuple[Line, Any]:
        """Begin reading a stream; `quiet_s` without a byte counts as a cut line."""
        line = Line(self.url)
        request = Request("GET", target(path, query), self.headers() | headers)
        response = line.ask(request, quiet_s)
        if response.status == 401 and (again := self._proven_anew(request)):
            line.close()
            response = line.ask(again, quiet_s)
        if response.status != 200:
            answer = wire.answer(self.url, line, response)
            raise self._failure(answer)
        return line, response

    def _until_answered(self, request: Request, timeout_s: float, key: str = "") -> Answer:
        """Ask until there is an answer, the budget is spent, or it is certain that nothing was done."""
        end_s = time.monotonic() + RETRY_BUDGET_S
        maybe_done = False
        for pause_s in pauses():
            after_s: float | None = None
            try:
                return self._once(request, timeout_s)
            except Unreached as error:
                failure = unreached(self.url, str(error))
                if not maybe_done:
                    raise failure from None
            except Cut as error:
                failure = cut(self.url, str(error))
                maybe_done = True
            except _Again as again:
                failure, after_s = again.failure, again.after_s
            wait_s = pause_s if after_s is None else after_s
            if time.monotonic() + wait_s > end_s:
                raise honest(failure, key if maybe_done else "") from None
            self._pause(wait_s)
            self.look_again()
        raise AssertionError("pauses() has no end")

    def _once(self, request: Request, timeout_s: float) -> Answer:
        answer = self._asked(request, timeout_s)
        if answer.status == 401 and (again := self._proven_anew(request)):
            answer = self._asked(again, timeout_s)
        if answer.status in _PATIENCE:
            raise _Again(self._failure(answer), wire.retry_after(answer))
        if answer.status >= 300:
            raise self._failure(answer)
        return answer

    def _failure(self, answer: Answer) -> Failure:
        failure = failure_of_answer(self.url, answer)
        if failure.http_status not in {401, 403}:
            return failure
        from mycelium_cli.sign_in import refused

        return refused.explained(failure, self.caller.handle, self.url)

    def _asked(self, request: Request, timeout_s: float) -> Answer:
        line = Line(self.url)
        begun_s = time.monotonic()
        self._say(f"> {request.method} {self.url}{request.target} {wire.shown_headers(request.headers)}")
        answer = wire.answer(self.url, line, line.ask(request, timeout_s, timeout_s + _WHOLE_WITHIN_S))
        took_ms = (time.monotonic() - begun_s) * 1000
        self._say(f"< {answer.status} in {took_ms:.0f} ms, sequence {answer.headers.get('mycelium-sequence', '-')}")
        return answer

    def _say(self, text: str) -> None:
        if self.verbose:
            note(text)


def target(path: str, query: Query | None) -> str:
    """A path with its query; what is `None` or empty is left out."""
    pairs = [
        (name, item)
        for name, value in (query or {}).items()
        for item in (value if isinstance(value, list) else [value])
        if item not in (None, "")
    ]
    return f"{path}?{urlencode(pairs, quote_via=quote)}" if pairs else path


def pauses() -> Iterator[float]:
    """Ever longer waits between tries, for ever."""
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
