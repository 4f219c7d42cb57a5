"""A line that breaks: a TCP proxy that cuts connections after the hub has answered, before the client hears it."""

import contextlib
import socket
import threading
from typing import Self
from urllib.parse import urlsplit


class CuttingProxy:
    """Stands before a hub. The first `cuts` answers to POST are read whole and thrown away; later ones pass."""

    def __init__(self, url: str, cuts: int = 1) -> None:
        there = urlsplit(url)
        self._hub = (str(there.hostname), there.port or 80)
        self._cuts = cuts
        self.swallowed: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.create_connection(self._hub) as hub:
                client.settimeout(10)
                hub.settimeout(10)
                with contextlib.suppress(OSError):
                    self._exchange(client, hub)

    def _exchange(self, client: socket.socket, hub: socket.socket) -> None:
        request = _one_message(client)
        hub.sendall(request)
        answer = _one_message(hub)
        if request.startswith(b"POST") and len(self.swallowed) < self._cuts:
            self.swallowed.append(answer)
            return
        client.sendall(answer)


def _one_message(line: socket.socket) -> bytes:
    """A request or an answer with its body, by its Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(line)
    head, _, body = data.partition(b"\r\n\r\n")
    names = dict(row.split(b": ", 1) for row in head.lower().split(b"\r\n")[1:])
    length = int(names.get(b"content-length", b"0"))
    while len(body) < length:
        body += _some(line)
    return head + b"\r\n\r\n" + body


def _some(line: socket.socket) -> bytes:
    found = line.recv(65536)
    if not found:
        raise ConnectionError("hung up")
    return found
