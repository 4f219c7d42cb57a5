"""Who calls, under which key, and how a route asks a service in that caller's name.

The caller is who the token says. Without one, while sign-in is off or on the hub's own machine, the header
`Mycelium-Handle` says it. A body may name the caller too. All must be the same handle, so that no request is half one
member's and half another's; only who waits or is present may do so for an agent that lets it.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends
from google.protobuf.message import Message
from starlette.requests import Request

from mycelium.rooms.v1 import service_pb2, views_pb2
from mycelium_gateway import joined, operators
from mycelium_gateway.identity import AGENT, STATE, Identity
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
    """One request: the gateway that it came through, its caller and its key.

    `identity` is who the token says. `claimed` is another handle that the header names all the same, and `principal`
    the call of who acts for the actor here.
    """

    gateway: Gateway
    actor: Actor
    key: str
    identity: Identity | None = None
    claimed: str = ""
    principal: Call | None = None

    async def ask(
        self, request: Message, response: type[R], *, step: str = "", timeout_s: float = TIMEOUT_S
    ) -> Reply[R]:
        """Ask the service that `request` belongs to. A call that writes more than once names each further `step`.

        A step's key is a digest, so that no key that a client may choose is one.
        """
        key = hashlib.sha256(f"{self.key}\n{step}".encode()).hexdigest() if step else self.key
        if self.identity:
            joined.bind(request, self.identity)
        reply = await self.gateway.bus.ask(request, response, actor=self.actor, key=key, timeout_s=timeout_s)
        if self.identity:
            joined.keep_own(reply.message, self.identity)
        return reply

    async def ask_in_turn(self, request: Message, response: type[R]) -> Reply[R]:
        """Ask for a stream: few do at once, the others wait for their turn."""
        async with self.gateway.joining:
            return await self.ask(request, response)

    def by(self, handle: str | None) -> Call:
        """The call, made by the handle that its body names (None: it names none)."""
        if handle is None:
            return self
        named, session = _speaker(handle)
        own = self.actor
        if self.identity and named != own.handle:
            raise _forbidden(own.handle, named)
        if own.handle and named != own.handle:
            raise Refusal("handle.mismatch", f"the header says @{own.handle}, the body @{named}")
        if own.session not in {"", own.handle}:  # it was sent by itself
            session = own.session
        return replace(self, actor=replace(own, handle=named, session=session))

    def named(self, handle: str | None, field: str = "handle") -> Call:
        """Like `by`, for what only somebody can do."""
        call = self.by(handle)
        if not call.actor.handle:
            raise Refusal("handle.missing", f"say who calls: header {HANDLE_HEADER}, or body.{field}")
        return call

    async def acting(self, room: str, handle: str | None) -> Call:
        """Like `named`, for waiting and being there: the handle may be of an agent of the room that lets the caller."""
        if self.identity is None:
            return self.named(handle)
        wanted = [_speaker(written) for written in (handle, self.claimed) if written]
        if not wanted or wanted[0][0] == wanted[-1][0] == self.actor.handle:
            return self.by(handle)
        named, session = wanted[0]
        if named != wanted[-1][0]:
            raise _forbidden(wanted[-1][0], named)
        if self.actor.session not in {"", self.actor.handle}:
            session = self.actor.session
        call = replace(self, actor=Actor(named, session, AGENT), claimed="", principal=replace(self, claimed=""))
        await call.confirm(room)
        return call

    async def confirm(self, room: str) -> None:
        """Refused when the token is good no more, or the caller acts for an agent that does not let it any more."""
        if self.identity:
            await joined.confirm(self.gateway.bus, self.identity)
        if self.principal is None:
            return
        own, handle = self.principal.actor.handle, self.actor.handle
        request = service_pb2.GetMemberRequest(room=room, handle=handle)
        try:
            member = (await self.principal.ask(request, service_pb2.GetMemberResponse)).message.member
        except Refusal as refusal:
            if refusal.slug != "member.not_found":
                raise
            member = views_pb2.Member()
        if member.kind != views_pb2.MEMBER_KIND_AGENT or own not in {member.owner, *member.allow_from}:
            next_command = f"mycelium agent create {handle} --room {shlex.quote(room)} --allow-from {own}"
            detail = (
                f"@{own} is neither the owner of @{handle} in {room!r} nor in its allow-from; its owner can change that"
            )
            raise Refusal("acting.forbidden", detail, next_command)

    def lasts_s(self) -> float:
        """For how many seconds the caller's token is good; without one, for ever."""
        if self.identity is None or not self.identity.expires_at:
            return math.inf
        return max(0.0, self.identity.expires_at - self.gateway.clock().timestamp())


async def read_call(request: Request) -> Call:
    """The call that a request's headers describe. Refused when they name another handle than the token."""
    call = await read_acting(request)
    if call.claimed:
        raise _forbidden(call.actor.handle, _speaker(call.claimed)[0])
    return call


async def read_acting(request: Request) -> Call:
    """The same for what may be done for another: the route says by `acting` whom it is for."""
    sent = _headers(request.scope["headers"])
    gateway: Gateway = request.app.state.gateway
    found = request.scope.get("state", {})
    # Where nobody was asked for a token although sign-in is on, at an open address, nobody is believed either.
    is_nobody = gateway.settings.auth.enabled and STATE not in found
    handle, claimed = "" if is_nobody else sent.get(READ_HANDLE, ""), ""
    named, own_session = _speaker(handle) if handle else ("", "")
    identity: Identity | None = found.get(STATE)
    if identity:
        if named and named != identity.handle:
            claimed, own_session = handle, ""
        named = identity.handle
    session = _token(sent.get(READ_SESSION, ""), SESSION_HEADER) or own_session or named
    key = _token(sent.get(READ_KEY, ""), KEY_HEADER)
    operator = operators.may_change_records(identity, gateway.settings)
    actor = Actor(named, session, identity.proven if identity else "", operator)
    return Call(gateway, actor, key or new_id(), identity, claimed)


def _speaker(written: str) -> tuple[str, str]:
    """The handle that somebody goes by, and the session: `alice#a8f3` is alice on one of her machines."""
    handle, mark, session = written.partition("#")
    named = names.handle(handle)
    return named, names.queue(named, names.seat(session)) if mark else named


def _forbidden(own: str, named: str) -> Refusal:
    return Refusal("handle.forbidden", f"the token is @{own}'s, and the request names @{named}")


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
Acting = Annotated[Call, Depends(read_acting)]
