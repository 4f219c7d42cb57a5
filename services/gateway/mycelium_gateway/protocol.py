"""uvicorn's protocol of one connection, with bounds on what a client may send and on how long it may take.

The server hands the application whole heads only, so what never becomes one is bounded here: its size, and its time.
Answers of this place are written as they stand, since there is no request to answer yet, or no application to ask.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from mycelium_gateway import problems
from mycelium_gateway.guard import SERVER_SEND, WHEN_GONE
from mycelium_gateway.settings import GatewaySettings

HEAD_BYTES = 64 * 1024  # request line and headers
# An answer that ends a connection is lost if what the client still sends meets a closed socket.
LINGER_S = 1.0
AUTHORITY_END = re.compile(rb"[/?#]")


class TooLargeError(Exception):
    """A request's head is over `HEAD_BYTES`."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `of` makes the class for some settings, as uvicorn wants a class."""

    head_s = GatewaySettings.head_s
    body_s = GatewaySettings.body_s

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0  # of this request's head (and trailers), as the parser has given them out
        # Received since the parser gave something out; what came in one piece with that is not known, and not counted.
        self._unseen_bytes = 0
        self._begun = False  # a request has begun and not ended
        self._in_body = False
        self._asked = False  # a request was whole enough to be worked on
        self._refused = False
        self._on_gone: Callable[[], object] | None = None
        self._unanswered: list[RequestResponseCycle] = []  # in their order: the one that is worked on, those behind it
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there, and has a while to say what it wants."""
        super().connection_made(transport)
        self._arm(self.head_s, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._disarm()
        super().connection_lost(exc)
        for cycle in self._unanswered:  # the server tells only the last, and writes the others' answers to nobody
            cycle.disconnected = True
            cycle.message_event.set()
        if self._on_gone:
            self._on_gone()

    def when_gone(self, call: Callable[[], object]) -> None:
        """Have it called when the client has gone, or has by now, in place of what was to be called before."""
        self._on_gone = call
        if self.transport.is_closing():
            self.loop.call_soon(call)

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse what is too large; what comes after that is dropped."""
        if self._refused:
            return
        self._unseen_bytes += len(data)
        if self._in_body:
            self._disarm()
        super().data_received(data)
        if not self.transport.is_closing():
            self._look()

    def _look(self) -> None:
        """Refuse what is too much, else say how long the rest may take."""
        if self._refused:
            return
        if self._head_bytes + self._unseen_bytes > HEAD_BYTES:
            self._refuse_head()
        elif self._in_body:
            self._arm(self.body_s, self._body_is_late)
        elif self._begun or self._unseen_bytes:
            self._arm(self.head_s, self._head_is_late)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._head_bytes = self._unseen_bytes = 0
        self._begun = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer after the body."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._unseen_bytes = 0
        self._in_body = self._asked = True
        self._disarm()
        if not self.url.startswith(b"/"):
            self._take_authority()
        super().on_headers_complete()
        cycle: Any = self.cycle
        if cycle is not None and cycle.scope is self.scope:
            self._unanswered = [*(one for one in self._unanswered if not one.response_complete), cycle]
            scope = cast("dict[str, Any]", self.scope)
            scope[SERVER_SEND], scope[WHEN_GONE] = cycle.send, self.when_gone

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._unseen_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._unseen_bytes = 0
        self._begun = self._in_body = False
        self._disarm()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """The parser has given up: over one of our bounds, or over what is no HTTP."""
        if self._head_bytes > HEAD_BYTES:
            self._refuse_head()
        else:
            self._disarm()
            super().send_400_response(msg)

    def _count(self, size: int) -> None:
        self._unseen_bytes = 0
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            raise TooLargeError

    def _take_authority(self) -> None:
        """A target with an authority of its own: that is whom the request is for, whatever `Host` says (RFC 9112)."""
        scheme, separator, rest = self.url.partition(b"://")
        if separator and scheme.isalpha():
            self.headers[:] = [(name, value) for name, value in self.headers if name != b"host"]
            self.headers.append((b"host", AUTHORITY_END.split(rest, maxsplit=1)[0]))

    def _arm(self, after_s: float, late: Any) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(after_s, late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_late(self) -> None:
        self._timer = None
        if self._begun or self._unseen_bytes:
            self._refuse("request.timed_out", f"no whole head of a request came within {self.head_s:g} s")
        else:
            self.transport.close()

    def _body_is_late(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # it is us who do not read
            self._arm(self.body_s, self._body_is_late)
        else:
            self._refuse("request.timed_out", f"nothing of the body came for {self.body_s:g} s")

    def _refuse_head(self) -> None:
        self._refuse("request.head_too_large", f"address and headers are larger than {HEAD_BYTES} bytes")

    def _refuse(self, slug: str, detail: str) -> None:
        """Answer, if no other answer is under way on this connection, and end it."""
        self._refused = True
        self._disarm()
        self._unset_keepalive_if_required()
        current = self._in_body and not self.cycle.response_started
        if self.pipeline or not (current or not self._asked or self.cycle.response_complete):
            self.transport.close()
            return
        if current:  # the application learns that nobody is there
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        answer = problems.response(problems.document(slug, detail))
        status = HTTPStatus(answer.status_code)
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), b"connection: close"]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + bytes(answer.body))
        self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_S, self.transport.close)

    def shutdown(self) -> None:
        """The hub stops."""
        if self._refused:
            self.transport.close()
        else:
            super().shutdown()


def write_now(send: Any) -> Callable[[bytes], bool]:
    """A function that writes a part of a streamed answer at once, for the server's own `send` of that answer.

    It does so without a task that has to be woken, which is most of what a live event costs. It returns False, and has
    written nothing, when the reader does not keep up or has gone: then the part is to be sent as any other.
    """
    cycle = getattr(send, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle):
        return lambda _part: False

    def write(part: bytes) -> bool:
        is_open = not (cycle.disconnected or cycle.response_complete or cycle.transport.is_closing())
        if cycle.flow.write_paused or not is_open or not cycle.chunked_encoding:
            return False
        cycle.transport.write(b"%x\r\n%b\r\n" % (len(part), part))
        return True

    return write


def of(settings: GatewaySettings) -> type[BoundedProtocol]:
    """The protocol with the bounds of some settings."""
    return type("Protocol", (BoundedProtocol,), {"head_s": settings.head_s, "body_s": settings.body_s})
