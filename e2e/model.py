"""The model of the tests: a server on a port that speaks the OpenAI and the Anthropic protocol, scripted per test.

`Model()` answers every question with `text`, or fails in the way that `fault` names; `asked` keeps what came.
"""

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from e2e.serving import Quiet, Served

KEY = "sk-test-0123456789abcdefWXYZ"
FAULTS = {
    "auth": (401, "invalid_api_key", f"Incorrect API key provided: {KEY}. You can find your API key at the provider."),
    "unknown": (404, "model_not_found", "The model `scripted` does not exist or you do not have access to it."),
    "refused": (400, "invalid_request_error", "max_tokens is too large for this model."),
    "limited": (429, "rate_limit_exceeded", "Rate limit reached, please try again in 20s."),
    "failed": (500, "server_error", "The server had an error while processing your request."),
}


class Question(NamedTuple):
    """What the hub asked: where, with which headers (names in lower case), and the body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Everything that was said to the model."""
        return json.dumps([self.body.get("system"), self.body.get("messages")], ensure_ascii=False)


class Model:
    """A scripted model. Fields may be changed while it runs."""

    def __init__(self, text: str = "Hello from the script.") -> None:
        self.text = text
        self.fault = ""  # a key of FAULTS, or: empty, garbled, silent
        self.usage: tuple[int, int] | None = (1, 1)  # tokens read and written that it tells; None: it does not say
        self.asked: list[Question] = []
        self.on_asked: Callable[[Question], None] = lambda _question: None
        self._released = threading.Event()
        model = self

        class Handler(Quiet):
            """Both protocols, by the path."""

            def do_POST(self) -> None:  # noqa: N802 - the library's name
                """One question."""
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = json.loads(self.rfile.read(int(headers.get("content-length", "0"))))
                question = Question(self.path, headers, body)
                model.asked.append(question)
                model.on_asked(question)
                status, kind, content = model.answer(question)
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

        self._served = Served(Handler)
        self.url = self._served.url

    def answer(self, question: Question) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        if self.fault == "silent":
            self._released.wait(60)
        if self.fault == "garbled":
            return 200, "text/html", b"<html>gateway time-out</html>"
        anthropic = question.path.endswith("/messages")
        if self.fault in FAULTS:
            status, code, message = FAULTS[self.fault]
            error = {"type": code, "code": code, "message": message}
            document: dict[str, Any] = {"type": "error", "error": error} if anthropic else {"error": error}
            return status, "application/json", json.dumps(document).encode()
        text = "" if self.fault == "empty" else self.text
        document = _anthropic(text, self.usage) if anthropic else _openai(text, self.usage)
        return 200, "application/json", json.dumps(document).encode()

    def close(self) -> None:
        """Answer no more."""
        self._released.set()
        self._served.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _openai(text: str, usage: tuple[int, int] | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    read, wrote = usage or (0, 0)
    told = {"usage": {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        **(told if usage else {}),
    }


def _anthropic(text: str, usage: tuple[int, int] | None) -> dict[str, Any]:
    read, wrote = usage or (0, 0)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": wrote},  # the protocol has no answer without it
    }


if __name__ == "__main__":  # for trying a hub by hand
    with Model() as shown:
        print(shown.url, flush=True)
        threading.Event().wait()
