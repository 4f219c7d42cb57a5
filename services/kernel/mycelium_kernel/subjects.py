"""Every subject of the bus and the encoding of every token. A literal subject anywhere else is a fault.

Grammar (NATS ADR-6): ASCII lower case, digits, `-`, `_`; namespace first, ids last; ids, never names.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

STREAM = "FACTS"
ALL_FACTS = "evt.>"
TIMER_STREAM = "TIMERS"
ALL_TIMERS = "timer.>"
HUB = "hub"  # stands where a room's id would, for facts of the whole hub
NAMES = "names"  # the same, for the names of rooms, which outlive them

_SAFE = re.compile(r"[a-z0-9-]")


def token(text: str) -> str:
    """`text` as one token of a subject; two texts never share a token. Raises `ValueError` for an empty text."""
    if not text:
        raise ValueError("an empty text can't be a token")
    return "".join(c if _SAFE.fullmatch(c) else f"_{ord(c):x}_" for c in text)


def digest(text: str) -> str:
    """A token for a text that may be long or hold anything: the first half of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def fact(service: str, room: str, entity: str, identifier: str) -> str:
    """Subject of an entity's facts. `identifier` is an id, or a text that becomes a token."""
    return f"evt.{service}.{room}.{entity}.{token(identifier)}"


def posts(room: str) -> str:
    """Subject of all posts of a room, which gives them their one order."""
    return f"evt.rooms.{room}.message"


def spending(room: str) -> str:
    """Subject of what engines have spent in a room: its last fact holds all of it."""
    return fact("engine", room, "spending", "models")


def all_posts() -> str:
    """Filter: the posts of every room."""
    return posts("*")


def of_kind(service: str, entity: str) -> str:
    """Filter: every fact of a service's entities of one kind, in every room."""
    return of_entities(service, "*", entity)


def room_name(folded: str) -> str:
    """Subject of a room's name: created and deleted facts, kept for ever."""
    return f"evt.rooms.{NAMES}.name.{digest(folded)}"


def of_service(service: str) -> str:
    """Filter: every fact of a service."""
    return f"evt.{service}.>"


def of_room(room: str) -> str:
    """Filter: every fact of a room."""
    return f"evt.*.{room}.>"


def of_entities(service: str, room: str, entity: str) -> str:
    """Filter: every fact of a room's entities of one kind."""
    return f"evt.{service}.{room}.{entity}.>"


def is_under(subject: str, filters: tuple[str, ...]) -> bool:
    """Whether a subject is under one of these filters."""
    return _matcher(filters).fullmatch(subject) is not None


@functools.cache
def _matcher(filters: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern of several filters: `*` is one token, `>` at the end is one or more."""
    escaped = (re.escape(one).replace(r"\*", "[^.]+").replace(">", ".+") for one in filters)
    return re.compile("|".join(escaped))


def owner_of(subject: str) -> str:
    """The token of a fact's subject that names the service whose fact it is."""
    return subject.split(".", 2)[1]


def room_of(subject: str) -> str:
    """The token of a fact's subject that names its room, `HUB` or `NAMES`."""
    return subject.split(".", 3)[2]


def identifier_of(subject: str) -> str:
    """The token of a fact's subject that names its entity."""
    return subject.split(".", 4)[4]


def room_of_timer(subject: str) -> str:
    """The token of a timer's subject that names its room."""
    return subject.split(".", 4)[3]


def timer_set(service: str, room: str, identifier: str) -> str:
    """Subject that holds a timer until it is due."""
    return f"timer.set.{service}.{room}.{token(identifier)}"


def timer_due(service: str, room: str, identifier: str) -> str:
    """Subject on which a timer that is due arrives."""
    return f"timer.due.{service}.{room}.{token(identifier)}"


def timers_due(service: str) -> str:
    """Filter: every due timer of a service."""
    return f"timer.due.{service}.>"


def durable(service: str, purpose: str) -> str:
    """Name of a durable consumer."""
    return f"{service}-{purpose}"


def next_message(stream: str, durable: str) -> str:
    """Subject on which JetStream is asked for the next message of a durable consumer."""
    return f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"


def stream_info(stream: str) -> str:
    """Subject on which a stream's leader is asked how far it is."""
    return f"$JS.API.STREAM.INFO.{stream}"


def stored_message(stream: str) -> str:
    """Subject on which a stream's leader is asked for a stored message."""
    return f"$JS.API.STREAM.MSG.GET.{stream}"


def bucket(name: str) -> str:
    """The stream that a key-value bucket is."""
    return f"KV_{name}"


def key(bucket: str, key: str) -> str:
    """Subject of a key of a bucket."""
    return f"$KV.{bucket}.{key}"


def inbox(user: str) -> str:
    """Prefix of the inboxes of one NATS user; no other may listen there."""
    return f"_INBOX_{user}"


def method_of(request: Any) -> MethodDescriptor:
    """The rpc whose input `request` is. Raises `LookupError` for a message that no rpc of its file takes."""
    for service in request.file.services_by_name.values():
        for method in service.methods:
            if method.input_type is request:
                found: MethodDescriptor = method
                return found
    raise LookupError(f"no rpc takes {request.full_name}")


def is_query(method: MethodDescriptor) -> bool:
    """Whether the proto marks the rpc as one without side effects."""
    level: int = method.GetOptions().idempotency_level
    return level == MethodOptions.NO_SIDE_EFFECTS


def service_of(descriptor: Any) -> str:
    """The service that a message belongs to: the second part of its package."""
    return str(descriptor.file.package).split(".")[1]


def verb(method: MethodDescriptor) -> str:
    """The rpc's name as a token: `ClaimTask` is `claim_task`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", method.name).lower()


def request(message: type[Message], caller: str) -> str:
    """Subject on which `caller` sends a request; `*` as caller is what the service listens on."""
    method = method_of(message.DESCRIPTOR)
    return f"svc.{service_of(message.DESCRIPTOR)}.{verb(method)}.{caller}"


def caller_of(subject: str) -> str:
    """The service that sent a request."""
    return subject.rpartition(".")[2]


def health(service: str, caller: str) -> str:
    """Subject on which a service says how it is; `*` as caller is what it listens on."""
    return f"svc.{service}.health.{caller}"
