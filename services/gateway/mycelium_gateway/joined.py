"""The hub's own tokens, of agents that joined by a code, and the codes themselves. The hub keeps digests of both only.

Such a token is good in one room. Everything else is to its holder as to a stranger who may see nothing: whatever other
room it names is not there.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from mycelium.rooms.v1 import join_pb2, service_pb2
from mycelium_gateway.identity import AGENT, Identity
from mycelium_kernel import names
from mycelium_kernel.bus import Bus
from mycelium_kernel.errors import Refusal
from mycelium_kernel.service import Actor

TOKEN = re.compile(r"myc_[A-Za-z0-9_-]{43}")
PREFIX = "myc_"
ISSUER = "hub"
NOBODY = Actor("", "")
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 of them, none like another (Crockford's base 32)
READ_AS = str.maketrans({"o": "0", "i": "1", "l": "1", "-": None, " ": None})
CODE_LETTERS = 12
# Of what is asked of no room, what the holder of such a token may ask.
ALLOWED: tuple[type[Message], ...] = (
    service_pb2.ListRoomsRequest,
    service_pb2.DescribeHandleRequest,
    service_pb2.GetUserRequest,
    service_pb2.ListUsersRequest,
)


def new_code() -> str:
    """A code that nobody can guess: 60 bits, as one reads and types it."""
    letters = "".join(secrets.choice(LETTERS) for _ in range(CODE_LETTERS))
    return "-".join(letters[start : start + 4] for start in range(0, CODE_LETTERS, 4))


def new_token() -> str:
    """A token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def code_digest(typed: str) -> str:
    """The digest of a code as somebody typed it; of anything else one that no code has."""
    return _digest("join code", typed.strip().lower().translate(READ_AS))


def token_digest(token: str) -> str:
    """The digest by which a token is known."""
    return _digest("token", token)


def request_digest(key: str) -> str:
    """What tells a request from others, by its key."""
    return _digest("join request", key)


def _digest(what: str, text: str) -> str:
    return hashlib.sha256(f"mycelium {what}\n{text}".encode("utf-8", "replace")).hexdigest()


def is_own(token: str) -> bool:
    """Whether a token can only be one of the hub's own."""
    return token.startswith(PREFIX)


async def identity_of(bus: Bus, token: str) -> Identity:
    """Whose token it is. Refused when it is nobody's, or not any more."""
    return await _found(bus, token_digest(token) if TOKEN.fullmatch(token) else "")


async def confirm(bus: Bus, identity: Identity) -> None:
    """Refused when a token of the hub's own, with which something long began, is good no more."""
    if identity.room_id:
        await _found(bus, identity.subject)


async def _found(bus: Bus, digest: str) -> Identity:
    request = join_pb2.FindJoinedRequest(token_digest=digest)
    found = (await bus.ask(request, join_pb2.FindJoinedResponse, actor=NOBODY)).message
    if not found.handle:
        detail = (
            "token rejected: it is of no member any more, another join took its place, or who made its code may act for"
            " the member no more"
        )
        raise Refusal("token.refused", detail, next="mycelium join CODE")
    return Identity(found.handle, AGENT, ISSUER, digest, 0.0, found.room_id, found.room)


def bind(request: Message, identity: Identity) -> None:
    """Have a request be about the token's room, or refuse it; of a token that is good everywhere nothing is asked."""
    if not identity.room_id:
        return
    fields = request.DESCRIPTOR.fields_by_name
    about: Any = request
    if "room" in fields:
        about.room = _own(about.room, identity)
    elif "room_id" in fields:
        about.room_id = _own(about.room_id, identity)
    elif "rooms" in fields:
        about.rooms[:] = [_own(room, identity) for room in about.rooms]
    elif not isinstance(request, ALLOWED):
        detail = f"the token is good in the room {identity.room!r} alone"
        raise Refusal("auth.refused", detail)


def _own(text: str, identity: Identity) -> str:
    named = text.strip()
    if named.lower() == identity.room_id or names.fold_room_name(named) == names.fold_room_name(identity.room):
        return identity.room_id
    shown = named if len(named) <= names.ROOM_NAME_CHARACTERS else named[:40] + "…"
    raise Refusal("room.not_found", f"Room not found: {shown!r}", next="mycelium room ls")


def keep_own(answer: Message, identity: Identity) -> None:
    """Take out of a list of rooms what is not the token's."""
    if identity.room_id and isinstance(answer, service_pb2.ListRoomsResponse):
        own = [room for room in answer.rooms if room.id == identity.room_id]
        del answer.rooms[:]
        answer.rooms.extend(own)


class Tries:
    """How often one address may try a code: so many at once, and then one a second."""

    most = 60
    addresses = 10_000

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._full_at: dict[str, float] = {}  # when each may try `most` times at once again

    def take(self, address: str) -> None:
        """Count one try. Refused when there were too many."""
        now = self._monotonic()
        full_at = max(self._full_at.pop(address, now), now) + 1
        if full_at - now > self.most:
            self._full_at[address] = full_at - 1
            raise Refusal("rate.limited", f"{self.most} codes were tried from this address: one a second from now on")
        self._full_at[address] = full_at
        if len(self._full_at) > self.addresses:  # the one that has tried least lately goes
            del self._full_at[next(iter(self._full_at))]
