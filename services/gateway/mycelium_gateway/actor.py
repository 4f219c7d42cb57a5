"""Who calls, under which key, and how a route asks a service in that caller's name.

While sign-in is off the header `Mycelium-Handle` says who calls. A body may name the caller too; then both must be
the same handle, so that no request is half one member's and half another's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends
from google.protobuf.message import Message
from starlette.requests import Request

from mycelium_kernel import names
from mycelium_kernel.bus import TIMEOUT_S, Reply
from mycelium_kernel.clock import new_id
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor

if TYPE_CHECKING:
    from mycelium_gateway.gateway import Gateway

R = TypeVar("R", bound=Message)
TOKEN = re.compile(r"[\x20-\x7e]{1,200}")
HANDLE_HEADER = "Mycelium-Handle"
SESSION_HEADER = "Mycelium-Session"
KEY_HEADER = "Idempotency-Key"
# As the server hands them on.
READ = {header.lower().encode(): header for header in (HANDLE_HEADER, SESSION_HEADER, KEY_HEADER)}
READ_HANDLE, READ_SESSION, READ_KEY = READ
LONGEST = 200


@dataclass(frozen=True)
class Call:
    """One request: the gateway that it came through, its caller and its key."""

    gateway: Gateway
    actor: Actor
    key: str

    async def ask(
        self, request: Message, response: type[R], *, step: str = "", timeout_s: float = TIMEOUT_S
    ) -> Reply[R]:
        """Ask the service that `request` belongs to. A call that writes more than once names each further `step`.

        A step's key is a digest, so that no key that a client may choose is one.
        """
        key = hashlib.sha256(f"{self.key}\n{step}".encode()).hexdigest() if step else self.key
        return await self.gateway.bus.ask(request, response, actor=self.actor, key=key, timeout_s=timeout_s)

    async def ask_in_turn(self, request: Message, response: type[R]) -> Reply[R]:
        """Ask for a stream: few do at once, the others wait for their turn."""
        async with self.gateway.joining:
            return await self.ask(request, response)

    def by(self, handle: str | None) -> Call:
        """The call, made by the handle that its body names (None: it names none)."""
        if handle is None:
            return self
        named = names.handle(handle)
        if self.actor.handle and named != self.actor.handle:
            raise Refusal("handle.mismatch", f"the header says @{self.actor.handle}, the body @{named}")
        session = self.actor.session or named
        return replace(self, actor=Actor(named, session))

    def named(self, handle: str | None, field: str = "handle") -> Call:
        """Like `by`, for what only somebody can do."""
        call = self.by(handle)
        if not call.actor.handle:
            raise Refusal("handle.missing", f"say who calls: header {HANDLE_HEADER}, or body.{field}")
        return call


async def read_call(request: Request) -> Call:
    """The call that a request's headers describe."""
    sent = _headers(request.scope["headers"])
    handle = sent.get(READ_HANDLE, "")
    named = names.handle(handle) if handle else ""
    session = _token(sent.get(READ_SESSION, ""), SESSION_HEADER)
    key = _token(sent.get(READ_KEY, ""), KEY_HEADER)
    return Call(request.app.state.gateway, Actor(named, session or named), key or new_id())


def _headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, str]:
    """Those that are read here. One that comes twice must say the same: the caller is not for us to choose."""
    sent: dict[bytes, str] = {}
    for name, value in headers:
        if name in READ:
            text = value.decode("latin-1").strip()
            if len(text) > LONGEST:
                raise Refusal("request.invalid", f"header {READ[name]} has {len(text)} characters, at most {LONGEST}")
            if sent.setdefault(name, text) != text:
                raise Refusal("request.invalid", f"header {READ[name]} came twice, with different values")
    return sent


def _token(written: str, header: str) -> str:
    if written and not TOKEN.fullmatch(written):
        raise Refusal("request.invalid", f"header {header} must be 1 to 200 printable ASCII characters")
    return written


Caller = Annotated[Call, Depends(read_call)]
