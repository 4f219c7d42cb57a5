"""A request as it leaves, and an answer as it is taken in: trace, JSON both ways, never without an end.

`api` decides what is asked, by whom and how often; `transport` has the connection.
"""

import json
import os
import re
from typing import TYPE_CHECKING

from mycelium_cli.errors import usage
from mycelium_cli.problems import Answer, Document, of_a_hub, stranger
from mycelium_cli.transport import Cut, Line

if TYPE_CHECKING:
    from http.client import HTTPResponse

_LARGEST_ANSWER = 64 * 1024 * 1024
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent() -> str:
    """This command's place in a trace: the caller's trace when there is one, so a whole run shows as one."""
    given = _TRACEPARENT.fullmatch(os.environ.get("TRACEPARENT", ""))
    return f"00-{given[1] if given else os.urandom(16).hex()}-{os.urandom(8).hex()}-01"


def encoded(body: object) -> bytes:
    """A body as JSON, or a refusal of a text that is none."""
    try:
        return json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise usage("the text is not valid UTF-8") from None


def shown_headers(headers: dict[str, str]) -> str:
    """What `--verbose` tells of a request, and no token."""
    return " ".join(f"{name}={value}" for name, value in headers.items() if name not in {"Authorization", "Accept"})


def answer(url: str, line: Line, response: "HTTPResponse") -> Answer:
    """The whole answer, and the end of its line. Refuses one that no hub gives."""
    from http.client import HTTPException

    try:
        content = response.read(_LARGEST_ANSWER)
    except (OSError, HTTPException) as error:
        raise Cut(line.too_slow or type(error).__name__) from error
    else:
        if line.too_slow:
            raise Cut(line.too_slow)
        if response.length:
            raise Cut("half an answer")
    finally:
        line.close()
    headers = {name.lower(): value for name, value in response.getheaders()}
    if not content:
        return Answer(response.status, None, headers)
    try:
        document = json.loads(content, object_hook=Document)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and (response.status >= 300 or of_a_hub(document)):
        return Answer(response.status, document, headers)
    text = content.decode("utf-8", "replace")
    if response.status < 300:
        raise stranger(url, response.status, text)
    return Answer(response.status, text, headers)


def retry_after(found: Answer) -> float | None:
    """In how many seconds the hub wants to be asked again; `None` when it doesn't say."""
    try:
        return max(0.0, float(found.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
