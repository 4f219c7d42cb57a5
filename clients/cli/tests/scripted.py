"""A server on a port that answers from a script: cut lines, garbage, patience. It stands for the outside world.

What a real hub answers is tested against a real hub, in `e2e/`.
"""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
from typing import Any, NamedTuple, Self

CUT = b""
MESSAGE = {
    "id": "01990000-0000-7000-8000-00001a2b3c4d",
    "seq": 7,
    "room": "demo",
    "sender_handle": "avery",
    "sender_name": "",
    "content": "hello",
    "message_type": "message",
    "thread": None,
    "reply_to": None,
    "metadata": {},
    "created_at": "2026-09-03T16:40:00.000Z",
    "edited_at": None,
    "mentions": [],
}


class Received(NamedTuple):
    """One request as it came over the line."""

    line: str
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        return json.loads(self.body)


def answer(status: int, body: object = None, *headers: str, kind: str = "application/json") -> bytes:
    """An HTTP answer that ends the connection; a text or bytes body goes out as it is."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join([*head, "Connection: close", "", ""]).encode() + content


def stream(text: str) -> bytes:
    """A live stream that says this much and then is cut."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{text}".encode()


class ScriptedHub:
    """Gives each connection the next answer of `script`; `CUT` closes it without a byte."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.script: list[bytes] = []
        self.received: list[Received] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._holding = False
        self._late: queue.Queue[bytes] = queue.Queue()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"

    def play(self, *answers: bytes) -> None:
        """What the next connections get, in order."""
        self.script.extend(answers)

    def hold(self) -> None:
        """Close no connection until the end; what the script has is sent, other requests stay unanswered."""
        self._holding = True

    def answer_held(self, late: bytes) -> None:
        """Send this, now, to the connection that is held."""
        self._late.put(late)

    def keys(self) -> list[str]:
        """The idempotency keys that came, in order."""
        return [request.headers["idempotency-key"] for request in self.received]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._late.put(CUT)
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self._tls:
                try:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                except OSError:  # the other side does not trust it
                    continue
            with connection:
                self.received.append(_read(connection))
                if self.script:
                    connection.sendall(self.script.pop(0))
                elif not self._holding:
                    connection.sendall(answer(500, {"slug": "internal", "detail": "no script"}))
                if self._holding and not self._released.is_set():
                    connection.sendall(self._late.get(timeout=30))


def _read(connection: socket.socket) -> Received:
    with connection.makefile("rb") as file:
        line = file.readline().decode().strip()
        headers: dict[str, str] = {}
        while (header := file.readline().decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        return Received(line, headers, file.read(int(headers.get("content-length", "0"))))
