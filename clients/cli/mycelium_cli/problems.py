"""Answers that are no success, as failures: problem documents, other programs on the port, no hub at all.

`api` asks and decides whether to ask again; what a person reads about it is made here.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mycelium_cli import next_steps
from mycelium_cli.errors import UNREACHABLE, Failure, exit_of_http
from mycelium_cli.output import clean_line
from mycelium_cli.transport import LOOPBACK

_SHOWN_OF_GARBAGE = 80
_PROXY_HINT = "let the hub's domain through that proxy (in a cloud environment: Allowed domains)"
# The user's manual shows these two with their number; elsewhere it says nothing to who reads the rest.
_NUMBERED = {"room.not_found", "handle.unregistered"}


class Document(dict[str, Any]):
    """An object of the hub's answer; a field that is not there is the answer's fault, not this program's."""

    def __missing__(self, key: str) -> Any:
        cause = f'the answer of the hub has no "{key}": another version, or another program on that port'
        raise Failure(cause, exit_status=UNREACHABLE, hint="mycelium status --verbose")


# Fields that commands walk through, wherever an answer has them: lists of objects, and objects.
_LISTS = ("items", "members_list", "mentions", "earlier", "agents")
_OBJECTS = ("services", "nats", "auth", "message", "metadata")


def of_a_hub(document: dict[str, Any]) -> bool:
    """Whether an answer has the shape of a hub's: another program's JSON must not be walked through."""
    lists = [document.get(name) or [] for name in _LISTS]
    objects = [document.get(name) or {} for name in _OBJECTS]
    cursors = [document.get(name) or "" for name in ("next", "older_before")]
    return (
        all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in lists)
        and all(isinstance(one, dict) for one in objects)
        and all(isinstance(cursor, str) for cursor in cursors)
    )


class Answer(NamedTuple):
    """The hub's answer: its status, its JSON (`None` when there is none) and its headers in lower case."""

    status: int
    data: Any
    headers: dict[str, str]


def unreached(url: str, cause: str) -> Failure:
    """The failure of every command that has no hub to talk to."""
    text = f"Failed to connect to the Mycelium API at {url}: can't reach the hub ({cause})"
    hint = "mycelium up (or set MYCELIUM_API_URL)" if is_local(url) else "mycelium whoami --sources"
    return Failure(text, exit_status=UNREACHABLE, hint=_PROXY_HINT if cause.startswith("ProxyError") else hint)


def is_local(url: str) -> bool:
    """Whether a hub's address is this machine's."""
    return (urlsplit(url).hostname or "") in LOOPBACK


def cut(url: str, cause: str) -> Failure:
    """The failure of a request that left and was not answered: it may have been done."""
    failure = unreached(url, f"the line was cut: {cause}")
    failure.arrived = True
    return failure


def honest(failure: Failure, key: str) -> Failure:
    """After a cut line nobody knows whether a write was done: say so, and how to repeat it safely."""
    if not key:
        return failure
    failure.cause += "; it may or may not have been done"
    failure.hint = f"the same command with --key {key}, which can't do it twice"
    return failure


def failure_of_answer(url: str, answer: Answer) -> Failure:
    """Why an answer is none that a command can go on with."""
    if isinstance(answer.data, dict) and answer.data.get("slug") == "route.not_found":
        cause = f"{url} is no address of a hub, or of one of another version: {_detail(answer.data)}"
        return Failure(cause, exit_status=UNREACHABLE, hint="mycelium whoami --sources", problem=answer.data)
    if isinstance(answer.data, dict) and ("slug" in answer.data or "detail" in answer.data):
        return failure_of_problem(answer.status, answer.data, answer.headers)
    moved = clean_line(answer.headers.get("location", "").partition("/api/")[0])
    if answer.status < 400 and moved:
        cause = f"the hub at {url} has moved to {moved}"
        return Failure(cause, exit_status=UNREACHABLE, hint=f"mycelium config set server.api_url {moved}")
    return stranger(url, answer.status, answer.data)


def stranger(url: str, status: int, content: object) -> Failure:
    """Something answered that is no Mycelium hub: a proxy, a login page, another program on the port."""
    from http.client import responses  # loaded with the connection

    start = clean_line(content or "")[:_SHOWN_OF_GARBAGE].strip()
    said = f' ("{start}…")' if start else ""
    cause = f"{status} {responses.get(status, '')} from {url}, which does not answer as a Mycelium hub{said}"
    hint = _PROXY_HINT if status == 502 else "mycelium config get server.api_url"
    return Failure(cause, exit_status=UNREACHABLE, hint=hint)


def failure_of_problem(status: int, problem: dict[str, Any], headers: Mapping[str, str]) -> Failure:
    """A problem document as a failure: its detail word for word, near names, what to type next."""
    slug = str(problem.get("slug") or "")
    cause = f"{status} {_detail(problem)}" if slug in _NUMBERED else _detail(problem)
    missing = [name for name in _near(problem) if name not in cause]
    if missing:
        cause += f"; did you mean {' or '.join(missing)}?"
    if status == 500 and problem.get("key"):
        cause += f" (key {clean_line(problem['key'])})"
    whole = {"status": status, **problem}
    hint = clean_line(problem.get("next") or "") or _next(slug, status, headers)
    return Failure(cause, exit_status=exit_of_http(status), hint=hint, problem=whole)


def _next(slug: str, status: int, headers: Mapping[str, str]) -> str:
    """What to type next where the hub names no command; when to come again, where it says no more."""
    if headers.get("retry-after") and slug not in {"auth.unavailable", "store.full"}:
        return f"the same again in {clean_line(headers['retry-after'])} s"
    return next_steps.after(slug, exit_of_http(status))


def _detail(problem: dict[str, Any]) -> str:
    detail = problem.get("detail") or problem.get("title") or "no reason given"
    return clean_line(detail if isinstance(detail, str) else json.dumps(detail))


def _near(problem: dict[str, Any]) -> list[str]:
    """The names or ids that may have been meant."""
    near = problem.get("near") or problem.get("candidates") or []
    return [clean_line(name) for name in near] if isinstance(near, list) else []
